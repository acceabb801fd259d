package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestReloadIsSwitchedOff: without --reload no ConfigMap and no Secret is read and no key is
// made, so that the permissions to them are not needed. What is on record of them stays: switched
// on again, the controller delivers what changed meanwhile, once.
func TestReloadIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	first := inprocess.StartReady(t, w)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	first.Stop(t)
	known := w.Record(t, testkit.Web)

	account := labtest.NewAccount(t, w.Cluster, w.Own)
	rules := testkit.FollowRules()
	rules[0].Resources = []string{"namespaces"}
	account.AllowEverywhere(t, rules...)
	account.Allow(t, slices.Concat([]labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "get"}},
	}, testkit.RecordRules())...)
	w.AwaitRecordPermission(t, account, true)
	w.SetConfig(t, "app", "key", "2")
	off := inprocess.StartControllerAs(t, w, account.Kubeconfig, "--reload=false", "--images", "--revisions=false", "--image-platforms=linux/amd64")
	off.AwaitReady(t, true)
	w.AwaitEvent(t, testkit.Web, "Warning ReloadOff", settings.Reload, "--reload")
	off.Stop(t)
	if got := w.Record(t, testkit.Web); got != known {
		t.Errorf("on record is\n%s\nwant it as it was:\n%s", got, known)
	}

	inprocess.StartReady(t, w)
	w.AwaitRollout(t, testkit.Web, "")
	w.CheckRevisions(t, testkit.Web, 2, "one change")
}

// TestKindIsSwitchedOff: workloads of a kind that is not followed are neither read nor changed, no
// permission to them is needed, and what is on record of them stays: switched on again, the
// controller delivers what changed meanwhile, once.
func TestKindIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	w.Make(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, annotations: {lockstep.dev/reload: auto}}, spec: {replicas: 0,
  selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]}}}}`)
	first := inprocess.StartReady(t, w)
	db := appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		known := w.RecordOf(t, db, "db")
		return strings.Contains(known, "configmap/app"), "on record is " + known
	})
	first.Stop(t)
	known := w.RecordOf(t, db, "db")

	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, slices.Concat([]labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"list", "watch"}},
		{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "patch"}},
		{Groups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list"}},
		{Groups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}, testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	w.AwaitRecordPermission(t, account, true)
	off := inprocess.StartControllerAs(t, w, account.Kubeconfig, "--revisions=false", "--built-in-kinds=deployments")
	off.AwaitReady(t, true)
	off.AwaitVerbose(t, "[+] permissions")
	off.AwaitVerbose(t, "[+] statefulsets: off (--built-in-kinds)")
	w.SetConfig(t, "app", "key", "2")
	w.AwaitRollout(t, testkit.Web, "")
	off.Stop(t)
	if got := w.RecordOf(t, db, "db"); got != known {
		t.Errorf("on record is\n%s\nwant it as it was:\n%s", got, known)
	}
	if log := off.Stderr(); strings.Contains(log, "forbidden") || !strings.Contains(log, "KindOff") {
		t.Errorf("a permission is missing, or the log does not say which kinds are off:\n%s", log)
	}

	inprocess.StartReady(t, w)
	set := &appsv1.StatefulSet{}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		w.Get(t, "db", set)
		return set.Spec.Template.Annotations[settings.Inputs] != "", "the StatefulSet is not rolled out: " + w.RecordOf(t, db, "db")
	})
	w.CheckRevisions(t, testkit.Web, 2, "one change")
	if w.Get(t, "db", set); set.Generation != 2 {
		t.Errorf("generation %d of the StatefulSet after one change, want 2", set.Generation)
	}
}

// TestEverythingIsSwitchedOff: the controller is ready, and does nothing.
func TestEverythingIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own) // it has no permission at all
	c := inprocess.StartControllerAs(t, w, account.Kubeconfig, "--reload=false", "--revisions=false")
	c.AwaitReady(t, true)
	c.AwaitVerbose(t, "[+] permissions")
	if got := w.Record(t, testkit.Web); got != "" {
		t.Errorf("on record is %s", got)
	}
}

// TestSecretsAreAttachedWhereListed: without the permission to read or change Secrets in a
// namespace that is not listed, ConfigMaps are attached there, and no permission is missing.
func TestSecretsAreAttachedWhereListed(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	labels := map[string]string{settings.Revisioned: "true"}
	configMap, secret := testkit.ConfigMap("app", "key", "1"), testkit.Secret("db", "key", "1")
	configMap.Labels, secret.Labels = labels, labels
	w.Create(t, configMap, secret, testkit.Deployment(testkit.Web, "app", "db"))
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"list", "watch", "patch"}},
		labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"batch"}, Resources: []string{"cronjobs", "jobs"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	)
	testkit.AwaitListing(t, account, true, &appsv1.ReplicaSetList{})
	c := inprocess.StartControllerAs(t, w, account.Kubeconfig, "--reload=false", "--revisions-secret-namespaces=elsewhere")
	c.AwaitReady(t, true)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		w.Get(t, "app", configMap)
		return len(configMap.OwnerReferences) == 1, fmt.Sprintf("the ConfigMap has the owners %v", configMap.OwnerReferences)
	})
	c.AwaitVerbose(t, "[+] permissions")
	if w.Get(t, "db", secret); len(secret.OwnerReferences) != 0 {
		t.Errorf("the Secret has the owners %v", secret.OwnerReferences)
	}
	if log := c.Stderr(); strings.Contains(log, "forbidden") {
		t.Errorf("a permission is missing:\n%s", log)
	}
}
