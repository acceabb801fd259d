package reload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// simple is a followed Deployment "web" with a ConfigMap "app".
func simple() string {
	return configMap("app", "key: one") + deployment("web", auto, uses("configmap/app"))
}

// deleteShards deletes the record.
func (s *stage) deleteShards(t testing.TB) {
	t.Helper()
	err := s.Client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(s.Own), client.HasLabels{settings.StateLabel})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordIsDeleted: a running controller writes it again; one that finds none
// takes a baseline. Either way nobody is restarted, and the next change is one.
func TestRecordIsDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	given := digest(t, s.shown(t, web), "configmap/app")
	s.awaitKnown(t, deploy, "web", given)

	s.deleteShards(t)
	s.awaitKnown(t, deploy, "web", given)
	s.checkRollouts(t, "the record was deleted under a running controller", 1, web)
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 2)

	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.deleteShards(t)
	s.change(t, "configmap/app", "{data: {key: four}}")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.checkRollouts(t, "nothing is known, so nothing has changed", 2, web)
	s.change(t, "configmap/app", "{data: {key: five}}")
	s.awaitRollouts(t, web, 3)
}

// shardOf is the ConfigMap that remembers a Deployment.
func (s *stage) shardOf(t testing.TB, name string) corev1.ConfigMap {
	t.Helper()
	for _, shard := range s.shards(t) {
		if _, ok := shard.Data[deploy+"_"+s.Namespace+"_"+name]; ok {
			return shard
		}
	}
	t.Fatalf("%s is not on record", name)
	return corev1.ConfigMap{}
}

// patchShard writes into the record as another writer would.
func (s *stage) patchShard(t testing.TB, shard corev1.ConfigMap, key, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"data":{%q:%q}}`, key, text)
	if err := s.Client.Patch(t.Context(), &shard, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
}

// TestRecordCannotBeRead: it is kept, reported and rebuilt as a baseline; nobody
// is restarted, not even a workload that is younger than the record.
func TestRecordCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := s.run(t)
	s.awaitSecondAfter(t, s.recordBegan(t))
	s.make(t, configMap("late", "key: one")+deployment("late", auto, uses("configmap/late")))
	s.awaitSecondAfter(t, s.read(t, "configmap/late").GetCreationTimestamp().Time)
	s.change(t, "deployment/late", "{spec: {template: {metadata: {labels: {release: second}}}}}")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.awaitKnown(t, deploy, "late", "configmap/late")
	s.witness.Pass(t)
	made := s.awaitRevision(t, "late")
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	names := []string{"web", "late"}
	for _, name := range names {
		s.patchShard(t, s.shardOf(t, name), deploy+"_"+s.Namespace+"_"+name, "{torn")
	}
	s.awaitSecondAfter(t, made)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, "configmap/late", "{data: {key: two}}")
	c = s.run(t)
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "configmap/")
		if kept := s.stored(t, "unreadable."+deploy+"_"+s.Namespace+"_"+name); kept != "{torn" {
			t.Errorf("what could not be read of %s was not kept: %q", name, kept)
		}
		if want := "read the record of deployment/" + name + " in namespace " + s.Namespace; !strings.Contains(c.Stderr(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	s.checkRollouts(t, "a baseline was taken", 0, web)
	s.checkRollouts(t, "a baseline was taken; the one rollout is the person's", 1, "deployment/late")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 1)
}

// TestTwoWriters: two controllers without a leader, and a person, write one record.
// Nothing of theirs is lost, and each change is one rollout.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.run(t)
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	for turn := 1; turn <= 4; turn++ {
		s.patchShard(t, s.shardOf(t, "web"), "note-of-a-person", fmt.Sprint(turn))
		s.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		s.awaitRollouts(t, web, turn)
		s.awaitKnown(t, deploy, "web", digest(t, s.shown(t, web), "configmap/app"))
	}
	s.checkRollouts(t, "four changes", 4, web)
	if got := s.shardOf(t, "web").Data["note-of-a-person"]; got != "4" {
		t.Errorf("what another wrote is %q, want it kept", got)
	}
}

// undo is "kubectl rollout undo" to the revision that shows the versions.
func (s *stage) undo(t testing.TB, name, shown string) {
	t.Helper()
	s.Undo(t, name, shown)
}

// TestDueAtFirstSight: a source that a pattern means appears while the workload is
// held, and the controller is killed before the release.
func TestDueAtFirstSight(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app-a", "key: one")+
		deployment("web", settings.Reload+`: "configmap/app-*", `+settings.Hold+": freeze", plain))
	c := s.runProcess(t)
	s.awaitKnown(t, deploy, "web", "configmap/app-a")
	s.make(t, configMap("app-b", "key: one"))
	s.AwaitEvent(t, "web", "Warning Held", "configmap/app-b")
	s.awaitKnown(t, deploy, "web", "configmap/app-b")
	kill(t, c)
	s.run(t)
	s.checkRollouts(t, "held", 0, web)
	s.annotate(t, web, settings.Hold)
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", versionOf("one"))
	s.checkRollouts(t, "delivered", 1, web)
}

// TestKilledAndUndoneStatefulSet: the patch is made, its record is not, and a person
// takes it back before the controller returns. No number tells of it, the time of
// the ControllerRevision does.
func TestKilledAndUndoneStatefulSet(t *testing.T) {
	t.Parallel()
	const db = "statefulset/db"
	s := newStage(t, configMap("app", "key: one")+workload("StatefulSet", "db", auto, uses("configmap/app")))
	s.awaitObserved(t, db) // it is to have its first revision, for the undo
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	s.AwaitRecordPermission(t, account, true)
	c := s.StartControllerAs(t, account.Kubeconfig, "--quiet", testkit.Quiet)
	s.awaitKnown(t, "StatefulSet.apps", "db", versionOf("one"))
	known := testkit.ConfigMap("known", "key", "")
	s.Create(t, known)
	s.awaitSecondAfter(t, known.CreationTimestamp.Time)

	account.Allow(t, testkit.OwnRules()...)
	s.AwaitRecordPermission(t, account, false)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, db, 1)
	s.awaitObserved(t, db)
	kill(t, c)
	if entry := s.remembered(t, "StatefulSet.apps", "db"); strings.Contains(entry, versionOf("two")) {
		t.Fatalf("the record %q has what was to be kept from it", entry)
	}
	s.change(t, db, `{spec: {template: {metadata: {annotations: {`+settings.Inputs+`: null}}}}}`)

	s.run(t)
	s.awaitKnown(t, "StatefulSet.apps", "db", versionOf("two"))
	s.checkRollouts(t, "ours and the person's, and nothing after it", 2, db)
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, db, 3)
}
