package podsync

import (
	"maps"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/expofmt"
)

// numbers are the values behind the metrics.
type numbers struct {
	status        Status
	attempts      map[attempt]int
	weight, limit int64
	// age is nil without API sources.
	age *time.Duration
}

// Metrics are the agent's numbers at this moment.
func (a *Agent) Metrics() []expofmt.Metric {
	a.reported.mu.Lock()
	n := numbers{status: a.reported.status, attempts: maps.Clone(a.reported.attempts)}
	a.reported.mu.Unlock()
	n.weight, n.limit = a.inventory.Weight(), a.opts.Rules.MaxBytes
	if a.parts.Age != nil {
		_, age := a.parts.Age()
		n.age = &age
	}
	return n.metrics()
}

// DocumentMetrics lists every metric with all of its labels, for documentation.
func DocumentMetrics() []expofmt.Metric {
	return numbers{attempts: map[attempt]int{{}: 0}, age: new(time.Duration)}.metrics()
}

func (n numbers) metrics() []expofmt.Metric {
	s := n.status
	attempts := expofmt.Metric{
		Name: "lockstep_sync_attempts_total", Type: expofmt.Counter,
		Help: "Pipeline steps by stage and result (ok, failed).",
	}
	for key, count := range n.attempts {
		attempts.Samples = append(attempts.Samples, expofmt.Sample{
			Labels: map[string]string{"stage": string(key.stage), "result": key.result}, Value: float64(count),
		})
	}
	metrics := []expofmt.Metric{
		generations(s), attempts,
		gauge("lockstep_sync_healthy", "0 when the application is known not to run the published set, otherwise 1.", flag(s.Healthy)),
		gauge("lockstep_sync_degraded", "1 when the newest source content isn't in use or can't be read, otherwise 0.", flag(s.Degraded)),
		gauge("lockstep_sync_failures", "Consecutive failed deliveries of the published set.", float64(s.Failures)),
		gauge("lockstep_sync_files", "Files in the published set.", float64(s.Files)),
		gauge("lockstep_sync_bytes", "Size of the published set in bytes.", float64(s.Bytes)),
		gauge("lockstep_sync_source_bytes", "Total size of the sources, counting each file in blocks of 4096 bytes.", float64(n.weight)),
		gauge("lockstep_sync_limit_bytes", "Maximum total size of the sources; 0 means no limit.", float64(n.limit)),
		gauge("lockstep_sync_last_notify_timestamp_seconds", "Unix time of the last notification of the application; 0 means never.", seconds(s)),
	}
	if n.age != nil {
		metrics = append(metrics, gauge("lockstep_sync_watch_age_seconds",
			"Time since the last response from the source that has been silent longest.", n.age.Seconds()))
	}
	return metrics
}

func generations(s Status) expofmt.Metric {
	m := expofmt.Metric{Name: "lockstep_sync_generation_info", Type: expofmt.Gauge, Help: "Generation that is observed, published and confirmed, as a label; the value is always 1."}
	for stage, id := range map[string]string{"observed": s.Observed, "published": s.Published, "confirmed": s.Confirmed} {
		m.Samples = append(m.Samples, expofmt.Sample{Labels: map[string]string{"stage": stage, "generation": id}, Value: 1})
	}
	return m
}

func gauge(name, help string, value float64) expofmt.Metric {
	return expofmt.Metric{Name: name, Help: help, Type: expofmt.Gauge, Samples: []expofmt.Sample{{Value: value}}}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(s Status) float64 {
	if s.LastNotify.IsZero() {
		return 0
	}
	return float64(s.LastNotify.UnixMilli()) / 1000
}
