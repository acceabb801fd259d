// Package ask_test brings the built controller into every situation that has a reason, and
// sees that "lockstep explain" and "lockstep status" say the same of it as the controller.
package ask_test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestMain lets more tests run at once than there are cores: they mostly wait for the control
// plane.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the tests' own clients have nothing to tell
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
