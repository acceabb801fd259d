// Package configmapreload translates the flags of configmap-reload into the agent's
// configuration. It has no behaviour of its own.
package configmapreload

import (
	"errors"
	"flag"
	"io"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

// Name is the program's executable, and Short what it does.
const (
	Name  = "configmap-reload"
	Short = "jimmidyson/configmap-reload: a request when a mounted directory changes"
)

// list is a flag that may be repeated.
type list []string

// String shows the values.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds a value.
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// values are the original's flags.
type values struct {
	dirs, archives, urls  list
	method, code, address string
	retries               int
}

// Usage lists the flags.
func Usage() string {
	var text strings.Builder
	f, _ := newFlagSet()
	f.SetOutput(&text)
	f.PrintDefaults()
	return "Replaces configmap-reload: watches mounted directories and calls a URL when they change.\n\n" +
		"Usage:\n  lockstep-sync configmap-reload --volume-dir=DIR --webhook-url=URL\n\nFlags, with one dash or two:\n" + text.String()
}

func newFlagSet() (*flag.FlagSet, *values) {
	v := &values{}
	f := flag.NewFlagSet(Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&v.dirs, "volume-dir", "directory to watch; may be repeated")
	f.Var(&v.archives, "volume-dir-archive", "not supported: a flag of the fork config-reloader")
	f.Var(&v.urls, "webhook-url", "URL to call; may be repeated")
	f.StringVar(&v.method, "webhook-method", "POST", "HTTP method of the call")
	f.StringVar(&v.code, "webhook-status-code", "200", "accepted status code")
	f.IntVar(&v.retries, "webhook-retries", 1, "attempts before the agent is unhealthy")
	f.StringVar(&v.address, "web.listen-address", ":9533", "address for metrics and probes")
	f.String("web.telemetry-path", "/metrics", "accepted and ignored: metrics are at /metrics")
	return f, v
}

// Parse parses the original's flags, with one dash or two.
func Parse(args []string, _ func(string) (string, bool)) (run.Config, error) {
	f, v := newFlagSet()
	if err := f.Parse(args); err != nil {
		return run.Config{}, err
	}
	c := run.Default()
	c.Sync.Rules.MaxBytes = run.Guard
	codes, err := httpcall.ParseCodes(v.code)
	c.Directories, c.App.HTTP.Method, c.App.HTTP.Codes = v.dirs, v.method, codes
	// The original has one method and one code for all of its URLs.
	for _, url := range v.urls {
		spec, ok := application.Request(url, "method="+v.method, "codes="+v.code)
		if !ok {
			err = errors.Join(err, errors.New("--webhook-url: want http://host:port/path"))
		}
		c.App.Notify = append(c.App.Notify, spec)
	}
	c.Health = listener.Address{Value: v.address, Setting: "--web.listen-address"}
	c.Sync.InitialNotify = podsync.NotifyNever // as in the original, the first call is for the first change
	// The kubelet swaps a whole set at once, so there is nothing to wait for.
	c.Sync.Timing.Quiet, c.Sync.Timing.MaxFailures = 0, max(1, v.retries)
	return c, errors.Join(err, check(v.dirs, v.archives, v.urls))
}

func check(dirs, archives, urls list) error {
	var mistakes []error
	if len(dirs) == 0 {
		mistakes = append(mistakes, errors.New("--volume-dir is missing"))
	}
	if len(urls) == 0 {
		mistakes = append(mistakes, errors.New("--webhook-url is missing"))
	}
	if len(archives) > 0 {
		mistakes = append(mistakes, errors.New("--volume-dir-archive is not supported"))
	}
	return errors.Join(mistakes...)
}
