package labtest

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestPortsAreTakenOnce: nobody else gets a port that a test was given, also before something
// listens on it.
func TestPortsAreTakenOnce(t *testing.T) {
	t.Parallel()
	const asked = "LOCKSTEP_TEST_PORT"
	if text := os.Getenv(asked); text != "" { // the other process
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if take(port) {
			t.Error("the port is given to two processes")
		}
		return
	}
	port := FreePort(t)
	if take(port) {
		t.Errorf("port %d is given twice", port)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), self, "-test.run=^TestPortsAreTakenOnce$")
	other.Env = append(os.Environ(), asked+"="+strconv.Itoa(port))
	if output, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
