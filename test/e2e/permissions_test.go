package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestMissingPermissionForSecrets: the rest works, the gap is shown, and a grant is
// picked up without a restart.
func TestMissingPermissionForSecrets(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, testkit.FollowRules()...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	w.AwaitRecordPermission(t, account, true)

	c := inprocess.StartControllerAs(t, w, account.Kubeconfig)
	c.AwaitReady(t, true)
	c.AwaitVerbose(t,
		"[-] secrets in "+w.Namespace+": permission is missing",
		`cannot list resource "secrets"`,
		"[+] configmaps in "+w.Namespace,
		"[+] deployments in "+w.Namespace,
	)
	w.AwaitRecord(t, testkit.Web, "configmap/app")
	w.SetConfig(t, "app", "key", "2")
	shown := w.AwaitRollout(t, testkit.Web, "")
	if strings.Contains(shown, "secret/") {
		t.Errorf("the template shows %q of a Secret that cannot be read", shown)
	}

	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	w.AwaitRecord(t, testkit.Web, "secret/db")
	w.SetSecret(t, "db", "key", "2")
	w.AwaitRollout(t, testkit.Web, shown)
	w.CheckRevisions(t, testkit.Web, 3, "two changes; the grant itself doesn't restart pods")
}

// TestMissingPermissionForNamespaces: what a workload was given is kept while nobody
// knows whether its namespace asks for it.
func TestMissingPermissionForNamespaces(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	w.Annotate(t, testkit.Web, settings.Reload)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:"auto"}}}`, settings.Reload)
	if err := w.Client.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
	everything := slices.Concat(testkit.FollowRules(), testkit.SecretRules())
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, everything...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	w.AwaitRecordPermission(t, account, true)
	c := inprocess.StartControllerAs(t, w, account.Kubeconfig)
	w.AwaitRecord(t, testkit.Web, "configmap/app")
	c.Stop(t)

	w.SetConfig(t, "app", "key", "2")
	everything[0].Resources = []string{"configmaps"}
	account.AllowEverywhere(t, everything...)
	testkit.AwaitListing(t, account, false, &corev1.NamespaceList{})
	c = inprocess.StartControllerAs(t, w, account.Kubeconfig)
	c.AwaitVerbose(t, "[-] namespaces: permission is missing", "[+] deployments in "+w.Namespace)
	witness := w.NewWitness(t)
	witness.AwaitKnown(t)
	witness.Pass(t)
	if w.Record(t, testkit.Web) == "" {
		t.Error("what was delivered is forgotten")
	}

	everything[0].Resources = []string{"configmaps", "namespaces"}
	account.AllowEverywhere(t, everything...)
	w.AwaitRollout(t, testkit.Web, "")
}

// TestMissingPermissionsToWrite: what is only written now and then would be missed when
// it is too late. Readiness names each permission, and is false without those that
// everything depends on. What only revisioned objects need is no news before there is
// one.
func TestMissingPermissionsToWrite(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	reads := []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps", "secrets", "namespaces"}, Verbs: []string{"list", "watch"}},
		{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: []string{"list", "watch"}},
		{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"list", "watch"}},
	}
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, reads...)
	account.Allow(t, testkit.OwnRules()...)
	c := inprocess.StartControllerAs(t, w, account.Kubeconfig, "--leader-elect=true", "--pod-strategies", "--kind=apps/v1/ReplicaSet=spec.template")
	const missing = ": permission is missing; it is needed for "
	c.AwaitVerbose(t,
		"[-] permission to create configmaps in "+w.Own+missing+"the record of delivered versions",
		"[-] permission to patch configmaps/lockstep-state-00 in "+w.Own+missing+"the record of delivered versions, in lockstep-state-00 to lockstep-state-63",
		"[-] permission to create leases.coordination.k8s.io in "+w.Own+missing+"leader election",
		"[-] permission to update leases.coordination.k8s.io/lockstep in "+w.Own,
		"[-] permission to patch deployments.apps in "+w.Namespace+missing+"rolling them out",
		"[-] permission to patch replicasets.apps in "+w.Namespace,
		"[-] permission to list controllerrevisions.apps in "+w.Namespace,
		"[-] permission to create pods/eviction in "+w.Namespace,
		"[-] permission to create events.events.k8s.io in "+w.Namespace,
		"not ready",
	)
	_, text := c.Probe(t, "/readyz?verbose")
	for _, never := range []string{"patch cronjobs", "get configmaps", "patch secrets"} {
		if strings.Contains(text, "permission to "+never) {
			t.Errorf("%q is granted or not needed:\n%s", never, text)
		}
	}

	revisioned := testkit.ConfigMap("app-3fa9c1d2e4", "key", "1")
	revisioned.Labels = map[string]string{settings.Revisioned: "true"}
	w.Create(t, revisioned)
	c.AwaitVerbose(t,
		"[-] permission to patch configmaps in "+w.Namespace+missing+"attaching revisioned objects",
		"[-] permission to patch secrets in "+w.Namespace+missing+"attaching revisioned objects",
	)

	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules(), []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
		{Groups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{Groups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list", "watch", "patch"}},
		{Groups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"patch"}},
	})...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules(), []labtest.Rule{
		{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	})...)
	c.AwaitReady(t, true)
	c.AwaitVerbose(t, "[+] permissions: all write permissions are granted")
}
