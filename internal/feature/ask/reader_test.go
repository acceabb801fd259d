package ask

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// readerOf reads a Deployment that uses a ConfigMap, with permission for nothing but Deployments
// and what is allowed.
func readerOf(allowed ...string) *Reader {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Annotations: map[string]string{settings.Reload: "auto"}}}
	web.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "app", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}}}
	told := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held"}, InvolvedObject: corev1.ObjectReference{Namespace: "shop", Name: "web", UID: "1"},
		Reason: string(input.Held), Message: "not rolled out", ReportingController: announce.Reporter, Action: "decide", EventTime: metav1.NowMicro(),
	}
	refuse := func(c client.Client, o client.Object, list client.ObjectList) error {
		var kind schema.GroupVersionKind
		if o != nil {
			kind, _ = c.GroupVersionKindFor(o)
		} else {
			kind, _ = c.GroupVersionKindFor(list)
		}
		resource := strings.ToLower(strings.TrimSuffix(kind.Kind, "List")) + "s"
		if resource == "deployments" || slices.Contains(allowed, resource) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	}
	c := fake.NewClientBuilder().WithObjects(web, told, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, at client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := refuse(c, o, nil); err != nil {
				return err
			}
			return c.Get(ctx, at, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refuse(c, nil, list); err != nil {
				return err
			}
			all := (&client.ListOptions{}).ApplyOptions(options)
			all.FieldSelector = nil // there is no other object
			return c.List(ctx, list, all)
		},
	}).Build()
	return &Reader{Client: c, Own: Own{Namespace: "lockstep-system"}, Kinds: []kube.Kind{kube.Deployment()}, Now: time.Now}
}

// TestWithoutPermissions: what isn't visible is named, and nobody hears that a workload is in step
// whose inputs aren't visible.
func TestWithoutPermissions(t *testing.T) {
	t.Parallel()
	at := client.ObjectKey{Namespace: "shop", Name: "web"}
	e, err := readerOf().Workload(t.Context(), kube.Deployment(), at)
	if err != nil {
		t.Fatal(err)
	}
	status, err := readerOf().Status(t.Context(), Scope{Namespace: "shop"})
	if err != nil || len(status.Workloads) != 1 {
		t.Fatalf("%+v, %v", status, err)
	}
	if row := status.Workloads[0]; e.State.Reason != NotOnRecord || e.State != row.State || e.Estimate != nil {
		t.Errorf("the state is %+v, with the estimate %+v, and the list says %+v", e.State, e.Estimate, row.State)
	}
	for name, notes := range map[string][]string{"explain": e.Notes, "status": status.Notes} {
		all := strings.Join(notes, "\n")
		if strings.Contains(all, ", so ") {
			t.Errorf("%s says that events replace the record: %s", name, all)
		}
		for _, want := range []string{"the record is not visible to you: ", "the list of stopped changes is not visible to you: read configmap/lockstep-stop"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s lacks %q: %s", name, want, all)
			}
		}
	}
	if all := strings.Join(e.Notes, "\n"); !strings.Contains(all, "the settings of its namespace, such as a hold, are not visible to you: namespaces") {
		t.Errorf("it isn't said that the namespace may hold: %s", all)
	}
	if e, err = readerOf("namespaces").Workload(t.Context(), kube.Deployment(), at); err != nil || strings.Contains(strings.Join(e.Notes, "\n"), "namespaces") {
		t.Errorf("the namespace is visible, and the notes are %q, %v", e.Notes, err)
	}
}

// TestMissingNamespace: an empty list says so if its namespace doesn't exist, as far as that is visible.
func TestMissingNamespace(t *testing.T) {
	t.Parallel()
	const says = "namespace typo doesn't exist"
	for _, c := range []struct {
		reason, namespace string
		allowed           []string
		want              bool
	}{
		{"it doesn't exist", "typo", []string{"namespaces"}, true},
		{"that isn't visible", "typo", nil, false},
		{"it exists", "shop", []string{"namespaces"}, false},
		{"all namespaces", "", []string{"namespaces"}, false},
	} {
		status, err := readerOf(c.allowed...).Status(t.Context(), Scope{Namespace: c.namespace})
		if err != nil || slices.Contains(status.Notes, says) != c.want {
			t.Errorf("%s: the notes are %q, %v", c.reason, status.Notes, err)
		}
	}
}

// TestDenied: where nothing can be listed, every refusal has its line, and a way out where there is one.
func TestDenied(t *testing.T) {
	t.Parallel()
	for namespace, lines := range map[string]int{"": 3, "shop": 2} {
		r := readerOf()
		r.Kinds = []kube.Kind{kube.StatefulSet(), kube.DaemonSet()}
		_, err := r.Status(t.Context(), Scope{Namespace: namespace})
		if err == nil || !apierrors.IsForbidden(err) {
			t.Fatal("it isn't refused:", err)
		}
		if got := strings.Split(err.Error(), "\n"); len(got) != lines || strings.Contains(got[len(got)-1], "-n NAMESPACE") != (namespace == "") {
			t.Errorf("in namespace %q: %q", namespace, got)
		}
	}
}

// TestEventsReplaceTheRecord: only where there is one.
func TestEventsReplaceTheRecord(t *testing.T) {
	t.Parallel()
	e, err := readerOf("events").Workload(t.Context(), kube.Deployment(), client.ObjectKey{Namespace: "shop", Name: "web"})
	if err != nil || e.State.From != FromEvent || !strings.Contains(e.Notes[0], "the record is not visible to you, so the state comes from the newest event: ") {
		t.Errorf("the state is %+v, with the notes %q, %v", e.State, e.Notes, err)
	}
	status, err := readerOf("events").Status(t.Context(), Scope{Namespace: "shop"})
	if err != nil || !strings.Contains(status.Notes[0], "so the states come from events") {
		t.Errorf("the notes are %q, %v", status.Notes, err)
	}
}
