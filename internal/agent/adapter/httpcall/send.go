package httpcall

import (
	"context"
	"fmt"
	"io"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// UnansweredError is a request that was sent completely and not answered in time. The
// connection stays open: the server is still working, or hangs.
type UnansweredError struct {
	name string
	// Timeout is how long the caller waited for an answer.
	Timeout time.Duration
	// Answer delivers the late answer, once: nil when its code is accepted.
	Answer <-chan error
	// Abandon closes the connection. It may be called more than once.
	Abandon func()
}

// Error states that the request was sent.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s: sent, not answered within %s", e.name, e.Timeout)
}

// Send makes a request and ignores the body of the answer. A timeout after the request was
// sent doesn't cancel it: the error is then an *UnansweredError, which delivers the answer
// later. Closing the connection would lose the only way to learn how the work ended, and
// some servers abort the work with it. The code is the answer. For those servers, Send keeps
// reading an endless body for another timeout, while the caller continues.
func Send(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { sent.Store(info.Err == nil) },
	})
	answer := make(chan error, 1)
	go func() {
		defer cancel()
		err := exchange(ctx, o, func(body io.Reader) error {
			answer <- nil
			defer time.AfterFunc(o.Timeout, cancel).Stop()
			_, _ = io.Copy(io.Discard, io.LimitReader(body, bodyLimit)) // an error here doesn't change the answer
			return nil
		})
		if err != nil {
			answer <- o.named(err)
		}
	}()
	timer := time.NewTimer(o.Timeout)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
	}
	if sent.Load() {
		return &UnansweredError{name: o.method() + " " + o.Name(), Timeout: o.Timeout, Answer: answer, Abandon: cancel}
	}
	cancel()
	<-answer
	return o.named(&NoAnswerError{Err: fmt.Errorf("not sent within %s: %w", o.Timeout, context.DeadlineExceeded)})
}
