// Command lockstep-sync keeps the files of one pod in step with ConfigMaps and
// Secrets, and the application in step with the files.
package main

import (
	"context"
	"os"
	"time"
	_ "time/tzdata" // Images don't contain time zone files.

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/lockstep-dev/lockstep/internal/agent/cli"
)

// version is set when the program is linked.
var version = "dev"

func main() {
	// The client library's own log would repeat Lockstep's messages in another form.
	klog.SetLogger(logr.Discard())
	os.Exit(cli.Run(context.Background(), cli.Env{
		Args: os.Args, Lookup: os.LookupEnv, Environ: os.Environ, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Version: version,
	}))
}
