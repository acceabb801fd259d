// Package remains removes the remains of a control plane: its processes, the control groups
// of its node, its directory.
//
// The directory is enough to do it. The end of a control plane does it, as does the guard of
// a process that was killed, and the next start when even the guard was killed.
package remains

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// Env names the environment variable that marks a process as part of the control plane in a
// directory. Children inherit it.
const Env = "LOCKSTEP_LAB_PART"

// Mark is the entry in the environment of all processes of a control plane.
func Mark(dir string) string { return Env + "=" + dir }

// Group is the name of the control groups of a control plane's node.
func Group(dir string) string { return controlgroup.Prefix + filepath.Base(dir) }

// Remove ends the processes and removes the rest. The directory is removed last, and only
// when everything else is gone: the next attempt finds the control plane by it.
func Remove(dir string) error {
	if err := process.EndMarked(Mark(dir)); err != nil {
		return fmt.Errorf("end the control plane in %s: %w", dir, err)
	}
	if err := controlgroup.Remove(Group(dir)); err != nil {
		return fmt.Errorf("remove the control groups of %s: %w", dir, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the directory of a control plane: %w", err)
	}
	return nil
}
