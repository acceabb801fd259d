package labtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pluginDir is where Debian keeps the network plugins.
const pluginDir = "/usr/lib/cni"

// Package is a Debian package that tests need.
type Package struct {
	Name string
	// Why is what the package is needed for.
	Why string
	// Programs are the programs that tests use: names on the path, or patterns of files.
	Programs []string
}

// node is the purpose of the packages of a real node.
const node = "run pods on a real node"

// Packages lists the Debian packages that the tests of [TierAll] and later tiers need.
// [TierTest] needs none.
func Packages() []Package {
	return []Package{
		{"containerd", node, []string{"containerd", "ctr"}},
		{"runc", node, []string{"runc"}},
		{"containernetworking-plugins", node, []string{pluginDir + "/bridge", pluginDir + "/host-local", pluginDir + "/loopback"}},
		{"iproute2", node, []string{"ip"}},
		{"gcc", "link the race detector", []string{"gcc"}},
		{"libc6-dev", "link the race detector", []string{"/usr/include/stdlib.h"}},
		{"apache2", "reload a real Apache", []string{"apache2"}},
		{"haproxy", "reload a real HAProxy", []string{"haproxy"}},
		{"nginx", "reload a real nginx", []string{"nginx"}},
		{"postgresql", "reload a real PostgreSQL", []string{"/usr/lib/postgresql/*/bin/postgres"}},
		{"prometheus", "reload a real Prometheus, and check the alerts", []string{"prometheus", "promtool"}},
		{"prometheus-alertmanager", "receive messages in a real Alertmanager", []string{"prometheus-alertmanager"}},
		{"unbound", "reload a real Unbound", []string{"unbound"}},
		{"strace", "see which system calls the agent makes", []string{"strace"}},
		{"curl", "play the sessions of the documentation", []string{"curl"}},
		{"jq", "play the sessions of the documentation", []string{"jq"}},
		{"chromium", "open the pages of lockstep ui", []string{"chromium"}},
	}
}

// missingIn is the part of a list of packages that this machine lacks.
func missingIn(all []Package) []Package {
	var missing []Package
	for _, p := range all {
		if slices.ContainsFunc(p.Programs, func(name string) bool { return find(name) == "" }) {
			missing = append(missing, p)
		}
	}
	return missing
}

// find returns the path of a program, given by its name or by a pattern, of which the last
// match counts. Debian installs servers in directories that are not on a user's path.
func find(program string) string {
	for _, dir := range []string{"", "/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	matches, err := filepath.Glob(program)
	if err != nil || len(matches) == 0 {
		return ""
	}
	return matches[len(matches)-1]
}

// Install installs the missing packages of a tier, in one run of apt-get that waits for
// other runs. It reports what it installs and why. Where it can't install, the error is the
// command that does.
//
// Nothing else in the lab installs packages: two installations at the same time fail, and
// one that ends with a test leaves a half-installed package.
func Install(ctx context.Context, tier Tier, progress io.Writer) error {
	if !tier.Includes(TierAll) {
		return nil
	}
	return installer{packages: Packages(), root: os.Geteuid() == 0, progress: progress}.install(ctx)
}

// installer installs packages on this machine.
type installer struct {
	packages []Package
	root     bool // only root can install
	progress io.Writer
}

func (i installer) install(ctx context.Context) error {
	missing := missingIn(i.packages)
	if len(missing) == 0 {
		fmt.Fprintln(i.progress, "all Debian packages are installed")
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || !i.root {
		return errors.New(wanted(missing))
	}
	fmt.Fprintf(i.progress, "installing Debian packages:\n%s", listed(missing))
	// An outdated index may still be good enough.
	outdated := aptGet(ctx, apt, "update", "-qq")
	if err := aptGet(ctx, apt, installArgs(missing)...); err != nil {
		return fmt.Errorf("%w\n%s", errors.Join(outdated, err), wanted(missing))
	}
	if still := missingIn(missing); len(still) > 0 {
		return fmt.Errorf("apt-get has installed %s, but %s isn't there", namesOf(still), strings.Join(still[0].Programs, " or "))
	}
	return nil
}

// installArgs is the command line after "apt-get".
func installArgs(packages []Package) []string {
	args := []string{"install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"}
	for _, p := range packages {
		args = append(args, p.Name)
	}
	return args
}

// wanted lists the missing packages, their purposes and how to install them.
func wanted(missing []Package) string {
	return "these Debian packages are missing:\n" + listed(missing) +
		"install them with:\n  sudo apt-get install --no-install-recommends " + namesOf(missing)
}

// listed is a line for each package and its purpose.
func listed(packages []Package) string {
	var text strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&text, "  %-28s to %s\n", p.Name, p.Why)
	}
	return text.String()
}

func namesOf(packages []Package) string {
	var names []string
	for _, p := range packages {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

func aptGet(ctx context.Context, path string, args ...string) error {
	apt := exec.CommandContext(ctx, path, args...) //nolint:gosec // The path is apt-get's, and the arguments come from the table.
	apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// On Ctrl-C, interrupt apt-get; killing it would leave a half-installed package.
	apt.Cancel = func() error { return apt.Process.Signal(os.Interrupt) }
	var out strings.Builder
	apt.Stdout, apt.Stderr = &out, &out
	if err := apt.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}

// NeedReason begins the message of every test that fails for want of a program.
const NeedReason = "this test needs "

// Need returns the path of a program of a Debian package, given as [Packages] names it.
// A run without packages skips the test. Where the program is missing, the test fails at
// once and names the command that installs it.
func Need(t testing.TB, program string) string {
	t.Helper()
	return need(t, program, t.Fatalf)
}

// Want does the same for a program that is large for a laptop: where it is missing, the test is
// skipped, but never in CI.
func Want(t testing.TB, program string) string {
	t.Helper()
	if os.Getenv("CI") != "" {
		return Need(t, program)
	}
	return need(t, program, t.Skipf)
}

// need finds a program, or leaves the test.
func need(t testing.TB, program string, leave func(format string, args ...any)) string {
	t.Helper()
	all := Packages()
	i := slices.IndexFunc(all, func(p Package) bool { return slices.Contains(p.Programs, program) })
	if i < 0 {
		t.Fatalf("%s is in no package of the table in internal/labtest/packages.go", program)
	}
	In(t, TierAll)
	path := find(program)
	if path == "" {
		leave("%s%s: run \"make packages\", or:\n%s", NeedReason, program, wanted(all[i:i+1]))
	}
	return path
}
