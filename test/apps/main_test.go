package apps_test

import (
	"os"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestMain sees to it that no application of a test outlives the tests.
func TestMain(m *testing.M) { os.Exit(labtest.RunTests(m)) }
