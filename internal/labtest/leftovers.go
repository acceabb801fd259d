package labtest

import (
	"fmt"
	"os"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// RunTests runs the tests of a package, for its TestMain, and returns the exit code. It
// fails when a process whose command line names a temporary directory of the tests outlives
// them: such a daemon would keep its port and its memory until a user ends it.
func RunTests(m interface{ Run() int }) int {
	dir, err := os.MkdirTemp("", "tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Some of the programs run as other users.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	left := process.Mentioning(dir)
	for _, line := range left {
		fmt.Fprintln(os.Stderr, "a process outlives the tests:", line)
	}
	if len(left) > 0 {
		return 1
	}
	return code
}
