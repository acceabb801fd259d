// Command offclock is lockstep with a clock that is off, for tests:
//
//	OFFCLOCK=-5m offclock controller …
//
// The product has no such setting. What the libraries do with time is not changed.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

func main() {
	off, err := time.ParseDuration(os.Getenv("OFFCLOCK"))
	if err != nil {
		log.Fatalf("OFFCLOCK: %v", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Environment{
		Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Program: "lockstep",
		LogLibraries: cli.LogLibraries,
		Now:          func() time.Time { return time.Now().Add(off) },
	})
	stop()
	os.Exit(code)
}
