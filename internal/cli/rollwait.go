package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	// waitEvery is how often a rollout's progress is read, and readPatience limits a read.
	waitEvery    = time.Second
	readPatience = 30 * time.Second
	// startsWithin is how long an API server that has just started may refuse requests, because it doesn't know the
	// roles and kinds yet, and how long errors of an unknown kind may last.
	startsWithin = 15 * time.Second
)

// waitOptions are the flags for waiting until a rollout is done.
type waitOptions struct {
	enabled bool
	timeout time.Duration
	// limited is true if the command line has the timeout.
	limited bool
}

func (o *waitOptions) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&o.enabled, "wait", false, "wait until the rollout is done, even one that is already in progress, with its progress on standard error; exit with 1 if it fails")
	fs.DurationVar(&o.timeout, "timeout", 15*time.Minute, "with --wait: how long to wait for each workload; 0 for no limit")
}

func (o *waitOptions) validate() error {
	switch {
	case o.limited && !o.enabled:
		return usageError{errors.New("--timeout needs --wait: without it, the command doesn't wait for the rollout")}
	case o.timeout < 0:
		return usageError{fmt.Errorf("--timeout %s: must not be negative", o.timeout)}
	}
	return nil
}

// until waits until the rollout is done or failed, the time is over, or the user ends the command. The rollout itself
// goes on in any case.
func (o *waitOptions) until(ctx context.Context, w *waiting) error {
	if !o.enabled {
		return nil
	}
	limit := make(<-chan time.Time)
	if o.timeout > 0 {
		limit = time.After(o.timeout)
	}
	for {
		if done, err := w.look(ctx); done || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted; the rollout of %s continues", w.target)
		case <-limit:
			return fmt.Errorf("%s: the rollout is not done after %s (%s); it continues", w.target, o.timeout, w.said)
		case <-time.After(waitEvery):
		}
	}
}

// waiting is one wait for a rollout.
type waiting struct {
	target target
	client client.Reader
	env    Environment
	// idle is true if the command didn't roll out the workload, so there may be nothing to wait for.
	idle bool
	// template is the one that is rolled out, empty before the first look.
	template string
	// counts are the pods at the last progress, since when that was, and said is the last message.
	counts health.Counts
	since  time.Time
	said   string
	// lost is when the API server was last away, zero if it never was.
	lost time.Time
}

// unreadProgress is the last message while the API server doesn't answer.
const unreadProgress = "its progress can't be read"

// look reads the workload once, and reports whether the wait is over.
func (w *waiting) look(ctx context.Context) (done bool, err error) {
	reading, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	found, _, err := cluster.ReadWorkload(reading, w.client, settings.Native{}, w.target.kind, w.target.ObjectKey)
	switch {
	case err != nil && w.mayPass(err):
		return false, w.reportUnread(err)
	case apierrors.IsNotFound(err), err == nil && found.Deleting:
		return false, fmt.Errorf("%s was deleted during its rollout", w.target)
	case err != nil:
		return false, fmt.Errorf("read the progress of %s: %w; the rollout continues", w.target, err)
	}
	template := found.Template().Sum
	if w.template != "" && template != w.template {
		return false, fmt.Errorf("%s: the rollout was replaced: its pod template has changed", w.target)
	}
	w.template = template
	if now := found.Status.Counts; now != w.counts {
		w.counts, w.since = now, w.env.Now()
	}
	return w.report(health.Of(found.Status.Status, w.env.Now().Sub(w.since)))
}

// mayPass reports whether the next read may succeed: the API server was away or said that it can't answer now, or that was
// a moment ago. An error of an unknown kind may come from a restart, too, but then it doesn't last.
func (w *waiting) mayPass(err error) bool {
	now := w.env.Now()
	_, answered := errors.AsType[*apierrors.StatusError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch known := answered || untrusted || meta.IsNoMatchError(err); {
	case answered && access.IsTransient(err), isOutage(err):
		w.lost = now
	case !known && w.said != unreadProgress: // The first in a row.
		w.lost = now
	}
	return !w.lost.IsZero() && now.Sub(w.lost) < startsWithin
}

// isOutage reports whether the network or the API server's process ended a request without an answer. An alert of TLS also
// arrives as an error of the network, but it is an answer: a certificate is refused.
func isOutage(err error) bool {
	if network, is := errors.AsType[*net.OpError](err); is {
		return network.Op != "remote error" && network.Op != "local error"
	}
	var limited interface{ Timeout() bool }
	return errors.As(err, &limited) && limited.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// reportUnread reports once in a row that the progress can't be read.
func (w *waiting) reportUnread(err error) error {
	if w.said == unreadProgress {
		return nil
	}
	w.said = unreadProgress
	return say(w.env.Stderr, "%s: %s, trying again: %v", w.target, unreadProgress, err)
}

// report writes each message once, and ends the wait for a state that doesn't change by itself.
func (w *waiting) report(h health.Health) (done bool, err error) {
	switch h.State {
	case health.Done:
		return true, say(w.env.Stdout, "%s: the rollout is done: %s", w.target, h.Message)
	case health.Failed:
		return true, fmt.Errorf("%s: the rollout failed: %s", w.target, h.Message)
	case health.Unknown:
		if w.idle {
			return true, nil
		}
		return true, say(w.env.Stderr, "note: %s: whether the rollout is done isn't known: %s", w.target, h.Message)
	case health.Paused, health.ByHand: // They last until a user acts.
		if w.idle {
			return true, say(w.env.Stderr, "%s: %s", w.target, h.Message)
		}
	case health.Progressing:
	}
	if h.Message == w.said {
		return false, nil
	}
	w.said = h.Message
	return false, say(w.env.Stderr, "%s: %s", w.target, h.Message)
}
