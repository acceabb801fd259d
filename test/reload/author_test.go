package reload_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// writeAs changes an object as a field manager does.
func (s *stage) writeAs(t testing.TB, manager, ref string, patch types.PatchType, body string) {
	t.Helper()
	o := blank(t, ref)
	o.SetNamespace(s.Namespace)
	options := []client.PatchOption{client.FieldOwner(manager)}
	if patch == types.ApplyPatchType {
		options = append(options, client.ForceOwnership)
	}
	if err := s.Client.Patch(t.Context(), o, client.RawPatch(patch, []byte(body)), options...); err != nil {
		t.Fatalf("%s writes %s: %v", manager, ref, err)
	}
	if ref == web {
		s.awaitObserved(t, ref)
	}
}

// TestHistoryNamesOnlyAuthors: who changed the present template, where other managers write the same
// workload before and after.
func TestHistoryNamesOnlyAuthors(t *testing.T) {
	t.Parallel()
	const (
		merge, patch = types.MergePatchType, types.StrategicMergePatchType
		image        = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:%d"}]}}}}`
		applied      = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"minReadySeconds":%[2]d,"selector":{"matchLabels":{"app":"web"}},` +
			`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:%[1]d"}]}}}}`
	)
	s := newStage(t, "")
	created := testkit.Deployment("web", "", "")
	created.Namespace, created.Spec.Template.Spec.Containers[0].Name = s.Namespace, "app"
	if err := s.Client.Create(t.Context(), created, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	s.awaitObserved(t, web)
	check := func(want, reason string) {
		t.Helper()
		if h := s.history(t, s.Cluster.Kubeconfig(), web); len(h.Revisions) == 0 || h.Revisions[0].By != want {
			t.Errorf("%s: the history is %+v, want by %q\n%s", reason, h.Revisions, want, managers(s.read(t, web)))
		}
	}
	check("helm", "it created the workload")
	s.writeAs(t, "kubectl-set", web, patch, fmt.Sprintf(image, 2))
	check("kubectl-set", "it set the image")
	s.awaitLaterSecond(t)
	s.writeAs(t, "helm", web, merge, `{"spec":{"minReadySeconds":1}}`)
	check("kubectl-set", "helm owns other fields of the template, and its last write was outside it")
	s.awaitLaterSecond(t)
	s.writeAs(t, "argocd", web, types.ApplyPatchType, fmt.Sprintf(applied, 2, 1))
	check("kubectl-set", "argocd owns the image too, but its apply changed nothing")
	s.writeAs(t, "argocd", web, types.ApplyPatchType, fmt.Sprintf(applied, 2, 2))
	check("not known", "two managers own the image, and both changed the workload")
	s.writeAs(t, "argocd", web, types.ApplyPatchType, fmt.Sprintf(applied, 3, 2))
	check("argocd", "it applied another image, and owns it alone")
	s.awaitLaterSecond(t)
	s.writeAs(t, "flux", web, types.ApplyPatchType, fmt.Sprintf(applied, 3, 3))
	s.writeAs(t, "argocd", web, types.ApplyPatchType, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
	check("not known", "flux took the image over and didn't change it")
	s.writeAs(t, "kubectl-edit", web, merge, `{"spec":{"template":{"metadata":{"annotations":{"team":"shop"}}}}}`)
	check("kubectl-edit", "it added an annotation")
	s.writeAs(t, "kubectl-patch", web, merge, `{"spec":{"template":{"metadata":{"labels":{"tier":"web"},"annotations":null}}}}`)
	check("not known", "it added a label; another writer may have removed the annotation")
	s.writeAs(t, "kubectl-edit", web, merge, `{"spec":{"template":{"metadata":{"labels":{"tier":null}}}}}`)
	check("not known", "a removed field belongs to no manager")
	const listens = `{"spec":{"template":{"spec":{"containers":[{"name":"app","ports":[%s]}]}}}}`
	s.writeAs(t, "helm", web, patch, fmt.Sprintf(listens, `{"containerPort":80},{"containerPort":90}`))
	check("helm", "it added two ports")
	s.writeAs(t, "kubectl-edit", web, merge, `{"spec":{"paused":true}}`)
	s.writeAs(t, "kubectl-set", web, patch, fmt.Sprintf(image, 4))
	s.writeAs(t, "kubectl-edit", web, patch, fmt.Sprintf(listens, `{"containerPort":90,"$patch":"delete"}`))
	s.writeAs(t, "kubectl-edit", web, merge, `{"spec":{"paused":null}}`)
	check("not known", "while the Deployment was paused, one set the image and another removed a port")
}

// TestHistoryOfAnAppliedRollout: Argo Rollouts writes the Rollout that kubectl applied, but isn't its author.
// The image has a tag from the start: without one, the default of its pull policy is another.
func TestHistoryOfAnAppliedRollout(t *testing.T) {
	t.Parallel()
	const canary = "rollout/canary"
	s := newStage(t, configMap("app", "key: one"), labtest.KWOK, labtest.ArgoRollouts)
	s.make(t, fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+strings.ReplaceAll(uses("configmap/app"), "image: app", "image: app:1")+"}}"))
	awaitRevision := func(number int, by string) {
		t.Helper()
		var newest told
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			h := s.history(t, s.Cluster.Kubeconfig(), canary)
			if len(h.Revisions) > 0 {
				newest = h.Revisions[0]
			}
			// Until Argo Rollouts has observed the template, its author isn't known.
			return newest.Revision == number && newest.Current && newest.By == by, fmt.Sprintf("the history is %+v\n%s", h.Revisions, managers(s.read(t, canary)))
		})
	}
	for number, want := range []string{"reload.test", "kubectl-edit"} {
		if number > 0 {
			s.writeAs(t, want, canary, types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2","envFrom":[{"configMapRef":{"name":"app"}}]}]}}}}`)
		}
		awaitRevision(number+1, want)
	}
}

// managers are the managed fields of an object, in lines.
func managers(o metav1.Object) string {
	var text string
	for _, e := range o.GetManagedFields() {
		text += fmt.Sprintf("%s %s %q %s %s\n", e.Manager, e.Operation, e.Subresource, e.Time, e.FieldsV1.GetRawBytes())
	}
	return text
}
