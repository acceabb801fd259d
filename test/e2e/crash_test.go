package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// crashing is a controller whose record can be taken from it before it is killed.
type crashing struct {
	*testkit.Controller
	world   *testkit.World
	account *labtest.Account
}

// accountable is a controller that follows the app, under an account of its own.
func accountable(t *testing.T, flags ...string) (*testkit.World, *testkit.Witness, crashing) {
	t.Helper()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	witness := w.NewWitness(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	w.AwaitRecordPermission(t, account, true)
	c := crashing{w.StartControllerAs(t, account.Kubeconfig, flags...), w, account}
	witness.AwaitKnown(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	return w, witness, c
}

// forbidRecord makes patches go on, and their record fail.
func (c crashing) forbidRecord(t *testing.T) {
	t.Helper()
	c.account.Allow(t, testkit.OwnRules()...)
	c.world.AwaitRecordPermission(t, c.account, false)
}

func (c crashing) kill(t *testing.T) {
	t.Helper()
	c.Signal(t, syscall.SIGKILL)
	if code := c.ExitCode(t, testkit.Patience); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("exit code %d", code)
	}
}

// TestKilledBetweenPatchAndRecord: the patch is made, its record is not, and a
// person takes the rollout back before the controller returns.
func TestKilledBetweenPatchAndRecord(t *testing.T) {
	t.Parallel()
	w, witness, c := accountable(t)

	c.forbidRecord(t)
	w.SetConfig(t, "app", "key", "2")
	shown := w.AwaitRollout(t, testkit.Web, "")
	c.kill(t)
	if entry := w.Record(t, testkit.Web); strings.Contains(entry, digest(shown)) {
		t.Fatalf("the record %q has what was to be kept from it", entry)
	}
	if got := w.Revisions(t, testkit.Web); got != 2 {
		t.Fatalf("%d revisions before the undo, want 2", got)
	}
	undo(t, w, "")

	inprocess.StartReady(t, w)
	witness.Pass(t)
	if got := w.Shown(t, testkit.Web); got != "" {
		t.Errorf("the undone Deployment shows %q: it was pushed again", got)
	}
	if got := w.Revisions(t, testkit.Web); got != 2 {
		t.Errorf("%d revisions, want the 2 from before", got)
	}
	w.SetConfig(t, "app", "key", "3")
	w.AwaitRollout(t, testkit.Web, "")
}

// TestKilledBetweenPatchAndRecordOfAnOldVersion does the same with content that has
// been there before: no new revision tells of the patch, an old one is used again.
func TestKilledBetweenPatchAndRecordOfAnOldVersion(t *testing.T) {
	t.Parallel()
	w, witness, c := accountable(t, "--quiet", testkit.Quiet)
	before := ""
	shown := map[string]string{}
	for _, value := range []string{"2", "3"} {
		w.SetConfig(t, "app", "key", value)
		before = w.AwaitRollout(t, testkit.Web, before)
		shown[value] = before
		w.AwaitRecord(t, testkit.Web, digest(before))
		w.Revisions(t, testkit.Web)
	}

	c.forbidRecord(t)
	w.SetConfig(t, "app", "key", "2")
	if again := w.AwaitRollout(t, testkit.Web, before); again != shown["2"] {
		t.Fatalf("the template shows %q, want what it showed before, %q", again, shown["2"])
	}
	c.kill(t)
	if got := w.Revisions(t, testkit.Web); got != 3 {
		t.Fatalf("%d revisions before the undo, want 3", got)
	}
	undo(t, w, shown["3"])
	w.Revisions(t, testkit.Web)

	inprocess.StartReady(t, w, "--quiet", testkit.Quiet)
	witness.Pass(t)
	if got := w.Shown(t, testkit.Web); got != shown["3"] {
		t.Errorf("the Deployment was reverted to %q and shows %q: it was pushed again", shown["3"], got)
	}
	w.SetConfig(t, "app", "key", "4")
	w.AwaitRollout(t, testkit.Web, shown["3"])
}

// TestKilledBetweenPatchAndRecordThenContentGoesBack: the record and the content agree
// again, and the pods run what was between.
func TestKilledBetweenPatchAndRecordThenContentGoesBack(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"FirstPatch": "1", "LaterPatch": "2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, c := accountable(t, "--quiet", testkit.Quiet)
			if err := w.Client.Patch(t.Context(), w.Deployment(t, testkit.Web), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))); err != nil {
				t.Fatal(err)
			}
			before := ""
			if first != "1" {
				w.SetConfig(t, "app", "key", first)
				before = w.AwaitRollout(t, testkit.Web, "")
				w.AwaitRecord(t, testkit.Web, digest(before))
				w.Revisions(t, testkit.Web)
			}
			c.forbidRecord(t)
			w.SetConfig(t, "app", "key", "3")
			unwritten := w.AwaitRollout(t, testkit.Web, before)
			w.Revisions(t, testkit.Web)
			w.StartPods(t, testkit.Web)
			c.kill(t)
			w.SetConfig(t, "app", "key", first)

			inprocess.StartReady(t, w, "--quiet", testkit.Quiet)
			shown := w.AwaitRollout(t, testkit.Web, unwritten)
			if before != "" && shown != before {
				t.Errorf("the template shows %q, want what was there before, %q", shown, before)
			}
			w.AwaitRecord(t, testkit.Web, digest(shown))
		})
	}
}

// digest is what a template shows of the ConfigMap.
func digest(shown string) string {
	for element := range strings.SplitSeq(shown, ",") {
		if value, ok := strings.CutPrefix(element, "configmap/app~"); ok {
			return value
		}
	}
	return ""
}

func TestTerminationFlushesTheRecord(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	c := w.StartReady(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	w.SetConfig(t, "app", "key", "2")
	shown := w.AwaitRollout(t, testkit.Web, "")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the answer to its patch may still be on its way
		return strings.Contains(c.Stderr(), "verb=roll"), "the log doesn't report the rollout:\n" + c.Stderr()
	})
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if entry := w.Record(t, testkit.Web); !strings.Contains(entry, digest(shown)) {
		t.Errorf("the record %q does not have the delivered %s", entry, shown)
	}
}
