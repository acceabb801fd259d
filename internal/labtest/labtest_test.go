package labtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// patience is how long a test waits for something that takes seconds on an idle machine.
const patience = 3 * time.Minute

const (
	// victimEnv makes the test binary a process that starts a control plane, a
	// detached one when it is "detached", and waits to be killed.
	victimEnv = "LOCKSTEP_TEST_VICTIM"
	// grandchildEnv makes TestKilledTestTakesGrandchildrenWithIt the test that it kills.
	grandchildEnv = "LOCKSTEP_TEST_GRANDCHILD"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		beVictim()
	}
	os.Exit(labtest.RunTests(m))
}

func beVictim() {
	cluster, err := labtest.Start(context.Background(), labtest.Options{Detached: os.Getenv(victimEnv) == "detached"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cluster.Dir())
	select {}
}

// ownRuns hides the control planes of others from a test, and this test's from
// them, but shares the built programs.
func ownRuns(t *testing.T) (runs string) {
	t.Helper()
	labtest.Programs(t, labtest.Options{}.Programs()...)
	cache, err := program.Cache()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	if err := os.Symlink(filepath.Join(cache, "bin"), filepath.Join(own, "bin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(program.CacheEnv, own)
	return filepath.Join(own, "runs")
}
