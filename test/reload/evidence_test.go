package reload_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const plainPod = "containers: [{name: app, image: app}]"

// TestPatternThatMatchesNothingYet: its first source is made while the controller is down.
func TestPatternThatMatchesNothingYet(t *testing.T) {
	t.Parallel()
	s := newStage(t, deployment("web", settings.Reload+": configmap/rules-*", plainPod))
	s.awaitObserved(t, web)
	c := s.runProcess(t)
	s.awaitKnown(t, deploy, "web", `"searched":`)
	kill(t, c)
	s.awaitLaterSecond(t)
	s.make(t, configMap("rules-a", "key: one"))
	s.run(t)
	s.awaitRollouts(t, web, 1)
}

// TestNeverTakenOff: a source that was there and refused has not appeared.
func TestNeverTakenOff(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("rules-a", "key: one")+deployment("web", settings.Reload+": configmap/rules-*", plainPod))
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/rules-a", `"searched":`)
	s.make(t, "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: rules-b, annotations: {lockstep.dev/reload: never}}, data: {key: one}}\n")
	s.pass(t)
	s.annotate(t, "configmap/rules-b", settings.Reload)
	s.awaitKnown(t, deploy, "web", "configmap/rules-b")
	s.checkRollouts(t, "it refuses no more", 0, web)
}

// TestRevertedWithOtherKeys: the template that is put back uses another set of keys, so
// that the version is measured anew; what was reverted stays back.
func TestRevertedWithOtherKeys(t *testing.T) {
	t.Parallel()
	one := "{name: ONE, valueFrom: {configMapKeyRef: {name: app, key: key}}}"
	two := "{name: TWO, valueFrom: {configMapKeyRef: {name: app, key: more}}}"
	pod := func(env string) string {
		return "containers: [{name: app, image: app, env: [" + env + "], envFrom: [{secretRef: {name: db}}]}]"
	}
	s := newStage(t, configMap("app", "key: one, more: one")+secret("db", "key: one")+deployment("web", auto+", "+settings.Quiet+": 1h", pod(one)))
	s.awaitObserved(t, web)
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two, more: two}}")
	s.change(t, web, "{spec: {template: {spec: {"+pod(one+", "+two)+"}}}}")
	s.awaitKnown(t, deploy, "web", "from:1")
	s.awaitObserved(t, web)
	s.change(t, web, "{spec: {template: {spec: {"+pod(one)+"}}}}")
	s.AwaitEvent(t, "web", "Warning Undone", "configmap/app")
	s.annotate(t, web, settings.Quiet, testkit.Quiet)
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "the tool's and the person's", 2, web)
}

// TestUndoWithoutThePermissionToRevisions: it is judged as soon as there is the permission.
func TestUndoWithoutThePermissionToRevisions(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	isRevisions := func(r labtest.Rule) bool { return slices.Contains(r.Resources, "replicasets") }
	rest := slices.DeleteFunc(testkit.FollowRules(), isRevisions)
	account.AllowEverywhere(t, slices.Concat(rest, testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	s.AwaitRecordPermission(t, account, true)
	c := inprocess.StartControllerAs(t, s.World, account.Kubeconfig, "--quiet", testkit.Quiet)
	s.witness.AwaitKnown(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.awaitObserved(t, web)
	s.pass(t)
	if log := c.Stderr(); !strings.Contains(log, "cannot list revisions") {
		t.Errorf("the log doesn't name the missing permission:\n%s", log)
	}
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	testkit.AwaitListing(t, account, true, &appsv1.ReplicaSetList{})
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "ours and the undo", 2, web)
}
