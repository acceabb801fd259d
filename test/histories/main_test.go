package histories_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: histories make much of it, and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
