// Package e2e runs the built program against a real control plane.
package e2e

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are cores: they mostly wait for
// the control plane and for quiet windows.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
