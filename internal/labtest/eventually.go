package labtest

import (
	"os"
	"testing"
	"time"
)

// PatienceEnv shortens every wait of Eventually. It is for runs in which waits are expected to
// fail.
const PatienceEnv = "LOCKSTEP_PATIENCE"

// LateReason begins the message of every test that fails because [Eventually] waited in vain.
const LateReason = "not within "

// maxPause bounds the time between two checks of a long wait.
const maxPause = 250 * time.Millisecond

// Eventually calls check until it is done, and fails the test when that takes
// longer than timeout. A check that is not done returns why; the failure includes
// the last reason.
//
//	labtest.Eventually(t, 10*time.Second, func() (bool, string) {
//		got := replicas()
//		return got == 3, fmt.Sprintf("%d replicas, want 3", got)
//	})
func Eventually(t testing.TB, timeout time.Duration, check func() (done bool, why string)) {
	t.Helper()
	if bound, err := time.ParseDuration(os.Getenv(PatienceEnv)); err == nil {
		timeout = min(timeout, bound)
	}
	began := time.Now()
	for {
		done, why := check()
		if done {
			return
		}
		// The check after the deadline is the last one, so a slow machine doesn't look like a wrong
		// program.
		waited := time.Since(began)
		if waited > timeout {
			t.Fatalf("%s%s: %s", LateReason, timeout, why)
		}
		time.Sleep(pause(waited))
	}
}

// pause is the time until the next check: an eighth of the wait so far. A check is mostly
// a request, and many tests wait at the same time: without this they load the API server
// that they wait for. After one second it is 125 ms.
func pause(waited time.Duration) time.Duration {
	return min(max(waited/8, pollInterval), maxPause)
}
