package syncrun

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
)

// runChild is the life of an agent that is also its application's parent.
func (r *runner) runChild(ctx context.Context) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	defer signal.Stop(signals)
	agentCtx, stopAgent := context.WithCancel(ctx)
	defer stopAgent()
	ended := make(chan error, 1)
	go func() { ended <- r.agent.Run(agentCtx) }()
	for {
		select {
		case err := <-ended:
			return r.lastWords(ctx, err)
		case <-ctx.Done():
			stopAgent()
			<-ended
			return r.stopChild(signals)
		case sig := <-signals:
			s, ok := sig.(unix.Signal)
			if !ok || !r.forward(s) {
				continue
			}
			stopAgent()
			<-ended
			return r.stopChild(signals)
		}
	}
}

// lastWords makes sure that the application does not outlive a failed agent.
func (r *runner) lastWords(ctx context.Context, err error) error {
	var exit *podsync.ExitError
	if !errors.As(err, &exit) {
		r.child.Stop(ctx)
	}
	return err
}

// forward passes a signal on. It says whether the signal asks to stop.
func (r *runner) forward(sig unix.Signal) (stop bool) {
	switch sig {
	case unix.SIGTERM, unix.SIGINT:
		return true
	case unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE:
		return false // the kernel's and the Go runtime's own business
	default:
		if err := r.child.Signal(sig); err != nil {
			r.log.Debug("a signal was not passed on", "error", err)
		}
		return false
	}
}

// stopChild ends the application within its grace period; a second request
// shortens it. The exit code is the application's own.
func (r *runner) stopChild(signals <-chan os.Signal) error {
	if !r.child.Running() && r.child.Done() == nil {
		return nil // never started
	}
	hurry, hurryUp := context.WithCancel(context.Background()) //nolint:forbidigo // the caller's context has ended: that is why we stop
	defer hurryUp()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.child.Stop(hurry)
	}()
	for {
		select {
		case <-stopped:
			return &podsync.ExitError{Code: r.child.ExitCode()}
		case sig := <-signals:
			if s, ok := sig.(unix.Signal); ok && r.forward(s) {
				hurryUp()
			}
		}
	}
}
