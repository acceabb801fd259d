// Command demo plays the story of Lockstep on a real control plane, at a terminal. "make
// demo" runs it.
//
// Each chapter has a file. A chapter changes the cluster, shows Lockstep's log, and checks
// the log against the API server. A chapter whose expectation does not hold ends the demo
// with exit code 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Exit codes of the demo.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// chapters of the story, in order. Later ones find the cluster as the earlier
// ones left it.
func chapters() []chapter {
	return []chapter{
		{"Two inputs change, one rollout follows", oneRollout},
		{"What restarts no pod", restartsNoPod},
		{"A change while Lockstep is down", whileDown},
		{"A change is held, and Lockstep says why", heldChange},
		{"A bad change reaches one of twelve workloads", badChange},
		{"An image is pushed, a ConfigMap changes, one rollout follows", pushedImage},
		{"Every revision keeps its configuration", ownConfiguration},
	}
}

const usage = `Plays the story of Lockstep. "make demo" builds and runs it.

Environment:
  CLUSTER=1                  play on the cluster of the current context, in a namespace of its own
  YES=1                      answer the question that CLUSTER=1 asks
  KEEP=1                     leave the control plane, or the namespace, at the end
  CHAPTERS=3                 play the first three chapters
  KUBEBUILDER_ASSETS=DIR     start etcd and kube-apiserver of this directory instead of compiling them
`

func main() {
	if len(os.Args) > 1 {
		fmt.Print(usage)
		if slices.Contains([]string{"-h", "--help"}, os.Args[1]) {
			os.Exit(exitOK)
		}
		os.Exit(exitUsage)
	}
	ctrl.SetLogger(logr.Discard()) // the client's log isn't part of the story
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Stdout, options{
		cluster:    isSet("CLUSTER"),
		keep:       isSet("KEEP"),
		yes:        isSet("YES"),
		terminal:   term.IsTerminal(int(os.Stdin.Fd())),
		in:         os.Stdin,
		chapters:   os.Getenv("CHAPTERS"),
		downloaded: os.Getenv(program.DownloadedEnv),
		binary:     os.Getenv("LOCKSTEP_BINARY"),
		gather:     gatherWindow(os.Getenv("DEMO_GATHER")),
		unread:     isSet("DEMO_UNREAD"),
		colour:     isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
	})
	stop()
	os.Exit(code)
}

// isSet reads a boolean variable.
func isSet(variable string) bool {
	value := os.Getenv(variable)
	return value != "" && value != "0"
}

type options struct {
	// cluster plays on the cluster of the current context.
	cluster bool
	// keep leaves the control plane up after the story, or the namespace.
	keep bool
	// yes skips the question; terminal is true when the reader can answer it, and in is where.
	yes, terminal bool
	in            io.Reader
	// chapters is the number of chapters to play, from the first; empty means all.
	chapters string
	// downloaded is a directory with programs of a control plane.
	downloaded string
	// binary is the lockstep to play with; empty means to build this checkout's.
	binary string
	// gather is the quiet window of the chapters in which two changes make one rollout.
	gather time.Duration
	// unread leaves out the pauses for reading.
	unread bool
	// colour is for terminals.
	colour bool
}

// gatherWindow is usually [quietWindow]. A test sets a longer one: on a busy machine the
// second change can be seconds late and still has to fall into the window of the first.
func gatherWindow(asked string) time.Duration {
	if d, err := time.ParseDuration(asked); err == nil {
		return d
	}
	return quietWindow
}

// run plays the story and returns the exit code.
func run(ctx context.Context, out io.Writer, o options) int {
	began := time.Now()
	p := newPrinter(out, o.colour)
	goOn, err := play(ctx, p, o)
	defer func() {
		for _, line := range goOn {
			p.line(line)
		}
	}()
	p.line("")
	refused, ok := errors.AsType[notPlayedError](err)
	switch {
	case ok:
		p.line("demo: " + refused.Error())
		return exitFailed
	case err != nil:
		p.failure(err)
		return exitFailed
	case ctx.Err() != nil:
		p.line("Interrupted; everything is stopped, and what it made is removed.")
		return exitInterrupted
	}
	p.good(fmt.Sprintf("The end, after %s.", time.Since(began).Round(time.Second)))
	return exitOK
}

// play sets the stage, plays the chapters and clears the stage, whatever happened on it. An
// interruption by the reader is not an error. It returns how to go on with a stage that is kept.
func play(ctx context.Context, p *printer, o options) (goOn []string, err error) {
	list, err := firstChapters(o.chapters)
	if err != nil {
		return nil, notPlayedError{err}
	}
	st, err := openStage(ctx, p, o)
	if err == nil {
		err = tell(ctx, &story{printer: p, stage: st}, list)
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if st == nil {
		return nil, err
	}
	goOn, unclear := st.close(ctx)
	return goOn, errors.Join(err, unclear)
}

// playsAll reports whether the last chapter is played.
func (o options) playsAll() bool {
	list, err := firstChapters(o.chapters)
	return err == nil && len(list) == len(chapters())
}

// firstChapters are as many as requested.
func firstChapters(asked string) ([]chapter, error) {
	all := chapters()
	if asked == "" {
		return all, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 || n > len(all) {
		return nil, fmt.Errorf("CHAPTERS=%s: say how many to play, 1 to %d", asked, len(all))
	}
	return all[:n], nil
}

// tell plays the chapters. It skips a chapter when the site lacks something for it.
func tell(ctx context.Context, s *story, list []chapter) error {
	for i, c := range list {
		s.heading(fmt.Sprintf("%d. %s", i+1, c.title))
		err := c.tell(ctx, s)
		if lacks, ok := errors.AsType[missingError](err); ok {
			s.line("")
			s.line(fmt.Sprintf("Chapter %d, %s, is left out: %v.", i+1, c.title, lacks))
			continue
		}
		if err != nil {
			return fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err)
		}
	}
	return nil
}
