package node_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestNodeLeavesNoTrace compares the host with what it was before, while a node
// runs a pod and after the node's end, however that comes.
func TestNodeLeavesNoTrace(t *testing.T) {
	labtest.In(t, labtest.TierAll)
	lab := labtest.Binary(t, "./lab")
	t.Run("exec is killed", func(t *testing.T) {
		ownRuns(t)
		before := host(t)
		starter := labtest.StartCommand(t, labtest.Command{Path: lab, Args: []string{"exec", "--node", "real", "--", "sleep", "600"}})
		run := awaitRun(t, starter, func(r *labtest.Run) bool { return slices.Contains(r.With, labtest.Node) })
		playOn(t, run)
		compareHost(t, "with a node", before)

		starter.Signal(t, syscall.SIGKILL)
		awaitNothing(t, run)
		compareHost(t, "after the kill", before)
	})
	t.Run("up and down", func(t *testing.T) {
		ownRuns(t)
		before := host(t)
		starter := labtest.StartCommand(t, labtest.Command{Path: lab, Args: []string{"up", "--node", "real"}})
		t.Cleanup(func() { labtest.RunCommand(t, labtest.Command{Path: lab, Args: []string{"down"}}) })
		if code := starter.ExitCode(t, 5*time.Minute); code != 0 {
			t.Fatalf("lab up ends with %d", code)
		}
		run := awaitRun(t, nil, func(r *labtest.Run) bool { return r.Detached })
		if want := "export KUBECONFIG=" + run.Kubeconfig() + "\n"; starter.Stdout() != want {
			t.Errorf("lab up prints %q, want %q", starter.Stdout(), want)
		}
		playOn(t, run)
		compareHost(t, "with a node", before)

		if _, stderr, code := labtest.RunCommand(t, labtest.Command{Path: lab, Args: []string{"down"}}); code != 0 {
			t.Errorf("lab down ends with %d: %s", code, stderr)
		}
		awaitNothing(t, run)
		compareHost(t, "after lab down", before)
	})
	t.Run("up is killed while it starts", func(t *testing.T) {
		ownRuns(t)
		before := host(t)
		tries := 0
		labtest.Eventually(t, 5*time.Minute, func() (bool, string) {
			tries++
			return killWhileStarting(t, lab), fmt.Sprintf("in each of %d tries the node was up before the kill", tries)
		})
		compareHost(t, "after the kill", before)
	})
}

// killWhileStarting kills a start of a node in the middle and waits until nothing of
// it is left. It tells whether that was in time: the start may be over by then, and
// then it shows nothing.
func killWhileStarting(t *testing.T, lab string) bool {
	t.Helper()
	starter := labtest.StartCommand(t, labtest.Command{Path: lab, Args: []string{"up", "--node", "real"}})
	run := awaitRun(t, starter, func(r *labtest.Run) bool {
		return slices.ContainsFunc(r.Processes, func(m labtest.Member) bool { return m.Name == "node" })
	})
	starter.Signal(t, syscall.SIGKILL)
	<-starter.Done()
	inTime := starter.Stdout() == ""
	if !inTime {
		labtest.RunCommand(t, labtest.Command{Path: lab, Args: []string{"down"}})
	}
	awaitNothing(t, run)
	return inTime
}

// ownRuns hides the control planes of others from a test, and this test's from them,
// but shares the built programs.
func ownRuns(t *testing.T) {
	t.Helper()
	cache, err := program.Cache()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	for _, kept := range []string{"bin", "build.lock"} {
		if err := os.Symlink(filepath.Join(cache, kept), filepath.Join(own, kept)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(program.CacheEnv, own)
}

// awaitRun waits for the only control plane to be as wanted. A starter that has
// ended brings none any more.
func awaitRun(t *testing.T, starter *labtest.Running, wanted func(*labtest.Run) bool) *labtest.Run {
	t.Helper()
	var found *labtest.Run
	labtest.Eventually(t, 5*time.Minute, func() (bool, string) {
		ended := starter != nil && isDone(starter)
		runs, err := labtest.Runs()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if wanted(r) {
				found = r
			}
		}
		if found == nil && ended {
			t.Fatalf("the lab ended before its node was up: %s", starter.Stderr())
		}
		return found != nil, fmt.Sprintf("%d control planes, none as wanted", len(runs))
	})
	return found
}

func isDone(r *labtest.Running) bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

// playOn runs a pod with volumes on the node: containers, mounts, addresses and
// control groups of pods are what a node could leave most of.
func playOn(t *testing.T, run *labtest.Run) {
	t.Helper()
	cluster, err := labtest.Open(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	load(t, cluster, showOn(cluster))
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(nil))
	awaitOutput(t, w, "env hello", "file one")
	if groups := groupsOf(t, run); len(groups) == 0 {
		t.Error("a node that runs a pod has control groups; this test looks for them in the wrong place")
	}
	shielded, err := os.ReadDir(filepath.Join(run.Dir, "sysctl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range shielded {
		if !slices.Contains(kernelSettings(), strings.ReplaceAll(setting.Name(), ".", "/")) {
			t.Errorf("the node shields %s, which this test does not compare", setting.Name())
		}
	}
}

// awaitNothing waits until nothing of a control plane is left: no process, no
// control group, no directory.
func awaitNothing(t *testing.T, run *labtest.Run) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for _, p := range run.Processes {
			if p.Alive() {
				return false, p.Name + " still runs"
			}
		}
		if left := groupsOf(t, run); len(left) > 0 {
			return false, fmt.Sprintf("control groups are left: %q", left)
		}
		_, err := os.Stat(run.Dir)
		return errors.Is(err, os.ErrNotExist), run.Dir + " is still there"
	})
}

// groupsOf lists the control groups of a node, in all hierarchies.
func groupsOf(t *testing.T, run *labtest.Run) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(pattern + remains.Group(run.Dir))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func compareHost(t *testing.T, when string, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, host(t)); diff != "" {
		t.Errorf("the host %s differs from before (-before +now):\n%s", when, diff)
	}
}

// kernelSettings are those that kubelet would write.
func kernelSettings() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/conf/all/route_localnet",
	}
}

// host is what a node could change on its host and must not: kernel settings,
// network devices, firewall rules, mounts, and the directories that its programs use
// elsewhere.
func host(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, name := range kernelSettings() {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		state[name] = strings.TrimSpace(string(value))
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	state["mounts"] = string(mounts)
	for _, dir := range []string{
		"/sys/class/net", "/run/netns", "/run/containerd", "/var/lib/containerd", "/var/lib/cni",
		"/var/lib/kubelet", "/var/log/pods", "/var/log/containers",
	} {
		state[dir] = namesIn(dir)
	}
	for _, command := range [][]string{{"iptables-save"}, {"ip6tables-save"}, {"nft", "list", "ruleset"}} {
		state[command[0]] = rules(command)
	}
	return state
}

func namesIn(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "absent"
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// rules are what a tool shows of the firewall, without its remarks, which have the
// time in them.
func rules(command []string) string {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return "cannot be asked"
	}
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	return strings.Join(lines, "\n")
}
