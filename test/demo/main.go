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
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Stdout, options{
		keep:   os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0",
		colour: isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
	})
	stop()
	os.Exit(code)
}

type options struct {
	// keep leaves the control plane up after the story.
	keep bool
	// colour is for terminals.
	colour bool
}

// run plays the story and returns the exit code.
func run(ctx context.Context, out io.Writer, o options) int {
	began := time.Now()
	p := newPrinter(out, o.colour)
	err := play(ctx, p, o)
	switch {
	case ctx.Err() != nil:
		p.line("")
		p.line("Interrupted; everything is stopped.")
		return exitInterrupted
	case err != nil:
		p.line("")
		p.failure(err)
		return exitFailed
	}
	p.line("")
	p.good(fmt.Sprintf("The end, after %s.", time.Since(began).Round(time.Second)))
	return exitOK
}

// play raises the curtain, plays the chapters and clears the stage, whatever
// happened on it.
func play(ctx context.Context, p *printer, o options) (err error) {
	st, err := openStage(ctx, p, o.keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close(ctx)) }()
	s := &story{printer: p, stage: st}
	for i, c := range chapters() {
		p.heading(fmt.Sprintf("%d. %s", i+1, c.title))
		if err := c.tell(ctx, s); err != nil {
			return fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err)
		}
	}
	return nil
}
