package histories_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// freshFor is how long a test plays the seeds of a commit, beside the fixed ones.
const freshFor = time.Minute

// fresh plays the seeds that begin with the commit in HISTORY_FRESH, one after the other, until the
// time is over. Fixed seeds find nothing new once they pass. The seed of a failure is printed, so it
// can be repeated. CI plays them at night: one that fails by chance must not refuse a change.
func fresh(t *testing.T, play func(seed uint64)) {
	t.Helper()
	const digits = 12
	commit := os.Getenv("HISTORY_FRESH")
	if commit == "" || os.Getenv("HISTORY_SEED") != "" {
		return
	}
	first, err := strconv.ParseUint(commit[:min(digits, len(commit))], 16, 64)
	if err != nil {
		t.Fatalf("HISTORY_FRESH=%s: want a commit: %v", commit, err)
	}
	seed := first
	for end := time.Now().Add(freshFor); time.Now().Before(end); seed++ {
		play(seed)
	}
	t.Logf("%d fresh histories, from seed %d", seed-first, first)
}
