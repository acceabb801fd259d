// Package configmapreload turns the flags of configmap-reload into the agent's
// configuration. It has no behaviour of its own.
package configmapreload

import (
	"errors"
	"flag"
	"io"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/syncrun"
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

// Parse reads the original's flags, with one dash or two.
func Parse(args []string, _ func(string) (string, bool)) (syncrun.Config, error) {
	var dirs, archives, urls list
	f := flag.NewFlagSet("configmap-reload", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&dirs, "volume-dir", "directory to watch; may be repeated")
	f.Var(&archives, "volume-dir-archive", "not supported")
	f.Var(&urls, "webhook-url", "URL to call; may be repeated")
	method := f.String("webhook-method", "POST", "method of the call")
	code := f.String("webhook-status-code", "200", "accepted status code")
	retries := f.Int("webhook-retries", 1, "tries before the agent is unhealthy")
	address := f.String("web.listen-address", ":9533", "address of metrics and probes")
	f.String("web.telemetry-path", "/metrics", "accepted and ignored: metrics are at /metrics")
	if err := f.Parse(args); err != nil {
		return syncrun.Config{}, err
	}
	c := syncrun.Default()
	codes, err := httpcall.ParseCodes(*code)
	c.Directories, c.App.Notify, c.App.HTTP.Method, c.App.HTTP.Codes = dirs, urls, *method, codes
	c.HealthAddr = *address
	// The kubelet swaps a whole set at once, so that there is nothing to wait for.
	c.Sync.Timing.Quiet, c.Sync.Timing.MaxFailures = 0, max(1, *retries)
	return c, errors.Join(err, check(dirs, archives, urls))
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
