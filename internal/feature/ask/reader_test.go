package ask

import (
	"context"
	"maps"
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
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
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
	if !status.Partial {
		t.Error("the list isn't marked as partial, although the record isn't visible")
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

// TestPartial: a list may lack workloads if a kind in its scope or the record can't be read.
func TestPartial(t *testing.T) {
	t.Parallel()
	both := []kube.Kind{kube.Deployment(), kube.StatefulSet()}
	for name, tc := range map[string]struct {
		allowed []string
		only    []kube.Kind
		want    bool
	}{
		"Kind":      {[]string{"configmaps"}, nil, true},
		"Record":    {[]string{"statefulsets"}, nil, true},
		"Neither":   {[]string{"configmaps", "statefulsets"}, nil, false},
		"OtherKind": {[]string{"configmaps"}, both[:1], false},
	} {
		r := readerOf(tc.allowed...)
		r.Kinds = both
		status, err := r.Status(t.Context(), Scope{Namespace: "shop", Only: tc.only})
		if err != nil || status.Partial != tc.want || len(status.Workloads) != 1 {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
}

// TestPartialPlan: a workload that can't be judged must not look like one that doesn't roll.
func TestPartialPlan(t *testing.T) {
	t.Parallel()
	const (
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {}}}}"
		stateful   = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {}}}}"
		source     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: b}}"
		namespace  = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
	)
	for name, tc := range map[string]struct {
		files   string
		allowed []string
		partial bool
		rows    map[string]Would
	}{
		"Workload":    {stateful, []string{"configmaps"}, true, map[string]Would{"statefulset/db": WouldUnknown}},
		"Other":       {deployment, []string{"configmaps"}, false, map[string]Would{"deployment/web": WouldNothing}},
		"UsersUnseen": {source, []string{"configmaps"}, true, map[string]Would{"deployment/web": WouldNothing}},
		"UsersSeen":   {source, []string{"configmaps", "statefulsets"}, false, map[string]Would{"deployment/web": WouldNothing}},
		"Namespace":   {namespace, []string{"configmaps", "statefulsets"}, true, map[string]Would{}},
	} {
		r := readerOf(append(tc.allowed, "secrets", "replicasets", "controllerrevisions")...)
		found, err := manifest.Reader{Stdin: strings.NewReader(tc.files)}.Read([]string{manifest.Stdin})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := PlanOf(t.Context(), PlanOptions{
			Client: r.Client, Kinds: []kube.Kind{kube.Deployment(), kube.StatefulSet()}, Namespace: "shop", Hashers: kube.NewHashers([]byte("key")), KeyKnown: true,
			Record: ledger.NewReading(r.Client, "lockstep-system", DefaultState), Now: time.Now(),
		}, found.Objects)
		rows := map[string]Would{}
		for _, w := range plan.Workloads {
			rows[w.Workload] = w.Would
		}
		if err != nil || plan.Partial != tc.partial || !maps.Equal(rows, tc.rows) {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}
