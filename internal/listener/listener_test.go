package listener_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/listener"
)

// TestListen: an error names the front end's setting, whatever its cause, and stays recognizable.
func TestListen(t *testing.T) {
	t.Parallel()
	taken, err := listener.Address{Value: "127.0.0.1:0", Setting: "--port"}.Listen("metrics")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for name, tc := range map[string]struct {
		reason, value, setting string
		cause                  error
		want                   string
	}{
		"In use":      {"another program listens", taken.Addr().String(), "--metrics-addr", syscall.EADDRINUSE, "listen for metrics on 127.0.0.1:" + port + ": bind: address already in use; change --metrics-addr"},
		"Not ours":    {"the host is another one", "192.0.2.1:8080", "HEALTH_PORT", syscall.EADDRNOTAVAIL, "listen for metrics on 192.0.2.1:8080: bind: cannot assign requested address; change HEALTH_PORT"},
		"Not a port":  {"a name of no service", ":metrics-of-mine", "--port", nil, "; change --port"},
		"Without one": {"it can't be an address", "8080", "--port", nil, "listen for metrics on 8080: address 8080: missing port in address; change --port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := listener.Address{Value: tc.value, Setting: tc.setting}.Listen("metrics")
			if got != nil || err == nil || !strings.HasSuffix(err.Error(), tc.want) || (tc.cause != nil && !errors.Is(err, tc.cause)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestCheck: a mistake is reported before anything starts.
func TestCheck(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{":8080": "", "127.0.0.1:0": "", "8080": `--health-addr "8080": want host:port or :port`} {
		err := listener.Address{Value: value, Setting: "--health-addr"}.Check()
		if (err == nil) != (want == "") || (err != nil && err.Error() != want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
}
