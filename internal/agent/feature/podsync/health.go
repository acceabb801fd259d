package podsync

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/expofmt"
)

// HealthCheck is one part of the agent's health.
type HealthCheck struct {
	Name string
	// Problem is empty when the part is healthy.
	Problem string
}

// applicationFailed reports that the application is known not to run the published set: all
// allowed notifications failed. After a roll-back it stays true until the application has
// loaded the restored set. An application that can't be reached doesn't count: it is
// starting and will read the files itself, perhaps restarted because of this very probe.
// While a roll-back fails, the agent doesn't query the application at all.
func (a *Agent) applicationFailed(s Status) bool {
	if s.RollBackFailures > 0 {
		return true
	}
	if s.Away(a.parts.Now(), a.opts.Timing) {
		return false
	}
	if s.Barred != "" && !s.Settled(a.parts.Confirmer != nil) {
		return true
	}
	return s.Published != "" && s.Failures >= a.opts.Timing.MaxFailures
}

// Health reports whether the application runs the published set and whether the sources
// respond.
func (a *Agent) Health() []HealthCheck {
	a.reported.mu.Lock()
	s := a.reported.status
	a.reported.mu.Unlock()
	application := HealthCheck{Name: "application"}
	switch {
	case !a.applicationFailed(s):
	case s.RollBackFailures > 0:
		application.Problem = fmt.Sprintf("generation %s cannot be rolled back: %s", s.Published, s.Message)
	case s.Barred != "":
		application.Problem = fmt.Sprintf("hasn't loaded generation %s, which was restored to replace %s: %s", s.Published, s.Barred, s.Message)
	default:
		application.Problem = fmt.Sprintf("isn't running generation %s after %d attempts: %s", s.Published, s.Failures, s.Message)
	}
	return []HealthCheck{application, {Name: "source", Problem: a.stalled()}}
}

// stalled names a source that has not responded, or could not be read, for too long.
func (a *Agent) stalled() string {
	if a.parts.Age != nil {
		if name, age := a.parts.Age(); age > a.opts.Stall {
			return fmt.Sprintf("%s has been silent for %s", name, age.Round(time.Second))
		}
	}
	if name, age, why := a.inventory.Failing(); age > a.opts.Stall {
		return fmt.Sprintf("%s has been unreadable for %s: %s", name, age.Round(time.Second), why)
	}
	return ""
}

// Startup is healthy once the first set is in place and the application, if it is the
// agent's own child, has been started. An earlier agent's set counts once the sources were
// read, or could not be read in time.
func (a *Agent) Startup() []HealthCheck {
	a.reported.mu.Lock()
	defer a.reported.mu.Unlock()
	f := HealthCheck{Name: "published"}
	early := !a.reported.complete && a.parts.Now().Sub(a.start.begun) < sourcePatience
	pending := a.parts.Child != nil && a.parts.Child.Done() == nil
	if a.reported.status.Published == "" || early || pending {
		f.Problem = "no set of files is in place yet: " + string(a.reported.status.Reason)
		if a.reported.status.Message != "" {
			f.Problem += ": " + a.reported.status.Message
		}
	}
	return []HealthCheck{f}
}

// Ready is startup and health together.
func (a *Agent) Ready() []HealthCheck { return append(a.Startup(), a.Health()...) }

// own is the health of the agent without its application.
func (a *Agent) own() []HealthCheck {
	return append(a.Startup(), HealthCheck{Name: "source", Problem: a.stalled()})
}

// Handler serves /healthz, /readyz, /startupz and /metrics. A single check has its own path,
// such as /healthz/application.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, findings := range map[string]func() []HealthCheck{"/healthz": a.Health, "/readyz": a.Ready, "/startupz": a.Startup} {
		whole := findings
		if path == "/healthz" && a.opts.ApplicationApart {
			whole = a.own
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answer(w, whole()) })
		mux.HandleFunc("GET "+path+"/{part}", func(w http.ResponseWriter, r *http.Request) {
			part := slices.DeleteFunc(findings(), func(f HealthCheck) bool { return f.Name != r.PathValue("part") })
			if len(part) == 0 {
				http.NotFound(w, r)
				return
			}
			answer(w, part)
		})
	}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(expofmt.Append(nil, a.Metrics()...)) // a write fails only when the client is gone
	})
	return mux
}

func answer(w http.ResponseWriter, findings []HealthCheck) {
	var text strings.Builder
	code := http.StatusOK
	for _, f := range findings {
		if f.Problem == "" {
			fmt.Fprintf(&text, "%s: ok\n", f.Name)
			continue
		}
		code = http.StatusServiceUnavailable
		fmt.Fprintf(&text, "%s: %s\n", f.Name, f.Problem)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text.String())) // a write fails only when the client is gone
}
