package podsync

import "github.com/lockstep-dev/lockstep/internal/agent/core/expofmt"

// Metrics are the agent's numbers at this moment.
func (a *Agent) Metrics() []expofmt.Metric {
	a.reported.mu.Lock()
	s := a.reported.status
	attempts := expofmt.Metric{
		Name: "lockstep_sync_attempts_total", Type: expofmt.Counter,
		Help: "Steps of the pipeline by stage and result.",
	}
	for key, n := range a.reported.attempts {
		attempts.Samples = append(attempts.Samples, expofmt.Sample{
			Labels: map[string]string{"stage": string(key.stage), "result": key.result}, Value: float64(n),
		})
	}
	a.reported.mu.Unlock()
	metrics := []expofmt.Metric{
		generations(s), attempts,
		gauge("lockstep_sync_healthy", "1 unless the application is known not to run the published set.", flag(s.Healthy)),
		gauge("lockstep_sync_degraded", "1 when the newest content of the sources is not in use or cannot be read.", flag(s.Degraded)),
		gauge("lockstep_sync_failures", "Failed deliveries of the published set in a row.", float64(s.Failures)),
		gauge("lockstep_sync_files", "Files in the published set.", float64(s.Files)),
		gauge("lockstep_sync_bytes", "Size of the published set.", float64(s.Bytes)),
		gauge("lockstep_sync_source_bytes", "What the sources hold, each file in blocks of 4096 bytes.", float64(a.inventory.Weight())),
		gauge("lockstep_sync_limit_bytes", "What the sources may hold; 0 means no limit.", float64(a.opts.Rules.MaxBytes)),
		gauge("lockstep_sync_last_notify_timestamp_seconds", "When the application was last notified; 0 means never.", seconds(s)),
	}
	if a.parts.Age != nil {
		_, age := a.parts.Age()
		metrics = append(metrics, gauge("lockstep_sync_watch_age_seconds",
			"Time since the source heard of least recently showed a sign of life.", age.Seconds()))
	}
	return metrics
}

func generations(s Status) expofmt.Metric {
	m := expofmt.Metric{Name: "lockstep_sync_generation_info", Type: expofmt.Gauge, Help: "Which generation is observed, published and confirmed."}
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
