package run

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// runChild runs an agent that is also its application's parent.
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
			r.awaitAgent(ended, signals)
			return r.stopChild(context.WithoutCancel(ctx), signals)
		case sig := <-signals:
			s, ok := sig.(unix.Signal)
			if !ok || !r.forward(s) {
				continue
			}
			stopAgent()
			r.log.Info("stopping", "signal", unix.SignalName(s))
			r.awaitAgent(ended, signals)
			return r.stopChild(context.WithoutCancel(ctx), signals)
		}
	}
}

// awaitAgent waits for the agent's current step. That may be a restart, which grants the
// application its grace period; a second stop signal cuts it short.
func (r *runner) awaitAgent(ended <-chan error, signals <-chan os.Signal) {
	for {
		select {
		case <-ended:
			return
		case sig := <-signals:
			if s, ok := sig.(unix.Signal); ok && r.forward(s) {
				r.child.Kill()
			}
		}
	}
}

// lastWords makes sure that the application does not outlive a failed agent.
func (r *runner) lastWords(ctx context.Context, err error) error {
	if _, ended := errors.AsType[*podsync.ExitError](err); !ended {
		r.child.Stop(ctx)
	}
	return err
}

// forward passes a signal on. It returns whether the signal requests a stop.
func (r *runner) forward(sig unix.Signal) (stop bool) {
	if sig == unix.SIGTERM || sig == unix.SIGINT {
		return true
	}
	if sig == unix.SIGCHLD || sig == unix.SIGURG || sig == unix.SIGPIPE {
		return false // signals of the kernel and the Go runtime
	}
	if err := r.child.Signal(sig); err != nil {
		r.log.Debug("cannot forward a signal", "error", err)
	}
	return false
}

// stopChild ends the application within its grace period; a second stop signal shortens it.
// The exit code is the application's own.
func (r *runner) stopChild(ctx context.Context, signals <-chan os.Signal) error {
	if !r.child.Running() && r.child.Done() == nil {
		return nil // never started
	}
	hurry, hurryUp := context.WithCancel(ctx)
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
