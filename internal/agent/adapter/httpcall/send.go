package httpcall

import (
	"context"
	"fmt"
	"io"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// UnansweredError is a request that reached the other side whole and was not
// answered in time. It is still open: the other side is at work, or hangs.
type UnansweredError struct {
	name string
	// Timeout is how long an answer was waited for.
	Timeout time.Duration
	// Answer gives the late answer, once: nil when its code is accepted.
	Answer <-chan error
	// Abandon closes the connection. It may be called more than once.
	Abandon func()
}

// Error says that the request is not lost.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s: sent, and not answered within %s", e.name, e.Timeout)
}

// Send makes a request whose answer's body does not matter. Time that runs out
// after the request was sent does not end it: its error is then an
// *UnansweredError, through which the answer can be had later. Closing the
// connection would take the only way to learn how the work ended, and some
// servers drop the work with it. The code is the answer: a body that does not end is
// read for as long again, for the same servers, and no caller waits for it.
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
			_, _ = io.Copy(io.Discard, io.LimitReader(body, bodyLimit)) // whatever it is, it changes nothing
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
