package labtest

import (
	"testing"
	"time"
)

// Eventually calls check until it is done, and fails the test when that takes
// longer than timeout. A check that is not done says why; the last reason is part
// of the failure.
//
//	labtest.Eventually(t, 10*time.Second, func() (bool, string) {
//		got := replicas()
//		return got == 3, fmt.Sprintf("%d replicas, want 3", got)
//	})
func Eventually(t testing.TB, timeout time.Duration, check func() (done bool, why string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		done, why := check()
		if done {
			return
		}
		// The check that comes after the deadline is the last one: a slow
		// machine is not taken for a wrong program.
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", timeout, why)
		}
		time.Sleep(pollInterval)
	}
}

// Never calls check for as long as the duration and fails the test when it
// reports that something happened.
func Never(t testing.TB, duration time.Duration, check func() (happened bool, what string)) {
	t.Helper()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if happened, what := check(); happened {
			t.Fatalf("must not happen: %s", what)
		}
	}
}
