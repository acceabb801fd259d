// Command breaks shows that the tests notice the defects that this product
// promises not to have. Each file next to it names one defect, one small change
// that reintroduces the defect, and the test that must then fail:
//
//	# CC-14: a change of labels reloads the application
//	file: internal/agent/feature/podsync/agent.go
//	test: ./internal/agent/feature/podsync TestMetadataOnlyChange
//	-	if snap.Version == a.planned.version {
//	+	if false {
//
// Lines with - are the text to find, exactly once; lines with + replace it. The
// changes are made in copies of the working tree. The product must still compile:
// a test that builds a program would fail for any text that isn't Go.
//
//	go run ./test/breaks            all
//	go run ./test/breaks CC-14 KR   some, by name or by the beginning of it
//	go run ./test/breaks --since HEAD~20 --within 3m   those of changed files, for a while
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const usage = `Brings defects back, each in a copy of the working tree, and sees the named test fail. Each test
first runs without a break: if it fails then, its breaks aren't judged.

Usage:
  go run ./test/breaks [FLAGS] [NAME…]

A NAME is a break, such as CC-14, or the beginning of some, such as KR. Without one all run.
"make breaks BREAKS=KR" first installs and builds everything that the tests need.

Flags:
  --fresh      run every break again, even if an earlier run has seen it noticed
  --since REV  only breaks of files that changed since a commit, or that are new themselves
  --within D   begin no further test after this time, such as 3m, and list the breaks that are left
  --workers N  how many breaks run side by side, each worker with a copy of the tree and a
               control plane of its own (%d here)

Noticed breaks are kept in %s. The next run of the same tree takes them over, so an
interrupted run continues where it ended. A change to any file of the tree, or to the
break itself, makes it run again. A break that was missed always runs again.

Examples:
  go run ./test/breaks                 all of them, or what an earlier run has left
  go run ./test/breaks --fresh CC-14   one, even if it was noticed before
  go run ./lab exec --kubernetes 1.34 -- go run ./test/breaks KR
                                       on a given control plane, for all workers

Exit codes: 0 all that ran are noticed, 1 some are not, 2 the command line is wrong, 130 interrupted.
`

const (
	exitMissed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends it at once.
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the parsed command line.
type options struct {
	fresh   bool
	since   string
	within  time.Duration // zero is as long as it takes
	workers int
	wanted  []string
}

// command executes the command line and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(args)
	help := fmt.Sprintf(usage, defaultWorkers(), resultsFile)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "breaks: %v\n\n%s", err, help)
		return exitUsage
	}
	err = run(ctx, o, stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "breaks: interrupted. The same command continues here.")
		return exitInterrupted
	case errors.As(err, &unknownError{}):
		fmt.Fprintf(stderr, "breaks: %v\n\n%s", err, help)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "breaks: %v\n", err)
		return exitMissed
	}
	return 0
}

func parseArgs(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("breaks", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // command prints the usage instead.
	flags.BoolVar(&o.fresh, "fresh", false, "")
	flags.StringVar(&o.since, "since", "", "")
	flags.DurationVar(&o.within, "within", 0, "")
	flags.IntVar(&o.workers, "workers", defaultWorkers(), "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.workers < 1 {
		return o, fmt.Errorf("--workers %d: at least one has to run", o.workers)
	}
	o.wanted = flags.Args()
	return o, nil
}

// defaultWorkers is one for each core. A test with a break mostly waits, but each worker has a
// control plane, and compiles and links the broken program.
func defaultWorkers() int { return runtime.NumCPU() }
