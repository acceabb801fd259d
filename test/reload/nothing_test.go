package reload_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// digest is what a template shows of one source.
func digest(t testing.TB, shown, source string) string {
	t.Helper()
	id, err := input.ParseSource(source)
	if err != nil {
		t.Fatal(err)
	}
	return input.ParseShown(shown)[id].Digest
}

func containsAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// TestNothingIsRestartedFor goes through what looks like a change and is none.
func TestNothingIsRestartedFor(t *testing.T) {
	t.Parallel()
	items := "containers: [{name: app, image: app}], volumes: [{name: v, configMap: {name: app, items: [{key: %s, path: p}]}}]"
	s := newStage(t, configMap("app", "key: one, other: one")+configMap("gone", "key: one")+secret("db", "key: one")+
		deployment("web", auto, uses("configmap/app", "configmap/gone", "secret/db"))+
		deployment("keyed", auto, fmt.Sprintf(items, "key"))+
		deployment("reborn", auto, uses("configmap/app")))
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "configmap/gone", "secret/db")
	s.awaitKnown(t, deploy, "keyed", "configmap/app")
	s.awaitKnown(t, deploy, "reborn", "configmap/app")
	all := []string{web, "deployment/keyed", "deployment/reborn"}

	s.delete(t, "configmap/gone")
	s.checkRollouts(t, "a source was deleted", 0, all...)
	s.make(t, configMap("gone", "key: one"))
	s.checkRollouts(t, "it came back as it was", 0, all...)

	s.change(t, "deployment/keyed", "{spec: {template: {spec: {volumes: [{name: v, configMap: {name: app, items: [{key: other, path: p}]}}]}}}}")
	s.checkRollouts(t, "another list of keys is the person's own rollout", 1, "deployment/keyed")
	s.change(t, "deployment/keyed", "{metadata: {annotations: {"+settings.Quiet+": 100ms}}}")
	s.checkRollouts(t, "a setting", 1, "deployment/keyed")

	s.delete(t, "deployment/reborn")
	s.make(t, deployment("reborn", auto, uses("configmap/app")))
	s.checkRollouts(t, "made anew under its old name", 0, "deployment/reborn")
	s.delete(t, "deployment/reborn")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.make(t, deployment("reborn", auto, uses("configmap/app")))
	s.checkRollouts(t, "made anew after a change", 0, "deployment/reborn")
	s.checkRollouts(t, "its key has not changed", 1, "deployment/keyed")

	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.delete(t, "deployment/reborn")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.make(t, deployment("reborn", auto, uses("configmap/app")))
	s.run(t, "--log-level", "debug")
	s.awaitRollouts(t, web, 2)
	s.checkRollouts(t, "made anew while nobody watched, after the change", 0, "deployment/reborn")
}

// TestSourceArrivesAfterItsWorkload: pods that need it have waited for it; pods
// that do not may have started without.
func TestSourceArrivesAfterItsWorkload(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.run(t)
	optional := "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: %s, optional: true}}]}]"
	const turns = 8
	for i := range turns { // the two watches bring them in either order
		name := fmt.Sprintf("at-once-%d", i)
		s.make(t, deployment(name, auto, uses("configmap/"+name))+configMap(name, "key: one"))
	}
	s.make(t, deployment("required", auto, uses("configmap/required", "secret/required"))+
		deployment("optional", auto, fmt.Sprintf(optional, "optional"))+
		deployment("listed", settings.Reload+": configmap/listed", plain))
	s.awaitKnown(t, deploy, "required", "absent")
	s.awaitKnown(t, deploy, "optional", "absent")
	s.awaitKnown(t, deploy, "listed", "absent")
	s.make(t, configMap("required", "key: one")+secret("required", "key: one")+configMap("optional", "key: one")+configMap("listed", "key: one"))
	s.awaitRollouts(t, "deployment/optional", 1)
	s.awaitRollouts(t, "deployment/listed", 1)
	s.checkRollouts(t, "the pods waited for it", 0, "deployment/required")
	for i := range turns {
		s.checkRollouts(t, "made right after its workload", 0, fmt.Sprintf("deployment/at-once-%d", i))
	}

	s.change(t, "configmap/required", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/required", 1)
	s.change(t, "configmap/at-once-0", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/at-once-0", 1)
}

// TestOptingInRestartsNoPod: a workload that has run for a while, and whose
// ConfigMap has changed since, is not restarted by whatever makes us follow it.
func TestOptingInRestartsNoPod(t *testing.T) {
	t.Parallel()
	names := []string{"annotated", "annotated-away", "by-namespace", "by-flag"}
	s := newStage(t, configMap("app", "key: one"))
	c := s.run(t)
	s.awaitBegun(t)
	s.awaitSecondAfter(t, s.recordBegan(t))
	var made time.Time
	for _, name := range names {
		s.make(t, deployment(name, "a: b", uses("configmap/app")))
		made = s.awaitRevision(t, name)
	}
	// A kind that nobody follows yet asks from its beginning.
	s.make(t, strings.Replace(fmt.Sprintf(replicationController, auto, uses("configmap/app")), "replicas: 1", "replicas: 0", 1))
	s.changeAfter(t, made, "configmap/app")
	s.witness.Pass(t)
	s.awaitSecondAfter(t, made.Add(time.Second))

	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.annotate(t, "deployment/annotated-away", settings.Reload, "auto")
	c = s.run(t)
	s.awaitKnown(t, deploy, "annotated-away", "configmap/app")
	s.annotate(t, "deployment/annotated", settings.Reload, "auto")
	s.awaitKnown(t, deploy, "annotated", "configmap/app")
	s.describe(t, `{"metadata":{"annotations":{"`+settings.Reload+`":"auto"}}}`)
	s.awaitKnown(t, deploy, "by-namespace", "configmap/app")
	for _, name := range names {
		s.checkRollouts(t, "asked to be followed", 0, "deployment/"+name)
	}

	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.describe(t, `{"metadata":{"annotations":{"`+settings.Reload+`":null}}}`)
	c = s.run(t) // what only the namespace had asked for is forgotten
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.remembered(t, deploy, "by-flag")
		return entry == "", "deployment/by-flag is still on record: " + entry
	})
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.run(t, "--auto", "--kind", oldKind)
	s.awaitKnown(t, deploy, "by-flag", "configmap/app")
	s.awaitKnown(t, "ReplicationController.", "old", "configmap/app")
	for _, name := range names {
		s.checkRollouts(t, "the controller was told to", 0, "deployment/"+name)
	}
	s.checkRollouts(t, "a new kind", 0, "replicationcontroller/old")

	s.change(t, "configmap/app", "{data: {key: at-last}}")
	for _, name := range names {
		s.awaitRollouts(t, "deployment/"+name, 1)
	}
	s.awaitRollouts(t, "replicationcontroller/old", 1)
}

// changeAfter changes a ConfigMap so that its time is later than the given one:
// times are a second coarse, so it writes until that is so.
func (s *stage) changeAfter(t testing.TB, moment time.Time, ref string) {
	t.Helper()
	turn := 0
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		turn++
		s.change(t, ref, fmt.Sprintf("{data: {key: turn-%d}}", turn))
		for _, entry := range s.read(t, ref).GetManagedFields() {
			if entry.Time != nil && entry.Time.After(moment) {
				return true, ""
			}
		}
		return false, ref + " was not written in a later second"
	})
}

// awaitBegun waits until it is on record that Deployments and ConfigMaps are
// followed here.
func (s *stage) awaitBegun(t testing.TB) {
	t.Helper()
	for _, kind := range []string{deploy, "ConfigMap."} {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			return s.stored(t, "since."+kind+"_"+s.Namespace) != "", kind + " is not on record as followed"
		})
	}
}

// awaitRevision waits until a Deployment has a ReplicaSet, and returns when the
// newest was made.
func (s *stage) awaitRevision(t testing.TB, name string) time.Time {
	t.Helper()
	var newest time.Time
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		sets := &appsv1.ReplicaSetList{}
		if err := s.Client.List(t.Context(), sets, client.InNamespace(s.Namespace), client.MatchingLabels{"app": name}); err != nil {
			t.Fatal(err)
		}
		for _, set := range sets.Items {
			if set.CreationTimestamp.After(newest) {
				newest = set.CreationTimestamp.Time
			}
		}
		return !newest.IsZero(), name + " has no ReplicaSet"
	})
	return newest
}

// stop ends the controller as an upgrade would.
func stop(t testing.TB, c *testkit.Controller) {
	t.Helper()
	if code := c.Stop(t); code != 0 {
		t.Fatalf("exit code %d of a controller that was asked to end", code)
	}
}

// kill ends a controller that has a process of its own, as a crash would.
func kill(t testing.TB, c *testkit.Controller) {
	t.Helper()
	c.Signal(t, syscall.SIGKILL)
	if code := c.ExitCode(t, testkit.Patience); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("exit code %d of a killed controller", code)
	}
}

// recordBegan is when the record was begun, by the API server's clock.
func (s *stage) recordBegan(t testing.TB) time.Time {
	t.Helper()
	shards := s.shards(t)
	if len(shards) == 0 {
		t.Fatal("there is no record")
	}
	began := shards[0].CreationTimestamp.Time
	for _, shard := range shards[1:] {
		if shard.CreationTimestamp.Time.Before(began) {
			began = shard.CreationTimestamp.Time
		}
	}
	return began
}

// awaitSecondAfter returns when what is made from now on is certainly younger
// than the given time: the API server's times are a second coarse.
func (s *stage) awaitSecondAfter(t testing.TB, moment time.Time) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		probe := testkit.ConfigMap("clock-"+strings.ToLower(rand.Text()[:8]), "key", "")
		s.Create(t, probe)
		return probe.CreationTimestamp.After(moment), "it is still " + moment.String()
	})
}
