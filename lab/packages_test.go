package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// bare is this machine as it would be without the Debian packages of the tests, for one
// command at a time: a mount namespace hides their programs and their directories.
type bare struct {
	mounts []string // lines of a shell script
	record string   // where the recorder writes
}

// without hides the packages. With apt, a recorder stands for apt-get: it writes down its
// arguments, and fails. Otherwise apt-get is hidden too.
func without(t *testing.T, apt bool) bare {
	t.Helper()
	dir := t.TempDir()
	nothing := writeFile(t, filepath.Join(dir, "nothing"), "", 0o644) // LookPath passes over it
	b := bare{record: filepath.Join(dir, "record")}
	for _, p := range labtest.Packages() {
		for _, name := range p.Programs {
			b.hide(nothing, name)
		}
	}
	if apt {
		recorder := "#!/bin/sh\necho \"$*\" >>" + b.record + "\nexit 100\n"
		b.hide(writeFile(t, filepath.Join(dir, "recorder"), recorder, 0o755), "apt-get")
	} else {
		b.hide(nothing, "apt-get")
	}
	return b
}

// hide puts a file over a program, wherever the path finds it, and nothing over the directory
// of one that is given by a pattern such as /usr/lib/postgresql/*/bin/postgres.
func (b *bare) hide(file, name string) {
	if strings.Contains(name, "/") {
		before, _, _ := strings.Cut(name, "*")
		dir := filepath.Dir(before)
		if _, err := os.Stat(dir); err == nil {
			b.mount("mount -t tmpfs none " + dir)
		}
		return
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err == nil {
			b.mount("mount --bind " + file + " " + program)
		}
	}
}

// mount adds a line once: /bin is often the same directory as /usr/bin.
func (b *bare) mount(line string) {
	if !slices.Contains(b.mounts, line) {
		b.mounts = append(b.mounts, line)
	}
}

// run executes a command there and returns everything that it wrote.
func (b bare) run(t *testing.T, command labtest.Command) (output string, code int) {
	t.Helper()
	script := "set -e\n" + strings.Join(b.mounts, "\n") + "\nexec \"$@\""
	command.Args = slices.Concat([]string{"--mount", "sh", "-c", script, "sh", command.Path}, command.Args)
	command.Path = "unshare"
	running := labtest.StartCommand(t, command)
	code = running.ExitCode(t, 5*time.Minute)
	return running.Stdout() + running.Stderr(), code
}

// asked is what the recorder has written down.
func (b bare) asked(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(b.record)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// TestNothingIsInstalledByATest: without the Debian packages a tier passes, or stops at
// once with the command that installs them. Only "lab packages" calls apt-get.
func TestNothingIsInstalledByATest(t *testing.T) {
	labtest.In(t, labtest.TierAll)
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can hide programs")
	}
	lab := labtest.Binary(t, "./lab")
	noApt, apt := without(t, false), without(t, true)

	t.Run("the command is named", func(t *testing.T) {
		output, code := noApt.run(t, labtest.Command{Path: lab, Args: []string{"packages", "all"}})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantCommand(t, output)
		for _, p := range labtest.Packages() {
			if !strings.Contains(output, p.Name) || !strings.Contains(output, "to "+p.Why) {
				t.Errorf("it doesn't say that %s is needed to %s:\n%s", p.Name, p.Why, output)
			}
		}
	})
	t.Run("the smallest tier needs nothing", func(t *testing.T) {
		if output, code := noApt.run(t, labtest.Command{Path: lab, Args: []string{"packages", "test"}}); code != 0 || output != "" {
			t.Errorf("exit code %d, output %q, want 0 and nothing", code, output)
		}
	})
	t.Run("make test-all stops before any test", func(t *testing.T) { makeStops(t, noApt) })

	monitoring := compiled(t, "./test/monitoring")
	t.Run("a test fails at once", func(t *testing.T) {
		output, code := apt.run(t, monitoring("all"))
		if code == 0 || !strings.Contains(output, labtest.NeedReason+"promtool") || !strings.Contains(output, " sudo apt-get install --no-install-recommends prometheus\n") {
			t.Errorf("exit code %d, want a failure and the command:\n%s", code, output)
		}
	})
	t.Run("the smallest tier skips it", func(t *testing.T) {
		output, code := apt.run(t, monitoring("test"))
		if code != 0 || !strings.Contains(output, "--- SKIP: TestRules") || !strings.Contains(output, labtest.SkipReason+`"make test-all"`) {
			t.Errorf("exit code %d, want a skipped test:\n%s", code, output)
		}
	})
	if asked := apt.asked(t); asked != "" {
		t.Errorf("a test has called apt-get %s", asked)
	}
	t.Run("the recorder works", func(t *testing.T) {
		if _, err := exec.LookPath("apt-get"); err != nil {
			t.Skip("this machine isn't Debian: nothing can call apt-get")
		}
		output, code := apt.run(t, labtest.Command{Path: lab, Args: []string{"packages", "all"}})
		wantCommand(t, output)
		asked := strings.Split(apt.asked(t), "\n")
		if code != 1 || len(asked) != 3 || !strings.HasPrefix(asked[0], "update ") || !strings.HasPrefix(asked[1], "install ") {
			t.Errorf("exit code %d, apt-get was called with %q, want 1, one update and one install", code, asked)
		}
	})
}

// wantCommand looks for the one command that installs everything.
func wantCommand(t *testing.T, output string) {
	t.Helper()
	command := "  sudo apt-get install --no-install-recommends"
	for _, p := range labtest.Packages() {
		command += " " + p.Name
	}
	if strings.Count(output, command+"\n") != 1 {
		t.Errorf("want the line %q once:\n%s", command, output)
	}
}

// makeStops runs the target of CI: no program of the lab is built, and no test runs.
func makeStops(t *testing.T, machine bare) {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	output, code := machine.run(t, labtest.Command{
		Path: "make", Args: []string{"test-all"}, Dir: root,
		// It's a run of its own, even if "make test-all" runs this test.
		Env: []string{"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=", program.CacheEnv + "=" + cache},
	})
	if code == 0 {
		t.Error("make passes")
	}
	wantCommand(t, output)
	if strings.Contains(output, "passed,") {
		t.Errorf("tests ran:\n%s", output)
	}
	if built, err := os.ReadDir(cache); err != nil || len(built) > 0 {
		t.Errorf("the lab's cache contains %v, error %v, want nothing", built, err)
	}
}

// compiled links the tests of a package, which need a program of a Debian package. The
// result runs TestRules in a tier. To compile is nothing that needs the packages, but Go
// would compile everything again where it finds no C compiler.
func compiled(t *testing.T, pkg string) func(tier string) labtest.Command {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "compiled.test")
	build := labtest.StartCommand(t, labtest.Command{Path: "go", Args: []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg}, Dir: root})
	if code := build.ExitCode(t, 10*time.Minute); code != 0 {
		t.Fatalf("go test -c %s: exit code %d\n%s", pkg, code, build.Stderr())
	}
	return func(tier string) labtest.Command {
		return labtest.Command{
			Path: binary, Args: []string{"-test.v", "-test.run=^TestRules$"}, Dir: filepath.Join(root, pkg),
			Env: []string{labtest.TierEnv + "=" + tier},
		}
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}
