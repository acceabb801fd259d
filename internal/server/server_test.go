package server

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/listener"
)

// TestTakenPorts: whatever can't be served, the error names the front end's setting.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for served, choose := range map[string]func(*Options) *listener.Address{
		"metrics":  func(o *Options) *listener.Address { return &o.MetricsAddr },
		"probes":   func(o *Options) *listener.Address { return &o.ProbeAddr },
		"profiles": func(o *Options) *listener.Address { return &o.PprofAddr },
	} {
		t.Run(served, func(t *testing.T) {
			t.Parallel()
			o := Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Log: logr.Discard(), Metrics: NewMetrics(), LeaseDuration: 15 * time.Second}
			*choose(&o) = listener.Address{Value: taken.Addr().String(), Setting: "--my-" + served}
			err := Run(t.Context(), o)
			if err == nil || !strings.HasPrefix(err.Error(), "listen for "+served+" on "+taken.Addr().String()+": ") || !strings.HasSuffix(err.Error(), "; change --my-"+served) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestClientsReadDates: the manager's clients, and the leader's beside them, wait until the date that a proxy says.
func TestClientsReadDates(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer proxy.Close()
	o := Options{Config: &rest.Config{Host: proxy.URL}, Log: logr.Discard(), Metrics: NewMetrics(), LeaseDuration: 15 * time.Second}
	enough := errors.New("enough")
	err := Run(t.Context(), o, func(mgr ctrl.Manager) error {
		response, err := mgr.GetHTTPClient().Get(proxy.URL)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if got := response.Header.Get("Retry-After"); got != "0" {
			t.Errorf("the manager's clients read %q, want 0 seconds", got)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	if o.Config.WrapTransport != nil {
		t.Error("the caller's configuration was changed")
	}
}
