package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// A tenant whose namespace sorts first cannot take over another tenant's dashboard, not even
// while the sidecar is down. When the owner deletes it, the name is free.
func TestADashboardStaysWithItsNamespace(t *testing.T) {
	t.Parallel()
	attacker := newCluster(t)
	victim := clusterOn(t, attacker.lab)
	if attacker.namespace > victim.namespace {
		attacker, victim = victim, attacker
	}
	on := map[string]string{"dashboard": "1"}
	root, env := filepath.Join(t.TempDir(), "dashboards"), []string{"LABEL=dashboard", "NAMESPACE=" + attacker.namespace + "," + victim.namespace}
	victim.apply(object{kind: "ConfigMap", name: "board", labels: on, data: map[string]string{"x.json": "victim"}})
	a := k8sSidecar(t, victim, root, env...)
	a.WantFiles(map[string]string{"x.json": "victim"})

	attacker.apply(object{kind: "ConfigMap", name: "board", labels: on, data: map[string]string{"x.json": "attacker", "y.json": "attacker"}})
	a.WantFiles(map[string]string{"x.json": "victim", "y.json": "attacker"})
	lost := func(s podsync.Status) bool {
		return s.Degraded && strings.Contains(s.Message, `the file "x.json" of configmap/`+attacker.namespace+"/board is left out: configmap/"+victim.namespace+"/board had it first")
	}
	a.WantStatus("whose file is left out", lost)
	a.WantMetric("lockstep_sync_degraded", "1")
	a.Stop(t)

	// The owner's object is the younger one now: only the memory of the agent tells who was first.
	victim.delete("board")
	victim.apply(object{kind: "ConfigMap", name: "board", labels: on, data: map[string]string{"x.json": "victim 2"}})
	a = k8sSidecar(t, victim, root, env...)
	a.WantFiles(map[string]string{"x.json": "victim 2", "y.json": "attacker"})
	a.WantStatus("whose file is left out", lost)

	victim.delete("board")
	a.WantFiles(map[string]string{"x.json": "attacker", "y.json": "attacker"})
	a.WantMetric("lockstep_sync_degraded", "0")
}

// Sources beyond --max-size leave the published set in place, and are read again when they fit.
func TestMaxSize(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on, large := map[string]string{"x": "y"}, strings.Repeat("x", 5000)
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one": large}})
	a := agentkit.Run(t, c.kube("--selector=x=y", "--max-size=12Ki", "--stall-deadline=4s")...)
	a.WantFiles(map[string]string{"one": large})

	c.apply(object{kind: "ConfigMap", name: "two", labels: on, data: map[string]string{"two": large}})
	a.WantStatus("a refusal", func(s podsync.Status) bool {
		return s.Reason == podsync.SetTooLarge && s.Degraded && strings.Contains(s.Message, "the sources total 16.0 KiB and the limit is 12.0 KiB")
	})
	a.WantFiles(map[string]string{"one": large})
	a.WantMetric("lockstep_sync_source_bytes", "16384")
	a.WantLog("the sources are too large; the published set stays")

	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one": "small"}})
	a.WantFiles(map[string]string{"one": "small", "two": large})
	a.WantMetric("lockstep_sync_degraded", "0")
}

// A status file that is a pipe is an error, and nothing waits for its writer.
func TestStatusOfAPipe(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	agentkit.Write(t, filepath.Join(root, "..lockstep", "other"), "")
	if err := unix.Mkfifo(filepath.Join(root, "..lockstep", "status.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "status", "--root="+root); code != 1 || !strings.Contains(stderr, "status.json is a named pipe, not a regular file") {
		t.Errorf("code %d, %s", code, stderr)
	}
}
