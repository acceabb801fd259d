package application

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
	"github.com/lockstep-dev/lockstep/internal/agent/core/expofmt"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// probe is one way to query the application. final means that another query can't change the
// answer.
type probe interface {
	baseline(ctx context.Context) (string, error)
	ask(ctx context.Context, delivery podsync.Delivery, baseline string) (final bool, err error)
}

// Confirmer queries until the answer is right or the time is over.
type Confirmer struct {
	probe   probe
	timeout time.Duration
}

// NewConfirmer parses one way to query the application:
//
//	http://host:port/path                     an accepted status code; a URL may be followed by NAME=VALUE, see OptionNames
//	body:REGEXP@http://host:port/path         a body that matches
//	metric:NAME==VALUE@http://host/metrics    a metric
//	metric:NAME>before@http://host/metrics    a metric that grew since the reload
//	exec:command arguments                    a command that succeeds
//	workers:child, workers:name:nginx         new child processes since the reload
//	haproxy:/run/haproxy-master.sock          HAProxy's own count of reloads
func NewConfirmer(spec string, timeout time.Duration, settings Settings) (*Confirmer, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("confirm timeout %s: want a positive time", timeout)
	}
	p, err := newProbe(spec, settings)
	if err != nil {
		return nil, err
	}
	return &Confirmer{probe: p, timeout: timeout}, nil
}

func newProbe(spec string, settings Settings) (probe, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "http", "https":
		return newHTTPProbe(spec, settings, nil)
	case "body":
		pattern, url := cutURL(rest)
		if url == "" {
			return nil, missingURL(kind)
		}
		expr, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("confirm body: %w", err)
		}
		return newHTTPProbe(url, settings, matches(expr))
	case "metric":
		condition, url := cutURL(rest)
		if url == "" {
			return nil, missingURL(kind)
		}
		c, err := expofmt.ParseCondition(condition)
		if err != nil {
			return nil, fmt.Errorf("confirm metric: %w", err)
		}
		p, err := newHTTPProbe(url, settings, holds(c))
		if c.Before {
			return metricProbe{p, c}, err
		}
		return p, err
	case "exec":
		args, err := argv.Split(rest)
		if err != nil {
			return nil, fmt.Errorf("confirm exec: %w", err)
		}
		return commandProbe{settings, args}, nil
	case "workers":
		target, err := parseTarget(rest, settings)
		return workersProbe{target: target, child: settings.Child}, err
	case "haproxy":
		return haproxyProbe{socket: rest, timeout: settings.Timeout}, nil
	}
	return nil, fmt.Errorf("confirm %s: want a URL, body:…, metric:…, exec:…, workers:… or haproxy:…", beginning(spec))
}

// cutURL cuts before the last @http, because patterns may contain an @.
func cutURL(s string) (before, url string) {
	i := strings.LastIndex(s, "@http")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

func missingURL(kind string) error {
	return fmt.Errorf("confirm %s: add a URL, such as @http://127.0.0.1:9090/metrics", kind)
}

// Compares reports whether the answer is compared with the one before the notification, so
// it requires a notification.
func (c *Confirmer) Compares() bool {
	switch c.probe.(type) {
	case metricProbe, workersProbe, haproxyProbe:
		return true
	}
	return false
}

// Baseline is the application's answer before the notification.
func (c *Confirmer) Baseline(ctx context.Context) (string, error) {
	baseline, err := c.probe.baseline(ctx)
	if err != nil {
		return "", fmt.Errorf("before notifying the application: %w", unlessAsked(err))
	}
	return baseline, nil
}

// Confirm queries with growing pauses.
func (c *Confirmer) Confirm(ctx context.Context, delivery podsync.Delivery, baseline string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		final, err := c.probe.ask(ctx, delivery, baseline)
		switch {
		case err == nil:
			return nil
		case final:
			return fmt.Errorf("confirm: %w", err)
		case last == nil || ctx.Err() == nil: // a query cut off by the timeout has no answer
			last = err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("not confirmed within %s: %w", c.timeout, last)
		case <-timer.C:
		}
	}
}

type httpProbe struct {
	options httpcall.Options
	judge   func(body string) error
}

func newHTTPProbe(words string, settings Settings, judge func(string) error) (httpProbe, error) {
	o, err := settings.HTTP.parse(words)
	o.Method, o.Body = "GET", "" // a query must not change anything
	return httpProbe{o, judge}, err
}

func (httpProbe) baseline(context.Context) (string, error) { return "", nil }

func (h httpProbe) ask(ctx context.Context, _ podsync.Delivery, _ string) (bool, error) {
	if h.judge == nil {
		return false, httpcall.Probe(ctx, h.options)
	}
	body, err := httpcall.Call(ctx, h.options)
	if err != nil {
		return false, err
	}
	return false, h.judge(body)
}

func matches(expr *regexp.Regexp) func(string) error {
	return func(body string) error {
		if expr.MatchString(body) {
			return nil
		}
		return fmt.Errorf("the answer does not match %q", expr)
	}
}

func holds(c expofmt.Condition) func(string) error {
	return func(body string) error {
		return verdict(c, c.Samples(body), nil)
	}
}

func verdict(c expofmt.Condition, now, earlier map[string]float64) error {
	switch {
	case c.Holds(now, earlier):
		return nil
	case len(now) == 0:
		return fmt.Errorf("there is no metric %s", c.Metric)
	default:
		return fmt.Errorf("the metric %s is not %s", c.Metric, c)
	}
}

// metricProbe compares a metric with its value before the reload. A signal arrives some time
// after it is sent: a query right after sending it would see the old value.
type metricProbe struct {
	http      httpProbe
	condition expofmt.Condition
}

func (m metricProbe) samples(ctx context.Context) (map[string]float64, error) {
	body, err := httpcall.Call(ctx, m.http.options)
	return m.condition.Samples(body), err
}

func (m metricProbe) baseline(ctx context.Context) (string, error) {
	samples, err := m.samples(ctx)
	return compared + m.condition.Excerpt(samples), err
}

func (m metricProbe) ask(ctx context.Context, _ podsync.Delivery, baseline string) (bool, error) {
	if baseline == "" {
		return true, errUncompared
	}
	now, err := m.samples(ctx)
	if err != nil {
		return false, err
	}
	return false, verdict(m.condition, now, m.condition.Samples(baseline))
}

// compared marks a baseline as taken, even when it contains no sample.
const compared = "# before\n"

// errUncompared means that the agent was restarted between notification and query, so it has
// to notify again.
var errUncompared = errors.New("the state before the reload is not known")

type commandProbe struct {
	settings Settings
	args     []string
}

func (commandProbe) baseline(context.Context) (string, error) { return "", nil }

func (c commandProbe) ask(ctx context.Context, delivery podsync.Delivery, _ string) (bool, error) {
	output, err := c.settings.run(ctx, c.args, delivery)
	if err != nil {
		return false, &podsync.OutputError{Output: output, Err: err}
	}
	return false, nil
}

// workersProbe checks for new child processes: a master that refuses its new configuration
// keeps the old ones.
type workersProbe struct {
	target process.Target
	child  Child
}

func (w workersProbe) workers() ([]int, error) {
	if w.target == (process.Target{}) {
		pid := w.child.PID()
		if pid == 0 { // ChildrenOf(0) would list PID 1
			return nil, &process.AbsentError{Err: errors.New("the application isn't running")}
		}
		return process.ChildrenOf(pid), nil
	}
	return process.Children(w.target)
}

func (w workersProbe) baseline(context.Context) (string, error) {
	pids, err := w.workers()
	if err == nil && len(pids) == 0 {
		err = &process.AbsentError{Err: errors.New("the application hasn't started any worker processes yet")}
	}
	return fmt.Sprint(pids), err
}

func (w workersProbe) ask(_ context.Context, _ podsync.Delivery, baseline string) (bool, error) {
	if baseline == "" {
		return true, errUncompared
	}
	pids, err := w.workers()
	if err != nil {
		return false, err
	}
	before := strings.Fields(strings.Trim(baseline, "[]"))
	for _, pid := range pids {
		if !slices.Contains(before, strconv.Itoa(pid)) {
			return true, nil
		}
	}
	return false, errors.New("no new worker process appeared")
}

// haproxyProbe reads the master's own account of its reloads.
type haproxyProbe struct {
	socket  string
	timeout time.Duration
}

func (h haproxyProbe) baseline(ctx context.Context) (string, error) { return h.showProc(ctx) }

// showProc uses a short timeout: the master answers at once or is busy starting.
func (h haproxyProbe) showProc(ctx context.Context) (string, error) {
	return httpcall.Ask(ctx, h.socket, "show proc", min(h.timeout, 2*time.Second))
}

func (h haproxyProbe) ask(ctx context.Context, _ podsync.Delivery, baseline string) (bool, error) {
	answer, err := h.showProc(ctx)
	if err != nil {
		return false, err
	}
	now, ok := parseReloads(answer)
	before, known := parseReloads(baseline)
	switch {
	case !ok || !known:
		return false, errors.New("the master socket does not report reloads")
	case now.total <= before.total:
		return false, errors.New("haproxy hasn't reloaded yet")
	case now.failed > 0:
		return true, fmt.Errorf("haproxy rejected its configuration (%d failed reloads)", now.failed)
	}
	return true, nil
}

// reloads is the master's line in "show proc".
type reloads struct{ total, failed int }

// parseReloads reads "1234 master 3 [failed: 1] 0d00h00m05s 2.6.12".
func parseReloads(answer string) (reloads, bool) {
	for line := range strings.Lines(answer) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[1] != "master" {
			continue
		}
		total, err := strconv.Atoi(fields[2])
		if err != nil {
			return reloads{}, false
		}
		r := reloads{total: total}
		if len(fields) > 4 && fields[3] == "[failed:" {
			r.failed, err = strconv.Atoi(strings.TrimSuffix(fields[4], "]"))
		}
		return r, err == nil
	}
	return reloads{}, false
}
