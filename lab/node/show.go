package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// show prints an environment variable once and a file whenever it changes:
//
//	env hello
//	file one
//
// Its arguments are the variable's name and the file's path. It fails when the variable is "crash";
// otherwise it accepts connections on port 8080, so a probe can tell the two apart.
func show(args []string) error {
	if len(args) != 2 {
		return errors.New("want: show VARIABLE FILE")
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	value := os.Getenv(args[0])
	fmt.Println("env", value)
	if value == "crash" {
		return errors.New("the configuration makes this application crash")
	}
	ready, err := net.Listen("tcp", ":8080") //nolint:gosec // The network is that of the pod.
	if err != nil {
		return err
	}
	defer ready.Close()
	last := ""
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		content, err := os.ReadFile(args[1])
		if text := strings.TrimSpace(string(content)); err == nil && text != last {
			fmt.Println("file", text)
			last = text
		}
		select {
		case <-end:
			return nil
		case <-look.C:
		}
	}
}
