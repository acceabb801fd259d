package cli

import (
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// Document returns the whole command line, for its reference. It is not run.
func Document() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return newRoot(Environment{Stdout: io.Discard, Stderr: io.Discard, Lookup: nothing, Version: "dev"})
}

// DocumentMetrics registers the metrics of "lockstep controller", for their
// reference. They stay at zero.
func DocumentMetrics(r prometheus.Registerer) error {
	p, err := newParts(&controllerOptions{follow: follow.DefaultOptions()}, nil, logr.Discard())
	if err != nil {
		return err
	}
	follow.New(p.options.follow, follow.Dependencies{Metrics: r, Now: func() time.Time { return time.Time{} }})
	images.NewMetrics(r, nil)
	r.MustRegister(images.NewCollector(images.New(images.Options{})))
	revisions.New(revisions.DefaultOptions(), revisions.Dependencies{Metrics: r})
	return r.Register(cluster.NewCollector(p.cache, p.records))
}
