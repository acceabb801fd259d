package run

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// DocumentMetrics registers the metrics of the controller, for their reference. They stay at zero.
func DocumentMetrics(r prometheus.Registerer) error {
	p := newParts(&Options{Follow: rollouts.DefaultOptions()}, nil, logr.Discard())
	rollouts.New(p.options.Follow, rollouts.Dependencies{Metrics: r, Gatekeepers: rollouts.Gatekeepers{Stops: p.records}, Now: func() time.Time { return time.Time{} }})
	announce.NewMetrics(r)
	notify.New(notify.Options{Metrics: r, Config: &notice.Config{}})
	images.NewMetrics(r, nil)
	r.MustRegister(images.NewCollector(images.New(images.Options{})), p.stops)
	revisions.New(revisions.DefaultOptions(), revisions.Dependencies{Metrics: r})
	return r.Register(monitoring.NewCollector(p.cache, p.records))
}
