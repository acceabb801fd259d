package synccli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// inNamespace runs the agent as PID 1 of a real PID namespace, with a shell
// script as its child.
func inNamespace(t *testing.T, script string, flags ...string) *agent {
	t.Helper()
	source := t.TempDir()
	write(t, filepath.Join(source, "a.conf"), "1")
	a := &agent{t: t, root: filepath.Join(t.TempDir(), "config"), addr: freeAddr(t)}
	args := []string{"--pid", "--fork", "--mount-proc", "--kill-child", binary(t), "--root=" + a.root, "--health-addr=" + a.addr, "--quiet=0", "--directory=" + source}
	args = append(append(args, flags...), "--", "sh", "-c", script)
	a.Running = labtest.StartCommand(t, labtest.Command{Path: "unshare", Args: args, Env: []string{"ROOT=" + a.root, "SOURCE=" + source}})
	return a
}

// init is the agent's number outside of the namespace: unshare's only child.
func (a *agent) init() int {
	a.t.Helper()
	var pid int
	labtest.Eventually(a.t, patience, func() (bool, string) {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", a.PID(), a.PID()))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return pid > 0, "unshare has no child"
	})
	return pid
}

func (a *agent) wantOutput(want string) {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		return strings.Contains(a.Stdout(), want), fmt.Sprintf("output %q lacks %q\n%s", a.Stdout(), want, a.Stderr())
	})
}

// wantLog waits for a line of the agent's own.
func (a *agent) wantLog(want string) {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		return strings.Contains(a.Stderr(), want), fmt.Sprintf("the log lacks %q\n%s", want, a.Stderr())
	})
}

// untilTold is a piece of script that waits for tell.
const untilTold = `until test -e $ROOT.told; do sleep 0.05; done`

func (a *agent) tell() {
	a.t.Helper()
	write(a.t, a.root+".told", "")
}

func TestPID1ExitCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 42": 42, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if got := inNamespace(t, script).ExitCode(t, patience); got != want {
				t.Errorf("exit code %d, want %d", got, want)
			}
		})
	}
}

// The child sees its complete configuration at its first instruction, and no
// reload signal for it.
func TestPID1ChildStartsWithItsFiles(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `cat $ROOT/a.conf; echo " pid $$ parent $PPID"; trap 'echo reloaded; cat $ROOT/a.conf; echo; exit 0' HUP; echo ready; while :; do sleep 0.05; done`, "--notify=signal:HUP")
	a.wantOutput("1 pid")
	if !strings.Contains(a.Stdout(), "parent 1\n") {
		t.Errorf("the agent is not PID 1: %s", a.Stdout())
	}
	a.wantOutput("ready")
	if strings.Contains(a.Stdout(), "reloaded") {
		t.Error("the child was told of the first set")
	}
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantOutput("reloaded\n2")
}

// source is the directory that the agent follows.
func (a *agent) source() string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		if value, ok := strings.CutPrefix(entry, "SOURCE="); ok {
			return value
		}
	}
	a.t.Fatal("no SOURCE")
	return ""
}

// A signal that the application does not handle yet would kill it.
func TestASignalDoesNotKillAChildWithoutAHandler(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `echo ready; `+untilTold+`; trap 'echo reloaded; exit 7' HUP; while :; do sleep 0.05; done`, "--notify=signal:HUP", "--retry=100ms")
	a.wantOutput("ready")
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantLog("does not handle SIGHUP (yet)")
	a.tell()
	if code := a.ExitCode(t, patience); code != 7 {
		t.Errorf("the child ended with %d, want 7 from its handler", code)
	}
}

func TestPID1ForwardsSignals(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `for s in HUP INT QUIT USR1 USR2 WINCH TERM; do trap "echo got $s" $s; done; echo ready; while :; do sleep 0.05; done`, "--stop-grace=10s")
	a.wantOutput("ready")
	pid := a.init()
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH} {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		a.wantOutput("got " + name + "\n")
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	a.wantOutput("got TERM\n")
	if code := a.ExitCode(t, patience); code != 128+9 {
		t.Errorf("a child that does not end was not killed after the grace: code %d", code)
	}
}

func TestPID1StopsWithTheChildsCode(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.05; done`, "--stop-signal=INT")
	a.wantOutput("ready")
	if err := syscall.Kill(a.init(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := a.ExitCode(t, patience); code != 5 || !strings.Contains(a.Stdout(), "bye") {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A second request does not wait for the grace.
func TestPID1SecondStopIsAtOnce(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done`, "--stop-grace=10m")
	a.wantOutput("ready")
	pid := a.init()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	a.wantOutput("no")
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := a.ExitCode(t, patience); code != 128+9 {
		t.Errorf("code %d", code)
	}
}

// Orphans are reaped while commands run and their results stay right: the
// child makes orphans, the agent runs a command for each change.
func TestPID1ReapsOrphansWithoutLosingStatuses(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `for i in $(seq 200); do (sh -c 'sleep 0.01' &) ; done; echo made; while :; do sleep 0.05; done`,
		"--check=sh -c 'sleep 0.01; exit 0'", "--notify=exec:sh -c 'exit 0'")
	a.wantOutput("made")
	for i := range 20 {
		write(t, filepath.Join(a.source(), "a.conf"), strconv.Itoa(i))
		a.wantFiles(map[string]string{"a.conf": strconv.Itoa(i)})
	}
	for _, stage := range []string{"check", "notify"} {
		if failed := a.metric(`lockstep_sync_attempts_total{result="failed",stage="` + stage + `"}`); failed != "" {
			t.Errorf("%s of %s lost their exit status", failed, stage)
		}
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		zombies := zombiesOf(a.init())
		return zombies == 0, fmt.Sprintf("%d zombies are left", zombies)
	})
}

func zombiesOf(pid int) int {
	tasks, _ := filepath.Glob("/proc/[0-9]*/stat")
	n := 0
	for _, name := range tasks {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[strings.LastIndex(string(raw), ")")+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

// What the child left in its group goes with it, also where the agent is not
// PID 1 and the kernel does not clean up.
func TestTheGroupIsKilledWithTheChild(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	write(t, filepath.Join(source, "a"), "1")
	pidfile := filepath.Join(t.TempDir(), "pid")
	a := start(t, "--directory="+source, "--stop-grace=500ms", "--", "sh", "-c",
		"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > "+pidfile+"; while :; do sleep 0.05; done' & wait; while :; do sleep 0.05; done")
	var straggler int
	labtest.Eventually(t, patience, func() (bool, string) {
		raw, _ := os.ReadFile(pidfile)
		straggler, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return straggler > 0, "no straggler"
	})
	if code := a.Stop(t); code != 128+9 {
		t.Errorf("code %d", code)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		err := syscall.Kill(straggler, 0)
		return err != nil, "the straggler lives"
	})
}

// Restart instead of a signal: never two children, and the new one has the new
// files.
func TestRestartOnChange(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo stopping; sleep 0.2; echo stopped; exit 0' TERM; read c < $ROOT/a.conf || :; echo "run with $c"; while :; do sleep 0.05; done`, "--notify=restart")
	a.wantOutput("run with 1")
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantOutput("stopped\nrun with 2")
	if strings.Count(a.Stdout(), "run with") != 2 {
		t.Errorf("output %q", a.Stdout())
	}
}

// A child that dies of a reload while it is asked about it is noticed at once:
// the set that killed it is taken back and it runs again.
func TestAChildThatDiesWhileItIsAsked(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `echo run; trap 'read c < $ROOT/a.conf || :; test $c = 1 || exit 3' HUP; while :; do sleep 0.05; done`,
		"--notify=signal:HUP", "--confirm=exec:false", "--confirm-timeout=10m", "--roll-back")
	a.wantOutput("run")
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantOutput(strings.Repeat("run\n", 2))
	a.wantFiles(map[string]string{"a.conf": "1"})
	labtest.Eventually(t, patience, func() (bool, string) {
		s := a.status()
		return s.Barred == s.Observed && s.Reason == podsync.RolledBack, fmt.Sprintf("status %+v", s)
	})
}

// Being stopped in the middle of a restart leaves the child its grace, and no
// new one is started.
func TestStopDuringARestart(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo stopping; `+untilTold+`; echo stopped; exit 5' TERM; echo run; while :; do sleep 0.05; done`, "--notify=restart", "--stop-grace=10m")
	a.wantOutput("run")
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantOutput("stopping")
	if err := syscall.Kill(a.init(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	a.wantLog("msg=stopping signal=SIGTERM")
	a.tell()
	if code := a.ExitCode(t, patience); code != 5 || a.Stdout() != "run\nstopping\nstopped\n" {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A second request during a restart does not wait for the grace.
func TestSecondStopDuringARestart(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo no' TERM; echo run; while :; do sleep 0.05; done`, "--notify=restart", "--stop-grace=10m")
	a.wantOutput("run")
	write(t, filepath.Join(a.source(), "a.conf"), "2")
	a.wantOutput("no")
	pid := a.init()
	for range 2 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		a.wantLog("msg=stopping signal=SIGTERM") // two equal signals at once may become one
	}
	if code := a.ExitCode(t, patience); code != 128+9 {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A child that cannot be started is an error of its own, with the reason.
func TestChildThatDoesNotExist(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	write(t, filepath.Join(source, "a"), "1")
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: []string{"--root=" + filepath.Join(t.TempDir(), "x"), "--directory=" + source, "--", "/does/not/exist"}})
	if code != 1 || !strings.Contains(stderr, "start the application: fork/exec /does/not/exist: no such file or directory") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// A failed check at the start keeps the child from starting, and says how it ended
// and where its words are.
func TestChildIsNotStartedWithRefusedFiles(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	write(t, filepath.Join(source, "a"), "1")
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: []string{
		"--root=" + filepath.Join(t.TempDir(), "x"), "--directory=" + source,
		"--check=sh -c 'echo line 7 is wrong; exit 1'", "--", "echo", "started",
	}})
	if code != 1 || stdout != "" || !strings.Contains(stderr, "the check refused the first set: run sh: exit status 1; what it printed is in the status file") {
		t.Errorf("code %d: %s %s", code, stdout, stderr)
	}
}

// --install copies a program that works from where it is put.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bin")
	stdout, _, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: []string{"--install", dir}})
	if code != 0 || stdout != "installed "+dir+"/lockstep-sync\n" {
		t.Fatalf("code %d: %s", code, stdout)
	}
	stdout, _, code = labtest.RunCommand(t, labtest.Command{Path: dir + "/lockstep-sync", Args: []string{"--version"}})
	if code != 0 || !strings.Contains(stdout, "lockstep-sync "+labtest.Version+" (go") {
		t.Errorf("code %d: %s", code, stdout)
	}
}

// As little as a locked-down pod gives: no capabilities, another user, a root
// file system that cannot be written, only one writable directory.
func TestLockedDownPod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, shared := filepath.Join(dir, "source"), filepath.Join(dir, "shared")
	write(t, filepath.Join(source, "a"), "1")
	if err := os.Mkdir(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	for d := shared; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,bind,ro / || exit 98; touch /lockstep-writes 2>/dev/null && exit 99; "+
		"exec setpriv --reuid=12345 --regid=12345 --clear-groups --bounding-set=-all --no-new-privs %[2]s --root=%[1]s --directory=%[3]s --quiet=0", shared, binary(t), source)
	a := &agent{t: t, root: shared}
	a.Running = labtest.StartCommand(t, labtest.Command{Path: "unshare", Args: []string{"--mount", "--propagation=private", "sh", "-c", script}})
	a.wantFiles(map[string]string{"a": "1"})
	write(t, filepath.Join(source, "a"), "2")
	a.wantFiles(map[string]string{"a": "2"})
	if code := a.Stop(t); code != 0 {
		t.Errorf("SIGTERM: code %d", code)
	}
}
