// Command lockstep keeps Kubernetes workloads in step with their configuration and images.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process even if the first is ignored.
	code := cli.Run(ctx, os.Args[1:], cli.Environment{
		Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Environ: os.Environ,
		Program: os.Args[0], Version: version, LogLibraries: run.LogLibraries, Now: time.Now,
	})
	stop()
	os.Exit(code)
}
