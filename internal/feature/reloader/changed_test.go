package reloader

import (
	"maps"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

// status is what the driver says about one pod and class db.
func status(pod, version string) *unstructured.Unstructured {
	o := newUnstructured(PodStatus())
	o.SetNamespace("shop")
	o.SetName(pod)
	o.Object["status"] = map[string]any{
		"secretProviderClassName": "db", "objects": []any{map[string]any{"id": "password", "version": version}},
	}
	return o
}

// TestChanges: which differences between copies count, and as what.
func TestChanges(t *testing.T) {
	t.Parallel()
	all := Options{OnCreate: true, OnDelete: true}
	cases := map[string]struct {
		reason  string
		options Options
		of      stakater.Type
		// listed is the first list, and then happens what follows.
		listed []any
		then   func(a *area) error
		want   map[id]event
	}{
		"Listed":     {"what exists at the start isn't created by it", all, stakater.ConfigMap, []any{configMap("app", nil)}, nil, nil},
		"Created":    {"though Secrets are ignored", all, stakater.ConfigMap, nil, func(a *area) error { return a.mirror.Add(configMap("app", nil)) }, map[id]event{{stakater.ConfigMap, "app"}: added}},
		"CreatedOff": {"nobody asks for it", Options{}, stakater.ConfigMap, nil, func(a *area) error { return a.mirror.Add(configMap("app", nil)) }, nil},
		"Missed": {"a list shows what was created and deleted since the last one", all, stakater.ConfigMap, []any{configMap("old", nil)}, func(a *area) error {
			return a.mirror.Replace([]any{configMap("new", nil)}, "2")
		}, map[id]event{{stakater.ConfigMap, "old"}: deleted, {stakater.ConfigMap, "new"}: added}},
		"SameHash": {"two contents can share a hash", all, stakater.ConfigMap, []any{configMap("app", map[string]string{"a": "1", "b": "2"})}, func(a *area) error {
			return a.mirror.Update(configMap("app", map[string]string{"a": "1;b=2"}))
		}, map[id]event{{stakater.ConfigMap, "app"}: updated}},
		"Rotated": {"the first pod with a version", all, stakater.SecretProviderClass, []any{status("a", "1"), status("b", "1")}, func(a *area) error {
			return a.mirror.Update(status("a", "2"))
		}, map[id]event{{stakater.SecretProviderClass, "db"}: updated}},
		"RotatedBefore": {"the second one", all, stakater.SecretProviderClass, []any{status("a", "1"), status("b", "0")}, func(a *area) error {
			return a.mirror.Update(status("b", "1"))
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.options.Scope = Scope{ConfigMaps: true, Classes: true}
			r := New(tc.options, testReloader(EnvVars).Dependencies)
			r.record.put("shop", id{stakater.SecretProviderClass, "db"}, entry{hash: stakater.HashClass("db", []stakater.ClassObject{{ID: "password", Version: "1"}})})
			var in *area
			for _, a := range r.areas {
				if a.of == tc.of {
					in = a
				}
			}
			if err := in.mirror.Replace(tc.listed, "1"); err != nil {
				t.Fatal(err)
			}
			if tc.then != nil {
				if err := tc.then(in); err != nil {
					t.Fatal(err)
				}
			}
			got := map[id]event{}
			for _, c := range r.pending.in("shop") {
				got[c.id()] = c.event
			}
			if !maps.Equal(got, tc.want) || r.pending.size() != len(tc.want) {
				t.Errorf("%s: %v, want %v; %d changes wait", tc.reason, got, tc.want, r.pending.size())
			}
		})
	}
}

// TestUnled: a replica that never leads remembers a bounded number of changes.
func TestUnled(t *testing.T) {
	t.Parallel()
	r := New(Options{Standby: true}, dependencies(time.Now))
	for i := range mostUnled + 1 {
		r.note("shop", of(func(c *change) { c.Name = strconv.Itoa(i) }))
	}
	if n := r.pending.size(); n != mostUnled {
		t.Errorf("%d changes wait", n)
	}
	r.leads.Store(true)
	r.note("shop", of())
	if n := r.pending.size(); n != mostUnled+1 {
		t.Errorf("the leader drops a change: %d wait", n)
	}
}
