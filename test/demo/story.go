package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// chapter is one part of the story.
type chapter struct {
	title string
	tell  func(context.Context, *story) error
}

// story is a chapter's way to print and act.
type story struct {
	*printer
	*stage
}

// say prints a text, and leaves time to read it.
func (s *story) say(ctx context.Context, text string) error {
	s.line("")
	for line := range strings.Lines(text) {
		s.line(strings.TrimRight(line, "\n"))
	}
	if s.unread {
		return nil
	}
	words := len(strings.Fields(text))
	return pause(ctx, min(time.Duration(words)*60*time.Millisecond, 2*time.Second))
}

// step makes one change to the cluster and reports it.
func (s *story) step(ctx context.Context, what string, do func(context.Context) error) error {
	s.line(s.painted(cyan, "you      ") + " " + what)
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// show prints a manifest or a list.
func (s *story) show(text string) {
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		s.line("    " + strings.TrimRight(line, "\n"))
	}
}

// pause waits, unless the reader interrupts the story.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// eventually polls until the check is done. A check that is not done returns why.
func eventually(ctx context.Context, check func(context.Context) (done bool, why string)) error {
	deadline := time.Now().Add(patience)
	for {
		done, why := check(ctx)
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %s", patience, why)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
