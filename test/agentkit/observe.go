package agentkit

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// WantFiles waits until exactly these files are visible.
func (a *Agent) WantFiles(want map[string]string) {
	a.t.Helper()
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		got := Files(a.Root)
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("files are %v, want %v\n%s", got, want, a.Stderr())
	})
}

// Probe queries the agent's health server.
func (a *Agent) Probe(path string) (int, string) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, "http://"+a.Addr+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// WantProbe waits until a probe answers with a code, and returns the answer's body.
func (a *Agent) WantProbe(path string, code int) string {
	a.t.Helper()
	var body string
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		var got int
		got, body = a.Probe(path)
		return got == code, fmt.Sprintf("%s answers %d %s, want %d\n%s", path, got, body, code, a.Stderr())
	})
	return body
}

// Metric finds one sample; a missing one is empty.
func (a *Agent) Metric(sample string) string {
	a.t.Helper()
	_, body := a.Probe("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// WantMetric waits for the value of a sample.
func (a *Agent) WantMetric(sample, want string) {
	a.t.Helper()
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		got := a.Metric(sample)
		return got == want, fmt.Sprintf("%s is %q, want %q\n%s", sample, got, want, a.Stderr())
	})
}

// Status reads the status file. Before the agent has written it, the status is empty.
func (a *Agent) Status() podsync.Status {
	a.t.Helper()
	var s podsync.Status
	raw, err := os.ReadFile(filepath.Join(a.Root, "..lockstep", podsync.StatusFile))
	if os.IsNotExist(err) {
		return s
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// WantStatus waits until the status is as wanted.
func (a *Agent) WantStatus(what string, wanted func(podsync.Status) bool) {
	a.t.Helper()
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		s := a.Status()
		return wanted(s), fmt.Sprintf("want %s, the status is %+v\n%s", what, s, a.Stderr())
	})
}

// WantConfirmed waits until the newest observed set is confirmed.
func (a *Agent) WantConfirmed() {
	a.t.Helper()
	a.WantStatus("the newest set confirmed", func(s podsync.Status) bool {
		return s.Published != "" && s.Published == s.Observed && s.Confirmed == s.Published
	})
}

// WantRejected waits until the checker has refused a set and the status shows its output.
func (a *Agent) WantRejected(output string) {
	a.t.Helper()
	a.WantStatus("a refused set and the output "+output, func(s podsync.Status) bool {
		return s.Rejected != "" && strings.Contains(s.CheckOutput, output)
	})
	a.WantMetric("lockstep_sync_degraded", "1")
	a.WantProbe("/healthz", http.StatusOK)
}

// WantOutput waits for something in the output of the agent's child.
func (a *Agent) WantOutput(want string) {
	a.t.Helper()
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		return strings.Contains(a.Stdout(), want), fmt.Sprintf("output %q lacks %q\n%s", a.Stdout(), want, a.Stderr())
	})
}

// WantLog waits for something in the agent's own log.
func (a *Agent) WantLog(want string) {
	a.t.Helper()
	labtest.Eventually(a.t, Patience, func() (bool, string) {
		return strings.Contains(a.Stderr(), want), fmt.Sprintf("the log lacks %q\n%s", want, a.Stderr())
	})
}
