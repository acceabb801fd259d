package cli_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestMain lets no application outlive the tests. It silences the client library's own log
// as the program does, before a test could read the variable at the same time.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(labtest.RunTests(m))
}
