package testkit

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// FollowRules let the controller follow and roll out workloads everywhere. Secrets are
// separate, because some clusters do not grant them.
func FollowRules() []labtest.Rule {
	return []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"list", "watch"}},
		{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: []string{"list", "watch", "patch"}},
		{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"list", "watch", "patch"}},
		{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: []string{"list", "watch", "patch"}},
		{Groups: []string{"apps"}, Resources: []string{"replicasets", "controllerrevisions"}, Verbs: []string{"list"}},
		{Groups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
}

// SecretRules let the controller follow Secrets everywhere.
func SecretRules() []labtest.Rule {
	return []labtest.Rule{{Groups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}}
}

// OwnRules let the controller read its objects in its own namespace.
func OwnRules() []labtest.Rule {
	return []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		{Groups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create"}},
	}
}

// RecordRules let the controller write its record.
func RecordRules() []labtest.Rule {
	return []labtest.Rule{{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}}}
}

// AwaitRecordPermission waits until an account of the controller's namespace may write the
// record, or may not: the authorizer applies role changes with a small delay.
func (w *World) AwaitRecordPermission(t testing.TB, account *labtest.Account, want bool) {
	t.Helper()
	c := NewClient(t, account.Kubeconfig)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: "probe"}}
	labtest.Eventually(t, Patience, func() (bool, string) {
		err := c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		return apierrors.IsForbidden(err) == !want && (err == nil) == want, fmt.Sprintf("a write answers %v, want allowed=%t", err, want)
	})
}

// AwaitListing waits until an account may list objects, or may not.
func AwaitListing(t testing.TB, account *labtest.Account, want bool, list client.ObjectList, options ...client.ListOption) {
	t.Helper()
	c := NewClient(t, account.Kubeconfig)
	labtest.Eventually(t, Patience, func() (bool, string) {
		err := c.List(t.Context(), list, options...)
		return apierrors.IsForbidden(err) == !want && (err == nil) == want, fmt.Sprintf("a list answers %v, want allowed=%t", err, want)
	})
}
