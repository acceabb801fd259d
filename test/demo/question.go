package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// notPlayedError explains why the story does not start, and what to do.
type notPlayedError struct{ error }

// Unwrap returns the cause, which may be the reader's Ctrl-C.
func (n notPlayedError) Unwrap() error { return n.error }

// errDeclined is the reader's no.
var errDeclined = errors.New("not played: nothing was created")

// agree asks the reader, unless the command line has the answer.
func (o options) agree(ctx context.Context, p *printer, question string) error {
	switch {
	case o.yes:
		return nil
	case !o.terminal:
		return errors.New("there is no terminal to ask at: say yes with YES=1")
	}
	_, _ = io.WriteString(p, question+" [y/N] ")
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(o.in).ReadString('\n') // No answer means no.
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done(): // Reading a terminal does not end with Ctrl-C.
		return context.Cause(ctx)
	}
}
