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
		if taken, err := take(port); err != nil || taken {
			t.Errorf("the port is given to two processes (error %v)", err)
		}
		return
	}
	port := FreePort(t)
	if taken, err := take(port); err != nil || taken {
		t.Errorf("port %d is given twice (error %v)", port, err)
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
