package labtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// InstallEnv names the environment variable that, when it is "no", keeps the lab
// from installing packages: it then says what to install.
const InstallEnv = "LOCKSTEP_LAB_INSTALL"

// pluginFolder is where Debian keeps the network plugins.
const pluginFolder = "/usr/lib/cni"

// nodePackages are Debian's packages with what a real node needs.
func nodePackages() []string {
	return []string{"containerd", "runc", "containernetworking-plugins", "iproute2"}
}

// prepareNode says what a real node would need and this machine does not have,
// before anything is built or started. What Debian's packages bring is installed,
// where that is possible and not refused.
func prepareNode(ctx context.Context, progress io.Writer) error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("a real node needs root on Linux: run as root, or ask for the tests without it (go test -short)")
	}
	if err := namespacesMissing(); err != nil {
		return err
	}
	if err := controlgroup.Try(); err != nil {
		return fmt.Errorf("a real node needs control groups that it can write to under /sys/fs/cgroup: %w", err)
	}
	return installTools(ctx, progress, pluginFolder)
}

// namespacesMissing makes, for a moment, what the node lives in: namespaces of its
// own, and mounts in them.
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

// installTools installs what is missing; plugins is the folder of the network
// plugins.
func installTools(ctx context.Context, progress io.Writer, plugins string) error {
	err := install(ctx, progress, nodePackages(), func() bool { return len(missingTools(plugins)) == 0 })
	if err != nil {
		return errors.Join(toolsMissing(plugins), err)
	}
	return toolsMissing(plugins)
}

// install installs Debian's packages, unless there is no need, no apt-get, or
// somebody has refused. A lock keeps the processes of one test run from doing it at
// the same time.
func install(ctx context.Context, progress io.Writer, packages []string, enough func() bool) error {
	if _, err := exec.LookPath("apt-get"); enough() || err != nil || os.Getenv(InstallEnv) == "no" {
		return nil
	}
	cache, err := program.Cache()
	if err != nil {
		return err
	}
	unlock, err := program.Lock(ctx, filepath.Join(cache, "install.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if enough() {
		return nil
	}
	fmt.Fprintf(progress, "installing %s with apt-get (%s=no refuses)\n", strings.Join(packages, ", "), InstallEnv)
	// An index that cannot be renewed may still be good enough.
	_ = aptGet("update", "-q")
	return aptGet(append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)...)
}

// Need returns the path of a program, given by its name or by a pattern, of which
// the last match counts. When it is missing, Debian's packages are installed as for
// a real node, or the test fails and names them; -short leaves the test out instead.
func Need(t testing.TB, program string, packages ...string) string {
	t.Helper()
	var err error
	if os.Geteuid() == 0 && !testing.Short() {
		err = install(t.Context(), os.Stderr, packages, func() bool { return find(program) != "" })
	}
	path := find(program)
	if path == "" && testing.Short() {
		t.Skipf("-short asks for the tests without programs that are missing, such as %s", program)
	}
	if path == "" {
		t.Fatalf("this test needs %s: install %s %s", program, strings.Join(packages, ", "), errorText(err))
	}
	return path
}

func find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	matches, err := filepath.Glob(program)
	if err != nil || len(matches) == 0 {
		return ""
	}
	return matches[len(matches)-1]
}

func toolsMissing(plugins string) error {
	missing := missingTools(plugins)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("a real node needs %s: install %s", strings.Join(missing, ", "), strings.Join(nodePackages(), ", "))
}

// aptGet runs to its end whatever happens here: half an installation is worse than
// a whole one that nobody waits for.
func aptGet(args ...string) error {
	path, err := exec.LookPath("apt-get")
	if err != nil {
		return err
	}
	var out output
	p, err := process.Start(process.Spec{
		Path: path, Args: args, Env: append(unmarked(os.Environ()), "DEBIAN_FRONTEND=noninteractive"),
		Stdout: &out, Stderr: &out, Detached: true,
	})
	if err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}

func missingTools(plugins string) []string {
	var missing []string
	for _, tool := range []string{"containerd", "runc", "ctr", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(plugins, plugin)); err != nil {
			missing = append(missing, filepath.Join(plugins, plugin))
		}
	}
	return missing
}
