package labtest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// prepareNode reports what a real node needs and this machine lacks, before anything is
// built or started.
func prepareNode() error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("a real node needs root on Linux: run as root")
	}
	if err := namespacesMissing(); err != nil {
		return err
	}
	if err := controlgroup.Try(); err != nil {
		return fmt.Errorf("a real node needs control groups that it can write to under /sys/fs/cgroup: %w", err)
	}
	return toolsMissing(missingIn(nodePackages()))
}

// nodePackages are the Debian packages of a real node.
func nodePackages() []Package {
	return slices.DeleteFunc(Packages(), func(p Package) bool { return p.Why != node })
}

func toolsMissing(missing []Package) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("a real node needs Debian packages: run \"make packages\", or:\n%s", wanted(missing))
}

// namespacesMissing briefly creates the environment of the node to test it: its own
// namespaces, and mounts in them.
func namespacesMissing() error {
	const need = "a real node needs namespaces and mounts of its own (the capability CAP_SYS_ADMIN): %w"
	var out output
	p, err := process.Start(process.Spec{
		Path: "/bin/sh", Args: []string{"-c", "mount --make-rprivate / && mount -t tmpfs lab /run && mount -t proc lab /proc"},
		Stdout: &out, Stderr: &out, Apart: true,
	})
	if err != nil {
		return fmt.Errorf(need, err)
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf(need+": %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
