package registry

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// modest is a network with one registry that answers with some schemes only.
type modest struct {
	answers map[string]bool
	asked   []string // the schemes of requests with credentials
}

func (m *modest) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		m.asked = append(m.asked, r.URL.Scheme)
	}
	if !m.answers[r.URL.Scheme] {
		return nil, errors.New("the connection was closed")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// TestFallback: what a local registry is asked with, over the course of outages and upgrades.
func TestFallback(t *testing.T) {
	t.Parallel()
	type step struct {
		answers string // the schemes that work
		url     string
		later   time.Duration
		want    string // the scheme that succeeds, empty for none
	}
	const registry, token = "https://r.local/v2/app/manifests/1", "http://r.local/service/token"
	for name, steps := range map[string][]step{
		"a token server on the same host, after an outage": {
			{"http", registry, 0, "http"}, {"", registry, 0, ""}, {"http", token, 0, "http"}, {"http", registry, 0, "http"},
		},
		"TLS that fails at the first contact only": {
			{"http", registry, 0, "http"}, {"http https", registry, 0, "http"}, {"http https", registry, plainFor, "https"}, {"http", registry, plainFor, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			network := &modest{}
			f := &fallback{host: "r.local", next: network, now: func() time.Time { return now }}
			for i, s := range steps {
				now = now.Add(s.later)
				network.asked, network.answers = nil, map[string]bool{}
				for scheme := range strings.FieldsSeq(s.answers) {
					network.answers[scheme] = true
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Basic eDp5")
				response, err := f.RoundTrip(r)
				got := ""
				if err == nil {
					got = response.Request.URL.Scheme
					closeBody(response)
				}
				if got != s.want {
					t.Errorf("step %d: %q succeeds, want %q; asked with %q", i+1, got, s.want, network.asked)
				}
			}
		})
	}
}
