// Command demo plays the story of Lockstep on a real control plane, for a person
// at a terminal. "make demo" runs it.
//
// Each chapter has a file. A chapter does things to the cluster, lets Lockstep
// speak, and checks what it says about itself against the API server; one whose
// expectation does not hold ends the demo with exit code 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes of the demo.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInterrupted = 130
)

// chapters of the story, in order. Later ones find the cluster as the earlier
// ones left it.
func chapters() []chapter {
	return []chapter{
		{"Two inputs change, one rollout follows", oneRollout},
		{"What restarts nobody", restartsNobody},
		{"A change while Lockstep is away", whileAway},
		{"A change is held, and Lockstep says why", heldChange},
		{"An image is pushed, a ConfigMap changes, one rollout follows", pushedImage},
		{"Every revision keeps its configuration", ownConfiguration},
	}
}

func main() {
	ctrl.SetLogger(logr.Discard()) // what the client has to say is no part of the story
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Stdout, options{
		keep:   os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0",
		binary: os.Getenv("LOCKSTEP_BINARY"),
		quiet:  quietWindow(os.Getenv("DEMO_QUIET")),
		colour: isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
	})
	stop()
	os.Exit(code)
}

type options struct {
	// keep leaves the control plane up after the story.
	keep bool
	// binary is the lockstep to play with; empty means to build this checkout's.
	binary string
	// quiet is the quiet window of the story.
	quiet time.Duration
	// colour is for terminals.
	colour bool
}

// quietWindow is short for a reader, who has to wait for it; the product's default
// is 5 s. The test asks for another, in which the changes of a chapter fall also on
// a machine that is seconds late.
func quietWindow(asked string) time.Duration {
	if d, err := time.ParseDuration(asked); err == nil {
		return d
	}
	return 2 * time.Second
}

// run plays the story and returns the exit code.
func run(ctx context.Context, out io.Writer, o options) int {
	began := time.Now()
	p := newPrinter(out, o.colour)
	err := play(ctx, p, o)
	p.line("")
	switch {
	case err != nil:
		p.failure(err)
		return exitFailed
	case ctx.Err() != nil:
		p.line("Interrupted; everything is stopped.")
		return exitInterrupted
	}
	p.good(fmt.Sprintf("The end, after %s.", time.Since(began).Round(time.Second)))
	return exitOK
}

// play sets the stage, plays the chapters and clears the stage, whatever
// happened on it. That the reader interrupted it is no error.
func play(ctx context.Context, p *printer, o options) error {
	st, err := openStage(ctx, p, o)
	if err == nil {
		err = tell(ctx, &story{printer: p, stage: st})
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if st == nil {
		return err
	}
	return errors.Join(err, st.close(ctx))
}

func tell(ctx context.Context, s *story) error {
	for i, c := range chapters() {
		s.heading(fmt.Sprintf("%d. %s", i+1, c.title))
		if err := c.tell(ctx, s); err != nil {
			return fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err)
		}
	}
	return nil
}
