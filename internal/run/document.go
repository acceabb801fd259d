package run

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// DocumentMetrics registers the metrics of the controller, for their reference. They stay at zero.
func DocumentMetrics(r prometheus.Registerer) error {
	p := newParts(&Options{Follow: follow.DefaultOptions()}, nil, logr.Discard())
	follow.New(p.options.Follow, follow.Dependencies{Metrics: r, Now: func() time.Time { return time.Time{} }})
	announce.NewMetrics(r)
	images.NewMetrics(r, nil)
	r.MustRegister(images.NewCollector(images.New(images.Options{})))
	revisions.New(revisions.DefaultOptions(), revisions.Dependencies{Metrics: r})
	return r.Register(monitoring.NewCollector(p.cache, p.records))
}
