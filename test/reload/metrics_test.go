package reload_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// runMeasured runs the controller with metrics, and returns a function that reads
// one of them: "lockstep_pending_workloads". One that is not shown is 0.
func (s *stage) runMeasured(t testing.TB, flags ...string) (*testkit.Controller, func(series string) float64) {
	t.Helper()
	address := freeAddress(t)
	c := s.run(t, append(flags, "--metrics-addr", address)...)
	return c, func(series string) float64 {
		t.Helper()
		return value(t, scrape(t, address), series)
	}
}

// freeAddress is a local address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(labtest.FreePort(t))
}

func scrape(t testing.TB, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func value(t testing.TB, metrics, series string) float64 {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}
