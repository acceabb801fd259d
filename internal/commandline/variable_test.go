package commandline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		environ []string
		want    []string
	}{
		"Flag":     {"the variable of a flag", []string{"LOCKSTEP_MAX_DELAY=5s"}, nil},
		"Misspelt": {"only the name is told, in order", []string{"LOCKSTEP_QUITE=5s", "LOCKSTEP_MAX_DEALY=hunter2"}, []string{"LOCKSTEP_MAX_DEALY", "LOCKSTEP_QUITE"}},
		"Others":   {"variables of other programs", []string{"PATH=/bin", "MAX_DELAY=1", "LOCKSTEPPER=1", "=C:=x"}, nil},
		"Written":  {"what Lockstep writes itself", []string{"LOCKSTEP_INPUTS=configmap/app~1", "LOCKSTEP_GENERATION=3"}, nil},
		"Tests":    {"what the project's own tools set", []string{"LOCKSTEP_TIER=all", "LOCKSTEP_PATIENCE=1s"}, nil},
		"Service": {"what Kubernetes sets for Services", []string{
			"LOCKSTEP_SERVICE_HOST=10.0.0.1", "LOCKSTEP_SERVICE_PORT=80", "LOCKSTEP_SERVICE_PORT_HTTP=80", "LOCKSTEP_PORT=tcp://10.0.0.1:80",
			"LOCKSTEP_PORT_8080_TCP=tcp://10.0.0.1:8080", "LOCKSTEP_PORT_8080_TCP_ADDR=10.0.0.1", "LOCKSTEP_WEBHOOK_SERVICE_HOST=10.0.0.2", "LOCKSTEP_WEBHOOK_PORT_80_UDP_PROTO=udp",
		}, nil},
		"NoService": {"a port without a Service is a mistake", []string{"LOCKSTEP_METRICS_PORT=8080", "LOCKSTEP_SERVICE_HOST=10.0.0.1"}, []string{"LOCKSTEP_METRICS_PORT"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, commandline.UnknownVariables(tc.environ, []string{"max-delay", "quiet"})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
