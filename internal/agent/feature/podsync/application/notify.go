package application

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// Child is the agent's own child, for signals and restarts; nil when it has none.
type Child interface {
	Notify(sig unix.Signal) error
	Restart(ctx context.Context) error
	PID() int
}

// Settings are shared by all ways of reaching the application.
type Settings struct {
	HTTP HTTP
	// Timeout bounds commands and socket queries.
	Timeout time.Duration
	Parent  *process.Parent
	Child   Child
}

// run runs a command for a delivery.
func (s Settings) run(ctx context.Context, args []string, delivery podsync.Delivery) (string, error) {
	return s.Parent.Run(ctx, process.Command{
		Args:    argv.Expand(args, map[string]string{"dir": delivery.Dir, "generation": delivery.Generation}),
		Env:     []string{"LOCKSTEP_DIR=" + delivery.Dir, "LOCKSTEP_GENERATION=" + delivery.Generation, "LOCKSTEP_CHANGED_FILES=" + changedFiles(delivery)},
		Timeout: s.Timeout,
	})
}

// changedFiles lists the paths, one per line. The kernel limits a variable to 128 KiB, so a
// longer list is left out.
func changedFiles(delivery podsync.Delivery) string {
	const limit = 100 << 10
	list := strings.Join(delivery.Changed, "\n")
	if len(list) > limit {
		return ""
	}
	return list
}

// Checker runs a command on a staged generation.
type Checker struct {
	settings Settings
	args     []string
}

// NewChecker parses the command line of a check.
func NewChecker(line string, settings Settings) (*Checker, error) {
	args, err := argv.Split(line)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return &Checker{settings: settings, args: args}, nil
}

// Check runs the command and returns its output.
func (c *Checker) Check(ctx context.Context, delivery podsync.Delivery) (string, error) {
	return c.settings.run(ctx, c.args, delivery)
}

// NewNotifier parses one way to notify the application:
//
//	http://host:port/path [NAME=VALUE…] a request; see OptionNames
//	signal:HUP                         to the agent's own child
//	signal:HUP@pidfile:/run/x.pid      to the process in a pidfile
//	signal:HUP@name:nginx              to the process of that name
//	exec:command arguments             a command
//	attempt:command arguments          a command whose failure is ignored
//	socket:/run/x.sock:line            a line on a unix socket
//	restart                            starts the agent's own child again
func NewNotifier(spec string, settings Settings) (podsync.Notifier, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "http", "https":
		o, err := settings.HTTP.parse(spec)
		return httpNotifier{o}, err
	case "signal":
		return newSignalNotifier(rest, settings)
	case "exec", "attempt":
		args, err := argv.Split(rest)
		if err != nil {
			return nil, fmt.Errorf("notify %s: %w", kind, err)
		}
		command := commandNotifier{settings, args}
		if kind == "attempt" {
			return attemptNotifier{command}, nil
		}
		return command, nil
	case "socket":
		return newSocketNotifier(rest, settings)
	case "restart":
		if settings.Child == nil {
			return nil, errors.New("notify restart: there is no child; add its command after --")
		}
		return restartNotifier{settings.Child}, nil
	}
	return nil, fmt.Errorf("notify %s: want a URL, signal:…, exec:…, socket:… or restart", beginning(spec))
}

// beginning shows only the word before the colon of a spec that can't be parsed: the rest
// may be a URL with a password.
func beginning(spec string) string {
	kind, _, found := strings.Cut(spec, ":")
	if !found || strings.ContainsAny(kind, "@ ") {
		return "(unreadable)"
	}
	return strconv.Quote(kind + ":…")
}

type httpNotifier struct{ options httpcall.Options }

// Tell sends the request.
func (h httpNotifier) Notify(ctx context.Context, _ podsync.Delivery) (bool, error) {
	err := httpcall.Send(ctx, h.options)
	if late, ok := errors.AsType[*httpcall.UnansweredError](err); ok {
		return false, &podsync.UnansweredError{Err: late, Patience: late.Timeout, Answer: late.Answer, Abandon: late.Abandon}
	}
	return true, unlessAsked(err)
}

// unlessAsked marks an error which only means that the application could not be queried. 503
// means that it is not ready.
func unlessAsked(err error) error {
	_, silent := errors.AsType[*httpcall.NoAnswerError](err)
	_, late := errors.AsType[*httpcall.SilentError](err)
	_, absent := errors.AsType[*process.AbsentError](err)
	status, answered := errors.AsType[*httpcall.StatusError](err)
	if silent || late || absent || (answered && status.Code == http.StatusServiceUnavailable) {
		return &podsync.UnreachableError{Err: err}
	}
	return err
}

type commandNotifier struct {
	settings Settings
	args     []string
}

// Tell runs the command. Only the status file shows the output of a failing one.
func (c commandNotifier) Notify(ctx context.Context, delivery podsync.Delivery) (bool, error) {
	output, err := c.settings.run(ctx, c.args, delivery)
	if err != nil {
		return false, &podsync.OutputError{Output: output, Err: err}
	}
	return true, nil
}

// attemptNotifier runs a command whose failure doesn't count: a predecessor's script, whose
// failures the predecessor ignored.
type attemptNotifier struct{ commandNotifier }

// Tell runs the command.
func (a attemptNotifier) Notify(ctx context.Context, delivery podsync.Delivery) (bool, error) {
	if _, err := a.commandNotifier.Notify(ctx, delivery); err != nil {
		return false, &podsync.ToleratedError{Err: err}
	}
	return true, nil
}

type signalNotifier struct {
	signal unix.Signal
	target process.Target // empty means the child
	child  Child
}

func newSignalNotifier(spec string, settings Settings) (podsync.Notifier, error) {
	name, to, _ := strings.Cut(spec, "@")
	sig, err := process.ParseSignal(name)
	if err != nil {
		return nil, err
	}
	target, err := parseTarget(to, settings)
	return signalNotifier{signal: sig, target: target, child: settings.Child}, err
}

// parseTarget parses child, pidfile:PATH, name:NAME or all:NAME; empty means the child.
func parseTarget(s string, settings Settings) (process.Target, error) {
	kind, value, _ := strings.Cut(s, ":")
	switch kind {
	case "", "child":
		if settings.Child == nil {
			return process.Target{}, errors.New("there is no child to signal: add its command after --, or a target such as @name:nginx or @pidfile:/run/nginx.pid")
		}
		return process.Target{}, nil
	case "pidfile":
		return process.Target{Pidfile: value}, process.Target{Pidfile: value}.Validate()
	case "name", "all":
		return process.Target{Name: value, All: kind == "all"}, process.Target{Name: value}.Validate()
	}
	return process.Target{}, fmt.Errorf("process %q: want child, pidfile:PATH, name:NAME or all:NAME", s)
}

// Tell sends the signal, which doesn't show whether it had an effect.
func (s signalNotifier) Notify(context.Context, podsync.Delivery) (bool, error) {
	if s.target == (process.Target{}) {
		return false, unlessAsked(s.child.Notify(s.signal))
	}
	return false, unlessAsked(process.Signal(s.target, s.signal))
}

type socketNotifier struct {
	settings     Settings
	socket, line string
}

func newSocketNotifier(spec string, settings Settings) (podsync.Notifier, error) {
	socket, line, ok := strings.Cut(spec, ":")
	if !ok || socket == "" || line == "" {
		return nil, errors.New("notify socket: want socket:PATH:LINE")
	}
	return socketNotifier{settings, socket, line}, nil
}

// Tell sends the line. A confirmation judges the answer.
func (s socketNotifier) Notify(ctx context.Context, _ podsync.Delivery) (bool, error) {
	_, err := httpcall.Ask(ctx, s.socket, s.line, s.settings.Timeout)
	if _, late := errors.AsType[*httpcall.SilentError](err); late {
		return false, nil // it was notified, and may be working
	}
	return false, unlessAsked(err)
}

type restartNotifier struct{ child Child }

// Tell restarts the child.
func (r restartNotifier) Notify(ctx context.Context, _ podsync.Delivery) (bool, error) {
	return false, r.child.Restart(ctx)
}
