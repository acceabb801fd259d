package server

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

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
