package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// first is an agent as PID 1 of a PID namespace, with a shell script as its child.
type first struct {
	*agentkit.Agent

	t       *testing.T
	unshare *labtest.Running
	source  string // the directory that the agent follows
}

// inNamespace starts the built program as PID 1, which needs root.
func inNamespace(t *testing.T, script string, flags ...string) *first {
	t.Helper()
	labtest.In(t, labtest.TierAll)
	source, root, addr := t.TempDir(), agentkit.NewRoot(t), agentkit.FreeAddr(t)
	agentkit.Write(t, filepath.Join(source, "a.conf"), "1")
	args := []string{"--pid", "--fork", "--mount-proc", "--kill-child", agentkit.Program(t), "--root=" + root, "--health-addr=" + addr, "--quiet=0", "--directory=" + source}
	args = append(append(args, flags...), "--", "sh", "-c", script)
	unshare := labtest.StartCommand(t, labtest.Command{Path: "unshare", Args: args, Env: []string{"ROOT=" + root}})
	return &first{Agent: agentkit.New(t, unshare, root, addr), t: t, unshare: unshare, source: source}
}

// change replaces the only file that the agent follows.
func (f *first) change(content string) {
	f.t.Helper()
	agentkit.Write(f.t, filepath.Join(f.source, "a.conf"), content)
}

// init is the agent's number outside of the namespace: unshare's only child.
func (f *first) init() int {
	f.t.Helper()
	var pid int
	labtest.Eventually(f.t, agentkit.Patience, func() (bool, string) {
		children := agentkit.Read(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", f.unshare.PID()))
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(children))
		return err == nil, fmt.Sprintf("unshare has the children %q", children)
	})
	return pid
}

// signal sends a signal to the agent itself.
func (f *first) signal(sig syscall.Signal) {
	f.t.Helper()
	if err := syscall.Kill(f.init(), sig); err != nil {
		f.t.Fatal(err)
	}
}

// untilTold is a piece of script that waits for tell.
const untilTold = `until test -e $ROOT.told; do sleep 0.05; done`

func (f *first) tell() {
	f.t.Helper()
	agentkit.Write(f.t, f.Root+".told", "")
}

func TestPID1ExitCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 42": 42, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if got := inNamespace(t, script).ExitCode(t, agentkit.Patience); got != want {
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
	a.WantOutput("1 pid")
	if !strings.Contains(a.Stdout(), "parent 1\n") {
		t.Errorf("the agent is not PID 1: %s", a.Stdout())
	}
	a.WantOutput("ready")
	if strings.Contains(a.Stdout(), "reloaded") {
		t.Error("the child was told of the first set")
	}
	a.change("2")
	a.WantOutput("reloaded\n2")
}

// A signal that the application does not handle yet would kill it.
func TestASignalDoesNotKillAChildWithoutAHandler(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `echo ready; `+untilTold+`; trap 'echo reloaded; exit 7' HUP; while :; do sleep 0.05; done`, "--notify=signal:HUP", "--retry=100ms")
	a.WantOutput("ready")
	a.change("2")
	a.WantLog("does not handle SIGHUP (yet)")
	a.tell()
	if code := a.ExitCode(t, agentkit.Patience); code != 7 {
		t.Errorf("the child ended with %d, want 7 from its handler", code)
	}
}

func TestPID1ForwardsSignals(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `for s in HUP INT QUIT USR1 USR2 WINCH TERM; do trap "echo got $s" $s; done; echo ready; while :; do sleep 0.05; done`, "--stop-grace=10s")
	a.WantOutput("ready")
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH} {
		a.signal(sig)
		a.WantOutput("got " + name + "\n")
	}
	a.signal(syscall.SIGTERM)
	a.WantOutput("got TERM\n")
	if code := a.ExitCode(t, agentkit.Patience); code != 128+9 {
		t.Errorf("a child that does not end was not killed after the grace: code %d", code)
	}
}

func TestPID1StopsWithTheChildsCode(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.05; done`, "--stop-signal=INT")
	a.WantOutput("ready")
	a.signal(syscall.SIGTERM)
	if code := a.ExitCode(t, agentkit.Patience); code != 5 || !strings.Contains(a.Stdout(), "bye") {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A second request does not wait for the grace.
func TestPID1SecondStopIsAtOnce(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done`, "--stop-grace=10m")
	a.WantOutput("ready")
	a.signal(syscall.SIGTERM)
	a.WantOutput("no")
	a.signal(syscall.SIGTERM)
	if code := a.ExitCode(t, agentkit.Patience); code != 128+9 {
		t.Errorf("code %d", code)
	}
}

// Orphans are reaped while commands run and their results stay right: the
// child makes orphans, the agent runs a command for each change.
func TestPID1ReapsOrphansWithoutLosingStatuses(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `for i in $(seq 200); do (sh -c 'sleep 0.01' &) ; done; echo made; while :; do sleep 0.05; done`,
		"--check=sh -c 'sleep 0.01; exit 0'", "--notify=exec:sh -c 'exit 0'")
	a.WantOutput("made")
	for i := range 20 {
		a.change(strconv.Itoa(i))
		a.WantFiles(map[string]string{"a.conf": strconv.Itoa(i)})
	}
	for _, stage := range []string{"check", "notify"} {
		if failed := a.Metric(`lockstep_sync_attempts_total{result="failed",stage="` + stage + `"}`); failed != "" {
			t.Errorf("%s of %s lost their exit status", failed, stage)
		}
	}
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
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
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	pidfile := filepath.Join(t.TempDir(), "pid")
	a := agentkit.Start(t, "--directory="+source, "--stop-grace=500ms", "--", "sh", "-c",
		"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > "+pidfile+"; while :; do sleep 0.05; done' & wait; while :; do sleep 0.05; done")
	var straggler int
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		raw, err := os.ReadFile(pidfile)
		straggler, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return straggler > 0, fmt.Sprintf("the straggler hasn't written its process id: %q, error %v", raw, err)
	})
	if code := a.Stop(t); code != 128+9 {
		t.Errorf("code %d", code)
	}
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		err := syscall.Kill(straggler, 0)
		return err != nil, fmt.Sprintf("process %d, the straggler, still runs", straggler)
	})
}

// Restart instead of a signal: never two children, and the new one has the new
// files.
func TestRestartOnChange(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo stopping; sleep 0.2; echo stopped; exit 0' TERM; read c < $ROOT/a.conf || :; echo "run with $c"; while :; do sleep 0.05; done`, "--notify=restart")
	a.WantOutput("run with 1")
	a.change("2")
	a.WantOutput("stopped\nrun with 2")
	if strings.Count(a.Stdout(), "run with") != 2 {
		t.Errorf("output %q", a.Stdout())
	}
}

// A child that dies of a reload while it is asked about it is noticed at once:
// the set that killed it is rolled back and it runs again.
func TestAChildThatDiesWhileItIsAsked(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `echo run; trap 'read c < $ROOT/a.conf || :; test $c = 1 || exit 3' HUP; while :; do sleep 0.05; done`,
		"--notify=signal:HUP", "--confirm=exec:false", "--confirm-timeout=10m", "--roll-back")
	a.WantOutput("run")
	a.change("2")
	a.WantOutput(strings.Repeat("run\n", 2))
	a.WantFiles(map[string]string{"a.conf": "1"})
	a.WantStatus("the set rolled back", func(s podsync.Status) bool { return s.Barred == s.Observed && s.Reason == podsync.RolledBack })
}

// Being stopped in the middle of a restart leaves the child its grace, and no
// new one is started.
func TestStopDuringARestart(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo stopping; `+untilTold+`; echo stopped; exit 5' TERM; echo run; while :; do sleep 0.05; done`, "--notify=restart", "--stop-grace=10m")
	a.WantOutput("run")
	a.change("2")
	a.WantOutput("stopping")
	a.signal(syscall.SIGTERM)
	a.WantLog("msg=stopping signal=SIGTERM")
	a.tell()
	if code := a.ExitCode(t, agentkit.Patience); code != 5 || a.Stdout() != "run\nstopping\nstopped\n" {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A second request during a restart does not wait for the grace.
func TestSecondStopDuringARestart(t *testing.T) {
	t.Parallel()
	a := inNamespace(t, `trap 'echo no' TERM; echo run; while :; do sleep 0.05; done`, "--notify=restart", "--stop-grace=10m")
	a.WantOutput("run")
	a.change("2")
	a.WantOutput("no")
	for range 2 {
		a.signal(syscall.SIGTERM)
		a.WantLog("msg=stopping signal=SIGTERM") // two equal signals at once may become one
	}
	if code := a.ExitCode(t, agentkit.Patience); code != 128+9 {
		t.Errorf("code %d, output %q", code, a.Stdout())
	}
}

// A child that cannot be started is an error of its own, with the reason.
func TestChildThatDoesNotExist(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: agentkit.Program(t), Args: []string{"--root=" + agentkit.NewRoot(t), "--directory=" + source, "--", "/does/not/exist"}})
	if code != 1 || !strings.Contains(stderr, "start the application: fork/exec /does/not/exist: no such file or directory") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// A failed check at the start keeps the child from starting, and says how it ended
// and where its words are.
func TestChildIsNotStartedWithRefusedFiles(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: agentkit.Program(t), Args: []string{
		"--root=" + filepath.Join(t.TempDir(), "x"), "--directory=" + source,
		"--check=sh -c 'echo line 7 is wrong; exit 1'", "--", "echo", "started",
	}})
	if code != 1 || stdout != "" || !strings.Contains(stderr, "the check refused the first set: run sh: exit status 1; to see its output, run") {
		t.Errorf("code %d: %s %s", code, stdout, stderr)
	}
}

// --install copies a program that works from where it is put.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bin")
	stdout, _, code := labtest.RunCommand(t, labtest.Command{Path: agentkit.Program(t), Args: []string{"--install", dir}})
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
	labtest.In(t, labtest.TierAll) // root sets it up
	dir := t.TempDir()
	source, shared := filepath.Join(dir, "source"), filepath.Join(dir, "shared")
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	if err := os.Mkdir(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	agentkit.OpenPath(t, shared, 0o777)
	script := fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,bind,ro / || exit 98; touch /lockstep-writes 2>/dev/null && exit 99; "+
		"exec setpriv --reuid=12345 --regid=12345 --clear-groups --bounding-set=-all --no-new-privs %[2]s --root=%[1]s --directory=%[3]s --quiet=0", shared, agentkit.Program(t), source)
	a := agentkit.New(t, labtest.StartCommand(t, labtest.Command{Path: "unshare", Args: []string{"--mount", "--propagation=private", "sh", "-c", script}}), shared, "")
	a.WantFiles(map[string]string{"a": "1"})
	agentkit.Write(t, filepath.Join(source, "a"), "2")
	a.WantFiles(map[string]string{"a": "2"})
	if code := a.Stop(t); code != 0 {
		t.Errorf("SIGTERM: code %d", code)
	}
}

// A process of another user cannot be signalled; the message says what helps.
func TestSignalToAnotherUsersProcess(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // only root can be another user
	dir := t.TempDir()
	sleeper := labtest.StartCommand(t, labtest.Command{Path: "sh", Args: []string{"-c", "trap : HUP; while :; do sleep 1000; done"}})
	pidfile := filepath.Join(dir, "pid")
	agentkit.Write(t, pidfile, fmt.Sprint(sleeper.PID()))
	agentkit.Write(t, filepath.Join(dir, "source", "a"), "1")
	agentkit.OpenPath(t, dir, 0o777)
	root, addr := filepath.Join(dir, "config"), agentkit.FreeAddr(t)
	a := agentkit.New(t, labtest.StartCommand(t, labtest.Command{Path: "setpriv", Args: []string{
		"--reuid=12345", "--regid=12345", "--clear-groups", "--bounding-set=-all",
		agentkit.Program(t), "--root=" + root, "--health-addr=" + addr, "--directory=" + filepath.Join(dir, "source"), "--initial-notify=always",
		"--notify=signal:HUP@pidfile:" + pidfile, "--max-failures=1",
	}}), root, addr)
	body := a.WantProbe("/healthz", http.StatusServiceUnavailable)
	for _, want := range []string{"belongs to uid 0 and the agent is uid 12345", "the KILL capability to the agent (SYS_PTRACE is not needed)"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q lacks %q", body, want)
		}
	}
	if err := syscall.Kill(sleeper.PID(), 0); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
}
