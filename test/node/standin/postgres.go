package main

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// postgres reads the file of "-c config_file=FILE" when it starts and on SIGHUP.
func postgres(args []string) error {
	if len(args) != 2 || args[0] != "-c" {
		return errors.New("want: postgres -c config_file=FILE")
	}
	file, found := strings.CutPrefix(args[1], "config_file=")
	if !found {
		return errors.New("want: postgres -c config_file=FILE")
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM)
	describe()
	for word := "started"; ; word = "reloaded" {
		text, err := configuration(file)
		if err != nil {
			return err
		}
		say(word, "with", strings.TrimSpace(text))
		if <-signals == syscall.SIGTERM {
			return nil
		}
	}
}
