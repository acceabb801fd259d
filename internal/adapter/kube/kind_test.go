package kube

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestParseKind(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, text string
		want         schema.GroupVersionKind
		wrong        bool
	}{
		"Custom": {
			reason: "group, version, kind and path", text: "example.com/v1/Worker=spec.pod.template",
			want: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Worker"},
		},
		"Core": {
			reason: "the core group has no name", text: "v1/ReplicationController=spec.template",
			want: schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"},
		},
		"NoPath":       {reason: "Lockstep does not guess where the template is", text: "example.com/v1/Worker", wrong: true},
		"EmptyPath":    {reason: "a path has fields", text: "example.com/v1/Worker=", wrong: true},
		"EmptyField":   {reason: "each with a name", text: "example.com/v1/Worker=spec..template", wrong: true},
		"TrailingDot":  {reason: "also the last", text: "example.com/v1/Worker=spec.template.", wrong: true},
		"NoVersion":    {reason: "a group alone is no version", text: "example.com//Worker=spec.template", wrong: true},
		"NoKind":       {reason: "what is it called?", text: "example.com/v1/=spec.template", wrong: true},
		"OnlyKind":     {reason: "of which version?", text: "Worker=spec.template", wrong: true},
		"TooManyParts": {reason: "one slash too many", text: "a/b/v1/Worker=spec.template", wrong: true},
		"Nothing":      {reason: "an empty flag is a mistake", wrong: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseKind(tc.text)
			if (err != nil) != tc.wrong {
				t.Fatalf("%s: ParseKind(%q) fails with %v, want an error: %t", tc.reason, tc.text, err, tc.wrong)
			}
			if err == nil && (got.GroupVersionKind != tc.want || got.String() != tc.text || !got.Custom) {
				t.Errorf("%s: %q is read as %+v", tc.reason, tc.text, got.Row)
			}
		})
	}
}

// FuzzParseKind: what is read can be written and read again.
func FuzzParseKind(f *testing.F) {
	f.Add("example.com/v1/Worker=spec.template")
	f.Add("v1/Pod=spec")
	f.Fuzz(func(t *testing.T, text string) {
		kind, err := ParseKind(text)
		if err != nil {
			return
		}
		again, err := ParseKind(kind.String())
		if err != nil || again.GroupVersionKind != kind.GroupVersionKind || again.Template != kind.Template {
			t.Errorf("%q is read as %+v, written as %q and read as %+v, %v", text, kind, kind, again, err)
		}
	})
}

func TestTemplateAtPath(t *testing.T) {
	t.Parallel()
	pod := map[string]any{"containers": []any{map[string]any{"name": "app", "envFrom": []any{
		map[string]any{"configMapRef": map[string]any{"name": "app"}},
	}}}}
	cases := map[string]struct {
		reason string
		spec   map[string]any
		refs   int
		wrong  bool
	}{
		"Template":    {reason: "a pod template", spec: map[string]any{"template": map[string]any{"spec": pod}}, refs: 1},
		"Nothing":     {reason: "no such field", spec: map[string]any{"size": int64(3)}, wrong: true},
		"NotAMap":     {reason: "a field of another type", spec: map[string]any{"template": "large"}, wrong: true},
		"TooHigh":     {reason: "the field above the template", spec: map[string]any{"template": map[string]any{"template": map[string]any{"spec": pod}}}, wrong: true},
		"TooLow":      {reason: "the pod specification itself", spec: map[string]any{"template": pod}, wrong: true},
		"BadTemplate": {reason: "containers that are none", spec: map[string]any{"template": map[string]any{"spec": map[string]any{"containers": "app"}}}, wrong: true},
	}
	kind := worker()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := SlimWorkload(kind, &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}, settings.Native{})
			if err != nil {
				t.Fatal(err)
			}
			if (w.Problem != "") != tc.wrong || len(w.Refs) != tc.refs {
				t.Errorf("%s: problem %q and %d sources, want a problem: %t, and %d", tc.reason, w.Problem, len(w.Refs), tc.wrong, tc.refs)
			}
		})
	}
}

// worker is a custom kind.
func worker() Kind {
	return customKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Worker"}, "spec.template")
}

// TestFindKind: people type kinds as they do for kubectl.
func TestFindKind(t *testing.T) {
	t.Parallel()
	advanced := customKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}, "spec.template")
	kinds := append(Kinds(), advanced, worker(), customKind(schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}, "spec.template"))
	for name, want := range map[string]string{
		"deployment": "deployment", "Deployment": "deployment", "deployments": "deployment", "deploy": "deployment", "deployments.apps": "deployment",
		"sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "ro": "rollout", "rollouts.argoproj.io": "rollout",
		"statefulset": "statefulset", "statefulset.apps": "statefulset", "StatefulSet.apps.kruise.io": "statefulset.apps.kruise.io",
		"worker": "worker.example.com", "workers.example.com": "worker.example.com", "replicationcontrollers": "replicationcontroller",
		"": "", "pod": "", "deployment.": "", "deployment.batch": "", "replicationcontroller.": "", "deploy.apps": "",
	} {
		kind, ok := FindKind(kinds, name)
		if ok != (want != "") || ok && kind.Name() != want {
			t.Errorf("%q is found: %t, want %q", name, ok, want)
		}
	}
}

// TestKindIsAPointer: each workload has two.
func TestKindIsAPointer(t *testing.T) {
	t.Parallel()
	if got, want := reflect.TypeFor[Kind]().Size(), reflect.TypeFor[*Row]().Size(); got != want {
		t.Errorf("a kind takes %d bytes, want %d", got, want)
	}
}

// TestEveryRowIsWhole: a typed row has every reader, because the defaults read untyped
// objects; and untyped objects of a typed row are read all the same.
func TestEveryRowIsWhole(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		if kind.Custom || !kind.Attachable() || kind.StatusOf == nil || kind.Revisions.NewList == nil || len(kind.ShortNames) == 0 {
			t.Errorf("%s lacks something: %+v", kind, kind.Row)
		}
		if typed := kind.Typed.Object != nil; typed != (kind.Typed.List != nil) || typed != (kind.Typed.Template != nil) || typed != (kind.Typed.Selector != nil) || typed != (kind.Typed.Replicas != nil) {
			t.Errorf("%s has only some of what a typed kind needs: %+v", kind, kind.Row)
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(kind.GroupVersionKind)
		if _, err := SlimWorkload(kind, o, settings.Native{}); err != nil {
			t.Errorf("an untyped %s: %v", kind.Kind, err)
		}
		if list, err := meta.Accessor(kind.NewObject()); err != nil || list == nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestSelectorOf: a selector that is not understood selects nothing, because the
// other way of reading it selects every pod of the namespace.
func TestSelectorOf(t *testing.T) {
	t.Parallel()
	labels := map[string]any{"app": "web"}
	cases := map[string]struct {
		reason   string
		selector any
		want     string // empty when there is none
	}{
		"LabelSelector": {"as most kinds have it", map[string]any{"matchLabels": labels}, "app=web"},
		"Expressions":   {"the other half of it", map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, "app"},
		"PlainMap":      {"as a ReplicationController has it", labels, "app=web"},
		"UnknownField":  {"a field that is not understood may narrow it", map[string]any{"matchLabels": labels, "matchFields": []any{}}, ""},
		"Text":          {"some kinds have it as a text", "app=web", ""},
		"Nothing":       {"no selector", nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := map[string]any{}
			if tc.selector != nil {
				spec["selector"] = tc.selector
			}
			s := worker().Selector(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
			got := ""
			if s != nil {
				got = metav1.FormatLabelSelector(s)
			}
			if got != tc.want {
				t.Errorf("%s: selects %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestEarlierNumbers: a number that a revision keeps isn't an earlier one, however often its
// controller has stored it.
func TestEarlierNumbers(t *testing.T) {
	t.Parallel()
	for history, want := range map[string][]int64{"": nil, "1": {1}, "1,3": {1, 3}, "4": nil, "4,4": nil, "1,1,3,4,4": {1, 3}, "x,1": {1}} {
		rs := &metav1.ObjectMeta{Annotations: map[string]string{"rollout.argoproj.io/revision": "4", "rollout.argoproj.io/revision-history": history}}
		if got := Rollout().EarlierNumbers(rs); !slices.Equal(got, want) {
			t.Errorf("of number 4 with the history %q: %v, want %v", history, got, want)
		}
	}
}
