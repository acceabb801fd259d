package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// lease is one that a leader does not lose to a busy machine: it is lost when it was
// not renewed for two thirds of this time.
var lease = []string{"--leader-elect=true", "--lease-duration=20s"}

// overLine is a world with an app, and a line to its API server with the kubeconfig that
// goes through it.
func overLine(t *testing.T) (w *testkit.World, line *testkit.Line, kubeconfig string) {
	t.Helper()
	w = testkit.NewWorld(t)
	w.CreateApp(t)
	line, kubeconfig = testkit.NewLine(t, w.Cluster.Kubeconfig(), w.Cluster.Server())
	return w, line, kubeconfig
}

func TestOutageIsSurvived(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		begin, end func(*testkit.Line)
	}{
		"Cut":    {"connections are refused", (*testkit.Line).Cut, (*testkit.Line).Mend},
		"Frozen": {"connections hang", (*testkit.Line).Freeze, (*testkit.Line).Thaw},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, line, kubeconfig := overLine(t)
			c := inprocess.StartControllerAs(t, w, kubeconfig)
			w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
			c.AwaitReady(t, true)
			tc.begin(line)
			c.AwaitReady(t, false)
			if code, text := c.Probe(t, "/healthz"); code != 200 {
				t.Errorf("%s: /healthz answers %d %s; a restart would not help", tc.reason, code, text)
			}
			w.SetConfig(t, "app", "key", "2")
			w.SetSecret(t, "db", "key", "2")
			tc.end(line)
			shown := w.AwaitRollout(t, testkit.Web, "")
			c.AwaitReady(t, true)
			if !strings.Contains(shown, "configmap/app~") || !strings.Contains(shown, "secret/db~") {
				t.Errorf("%s: what changed meanwhile is shown as %q", tc.reason, shown)
			}
		})
	}
}

func TestNotReadyUntilSynced(t *testing.T) {
	t.Parallel()
	w, line, kubeconfig := overLine(t)
	line.Cut()
	c := inprocess.StartControllerAs(t, w, kubeconfig)
	c.AwaitReady(t, false)
	if _, text := c.Probe(t, "/readyz"); !strings.Contains(text, "[-]") || !strings.Contains(text, "not ready") {
		t.Errorf("/readyz does not say what is missing: %q", text)
	}
	line.Mend()
	c.AwaitReady(t, true)
	if _, text := c.Probe(t, "/readyz?verbose"); !strings.Contains(text, "[+] configmaps in "+w.Namespace+": followed") {
		t.Errorf("/readyz?verbose does not say what works: %q", text)
	}
}

func TestLostLeaseEndsTheProcess(t *testing.T) {
	t.Parallel()
	w, line, kubeconfig := overLine(t)
	c := w.StartControllerAs(t, kubeconfig, lease...)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	line.Cut()
	awaitLost(t, c)
	w.SetConfig(t, "app", "key", "2")
	w.StartController(t)
	w.AwaitRollout(t, testkit.Web, "")
	w.CheckRevisions(t, testkit.Web, 2, "one rollout for one change")
}

func TestLeaseOfAnotherHolderEndsTheProcess(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	c := inprocess.StartController(t, w, lease...)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	taken := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: "lockstep"}}
	if err := w.Client.Patch(t.Context(), taken, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another"}}`))); err != nil {
		t.Fatal(err)
	}
	awaitLost(t, c)
}

// awaitLost is when the process has ended for want of the lease, and says so.
func awaitLost(t *testing.T, c *testkit.Controller) {
	t.Helper()
	if code := c.ExitCode(t, testkit.Patience); code != 1 || !strings.Contains(c.Stderr(), "leader election lost") {
		t.Errorf("exit code %d after the lease was lost, want 1 and the cause:\n%s", code, c.Stderr())
	}
}

// TestStopOfAReplicaIsNoError: every upgrade stops the leader and the standby. Neither
// has lost anything then, and nothing may look like an error to who watches the log.
func TestStopOfAReplicaIsNoError(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	leader := w.StartController(t, lease...)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	standby := w.StartController(t, lease...)
	standby.AwaitReady(t, true)
	w.SetConfig(t, "app", "key", "2")
	w.AwaitRollout(t, testkit.Web, "")
	for _, c := range []*testkit.Controller{standby, leader} {
		if code := c.Stop(t); code != 0 || strings.Contains(c.Stderr(), "level=ERROR") {
			t.Errorf("exit code %d after SIGTERM, want 0 and no error:\n%s", code, c.Stderr())
		}
	}
}

func TestAnotherReplicaTakesOver(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	leader := w.StartController(t, lease...)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	holder := holderOf(t, w)
	standby := inprocess.StartController(t, w, lease...)
	standby.AwaitReady(t, true)

	w.SetConfig(t, "app", "key", "2")
	first := w.AwaitRollout(t, testkit.Web, "")
	if strings.Contains(standby.Stderr(), "verb=roll") || holderOf(t, w) != holder {
		t.Errorf("the standby works beside the leader:\n%s", standby.Stderr())
	}
	leader.Signal(t, syscall.SIGKILL)
	leader.ExitCode(t, testkit.Patience)
	w.SetConfig(t, "app", "key", "3")
	w.AwaitRollout(t, testkit.Web, first)
	w.CheckRevisions(t, testkit.Web, 3, "one rollout for each of two changes")
	if holderOf(t, w) == holder {
		t.Error("the lease still names the killed leader")
	}
}

// holderOf is who holds the lease.
func holderOf(t *testing.T, w *testkit.World) string {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Own, Name: "lockstep"}, l); err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity
}

// TestAPIServerRestarts takes the real API server away, which a line cannot show:
// its watch cache and its resource versions begin anew.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	cluster := labtest.Private(t, labtest.Options{})
	w := testkit.NewWorldOn(t, cluster)
	w.CreateApp(t)
	c := inprocess.StartReady(t, w)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")

	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	c.AwaitReady(t, false)
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.SetConfig(t, "app", "key", "2")
	w.AwaitRollout(t, testkit.Web, "")
	w.CheckRevisions(t, testkit.Web, 2, "one change after the API server's restart")
	c.AwaitReady(t, true)
	select {
	case <-c.Done():
		t.Error("the process without leader election ended")
	default:
	}
	freezeAndThaw(t, cluster, w, c)
}

// freezeAndThaw: an API server that hangs is worse than one that is gone.
func freezeAndThaw(t *testing.T, cluster *labtest.Cluster, w *testkit.World, c *testkit.Controller) {
	t.Helper()
	before := w.Shown(t, testkit.Web)
	if err := cluster.FreezeAPIServer(); err != nil {
		t.Fatal(err)
	}
	c.AwaitReady(t, false)
	if err := cluster.ThawAPIServer(); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Own, Name: "lockstep"}, &coordinationv1.Lease{})
		return client.IgnoreNotFound(err) == nil, fmt.Sprintf("the thawed API server answers %v", err)
	})
	w.SetConfig(t, "app", "key", "3")
	w.AwaitRollout(t, testkit.Web, before)
	w.CheckRevisions(t, testkit.Web, 3, "another change after the freeze")
	c.AwaitReady(t, true)
}
