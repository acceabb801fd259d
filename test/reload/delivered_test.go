package reload_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPatternWhileAway: a source that a pattern means and that is made while the
// controller is down is delivered like any other. One that a new pattern means is a
// baseline, and so is one that a rollout has loaded.
func TestPatternWhileAway(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("rules-a", "key: one")+configMap("other-a", "key: one")+
		deployment("web", settings.Reload+": configmap/rules-*", "containers: [{name: app, image: app}]")+
		deployment("rolled", settings.Reload+": configmap/rules-*", "containers: [{name: app, image: app}]")+
		deployment("widened", settings.Reload+": configmap/other-*", "containers: [{name: app, image: app}]"))
	c := s.runProcess(t)
	for _, name := range []string{"web", "rolled"} {
		s.awaitKnown(t, deploy, name, "configmap/rules-a", `"searched":`)
	}
	s.awaitKnown(t, deploy, "widened", "configmap/other-a", `"searched":`)
	kill(t, c)
	s.make(t, configMap("rules-b", "key: one"))
	s.annotate(t, "deployment/widened", settings.Reload, "configmap/other-*,configmap/rules-*")
	s.awaitLaterSecond(t)
	s.change(t, "deployment/rolled", "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
	s.awaitObserved(t, "deployment/rolled")

	s.run(t)
	s.awaitRollouts(t, web, 1)
	for _, name := range []string{"rolled", "widened"} {
		s.awaitKnown(t, deploy, name, "configmap/rules-b")
	}
	s.checkRollouts(t, "made while the controller was down", 1, web)
	s.checkRollouts(t, "another writer's rollout has loaded it", 1, "deployment/rolled")
	s.checkRollouts(t, "the pattern is as new as the source", 0, "deployment/widened")
}

// awaitLaterSecond waits until the API server's times, which are a second coarse, tell
// what comes next from what was.
func (s *stage) awaitLaterSecond(t testing.TB) {
	t.Helper()
	made := func() metav1.Time {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "clock-", Namespace: s.Own}}
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o.CreationTimestamp
	}
	first := made()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		last := made()
		return last.After(first.Time), fmt.Sprintf("the API server's clock shows %s, the same second as before", last)
	})
}

// TestMissingWhilePodsRun: pods that run have loaded a required source before it was
// deleted, so that whatever comes back is a change; pods that wait for it have not.
func TestMissingWhilePodsRun(t *testing.T) {
	t.Parallel()
	running := strings.Replace(deployment("web", "", uses("configmap/app")), "replicas: 0", "replicas: 1", 1)
	waiting := deployment("waiting", "", uses("configmap/app"))
	s := newStage(t, configMap("app", "key: one")+running+waiting, labtest.KWOK)
	s.awaitPods(t, web, "availableReplicas", 1)
	s.delete(t, "configmap/app")
	s.run(t)
	s.annotate(t, web, settings.Reload, "auto")
	s.annotate(t, "deployment/waiting", settings.Reload, "auto")
	s.awaitKnown(t, deploy, "web", "configmap/app", ":unknown")
	s.awaitKnown(t, deploy, "waiting", "configmap/app", ":absent")
	s.make(t, configMap("app", "key: two"))
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "waiting", versionOf("two"))
	s.checkRollouts(t, "its pods were not there", 0, "deployment/waiting")
	s.checkRollouts(t, "its pods run the old content", 1, web)
}

// orphan deletes a workload and leaves its pods alone.
func (s *stage) orphan(t testing.TB, ref string) {
	t.Helper()
	o := blank(t, ref)
	o.SetNamespace(s.Namespace)
	if err := s.Client.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy())
		return client.IgnoreNotFound(err) == nil && err != nil, ref + " is still there"
	})
}

// TestOrphanedAndMadeAgain: pods that kept running are those of the record, for every
// kind with revisions, whether or not the controller saw it; another workload of the
// same name is not.
func TestOrphanedAndMadeAgain(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%t", watched), func(t *testing.T) {
			t.Parallel()
			orphanedAndMadeAgain(t, watched)
		})
	}
}

func orphanedAndMadeAgain(t *testing.T, watched bool) {
	t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := strings.ToLower(kind)
		all[name+"/"+name] = workload(kind, name, auto, uses("configmap/app"))
	}
	other := deployment("other", auto, uses("configmap/app"))
	s := newStage(t, configMap("app", "key: one")+strings.Join(slices.Collect(maps.Values(all)), "")+other)
	for ref := range all {
		s.awaitObserved(t, ref)
	}
	c := s.runProcess(t)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		s.awaitKnown(t, kind+".apps", strings.ToLower(kind), "configmap/app")
	}
	s.awaitKnown(t, deploy, "other", "configmap/app")
	if !watched {
		kill(t, c)
	}
	s.awaitLaterSecond(t)
	for ref := range all {
		s.orphan(t, ref)
	}
	s.delete(t, "deployment/other")
	s.change(t, "configmap/app", "{data: {key: two}}")
	if watched {
		s.awaitKnown(t, deploy, "deployment", `"gone":`)
	}
	for _, manifest := range all {
		s.make(t, manifest)
	}
	s.make(t, strings.Replace(other, "image: app", "image: new", 1))
	if !watched {
		s.run(t)
	}
	for ref := range all {
		s.awaitRollouts(t, ref, 1)
	}
	s.awaitKnown(t, deploy, "other", versionOf("two"))
	s.checkRollouts(t, "its pods are as new as itself", 0, "deployment/other")
}

// TestAskedAgainWithoutNamespaces: without the permission to namespaces, taking the annotation
// away and putting it back takes a new baseline, also over a restart in between.
func TestAskedAgainWithoutNamespaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	rules := slices.DeleteFunc(testkit.FollowRules(), func(r labtest.Rule) bool { return slices.Contains(r.Resources, "namespaces") })
	account.AllowEverywhere(t, append(slices.Concat(rules, testkit.SecretRules()), labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}})...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	s.AwaitRecordPermission(t, account, true)
	testkit.AwaitListing(t, account, true, &corev1.ConfigMapList{})
	run := func() *testkit.Controller {
		c := s.StartControllerAs(t, account.Kubeconfig, "--quiet", testkit.Quiet)
		s.witness.AwaitKnown(t)
		return c
	}
	c := run()
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.annotate(t, web, settings.Reload)
	s.awaitKnown(t, deploy, "web", `"left":true`)
	kill(t, c)
	s.change(t, "configmap/app", "{data: {key: two}}")
	run()
	s.annotate(t, web, settings.Reload, "auto")
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "asked for again", 0, web)
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 1)
}

// TestServiceAccountTokens: the cluster renews them by itself, so that only their name
// asks for them.
func TestServiceAccountTokens(t *testing.T) {
	t.Parallel()
	token := "\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}\n" +
		"\n---\n{apiVersion: v1, kind: Secret, metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token}\n"
	s := newStage(t, token+deployment("web", auto, uses("secret/robot-token"))+
		deployment("pattern", settings.Reload+": secret/robot-*", uses("secret/robot-token"))+
		deployment("named", settings.Reload+": secret/robot-token", uses("secret/robot-token")))
	s.awaitToken(t)
	s.run(t)
	s.awaitKnown(t, deploy, "named", "secret/robot-token")
	s.change(t, "secret/robot-token", "{data: {extra: eA==}}")
	s.awaitRollouts(t, "deployment/named", 1)
	s.checkRollouts(t, "a token", 0, web, "deployment/pattern")
}

// awaitToken waits until the cluster has filled in the token.
func (s *stage) awaitToken(t testing.TB) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		o := &corev1.Secret{}
		s.Get(t, "robot-token", o)
		return len(o.Data["token"]) > 0, fmt.Sprintf("Kubernetes hasn't filled in the token; the Secret has %d keys", len(o.Data))
	})
}

// TestTwoInstallations: they notice each other, and a change is one rollout, also of a
// Secret, whose digests differ because each has its own key.
func TestTwoInstallations(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+secret("db", "key: one")+deployment("db", auto, uses("secret/db")))
	s.run(t)
	other := *s.World
	other.Own = labtest.Namespace(t, s.Cluster)
	inprocess.StartReady(t, &other, "--quiet", testkit.Quiet)
	second := &stage{World: &other}
	for _, each := range []*stage{s, second} {
		each.awaitKnown(t, deploy, "db", "secret/db")
	}
	for turn, value := range []string{"two", "three", "four"} {
		before := second.remembered(t, deploy, "db")
		s.change(t, "secret/db", fmt.Sprintf("{stringData: {key: %s}}", value))
		s.awaitRollouts(t, "deployment/db", turn+1)
		second.awaitSettled(t, "db", before)
		s.checkRollouts(t, value, turn+1, "deployment/db")
	}
	s.AwaitEvent(t, "db", "Warning OtherInstallation", "rolled out this workload")
	s.checkRollouts(t, "both have seen all of it", 3, "deployment/db")
}

// awaitSettled waits until the record of a Deployment is another one and nothing is due.
func (s *stage) awaitSettled(t testing.TB, name, before string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := s.remembered(t, deploy, name)
		return now != before && !strings.Contains(now, `"pending":`), "the record is " + now
	})
}
