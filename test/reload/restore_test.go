package reload_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRestore: while the controller is down, a backup is restored with the record in it: objects are
// deleted and created again as they were, which gives them other UIDs and versions.
func TestRestore(t *testing.T) {
	t.Parallel()
	sources := []string{"configmap/app", "secret/db"}
	for name, tc := range map[string]struct {
		reason   string
		restored []string
		rollouts int // of the Deployment that is there after the restore
		more     int // when the next change is delivered
	}{
		"Everything": {"new pods of a new Deployment load the restored content", append([]string{web}, sources...), 0, 1},
		"Sources":    {"pods run newer content than the sources have now", sources, 3, 4},
		"RecordOnly": {"the template shows that the later change was delivered", nil, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, configMap("app", "key: one")+secret("db", "key: one")+deployment("web", auto, uses(sources...)))
			c := s.run(t)
			s.awaitKnown(t, deploy, "web", sources...)
			s.change(t, "configmap/app", "{data: {key: two}}")
			s.awaitRollouts(t, web, 1)
			s.awaitKnown(t, deploy, "web", versionOf("two"))
			backup := s.backup(t, tc.restored...)
			s.change(t, "configmap/app", "{data: {key: three}}")
			s.awaitRollouts(t, web, 2)
			s.awaitKnown(t, deploy, "web", versionOf("three"))
			if code := c.Stop(t); code != 0 {
				t.Errorf("exit code %d", code)
			}

			s.change(t, web, "{spec: {replicas: 1}}")
			s.StartPods(t, "web") // of the last template, which is that of the newest content
			s.awaitLaterSecond(t)
			s.restore(t, backup)
			s.awaitObserved(t, web)
			s.run(t)
			s.checkRollouts(t, tc.reason, tc.rollouts, web)
			s.change(t, "secret/db", "{stringData: {key: two}}")
			s.awaitRollouts(t, web, tc.more)
			s.checkRollouts(t, "the next change", tc.more, web)
		})
	}
}

// backup reads objects of the application, and the controller's record and key.
func (s *stage) backup(t testing.TB, refs ...string) []*unstructured.Unstructured {
	t.Helper()
	var kept []*unstructured.Unstructured
	keep := func(namespace, ref string) {
		o := blank(t, ref)
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: o.GetName()}, o); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, o)
	}
	for _, ref := range refs {
		keep(s.Namespace, ref)
	}
	keep(s.Own, "secret/"+keyName)
	for _, shard := range s.shards(t) {
		keep(s.Own, "configmap/"+shard.Name)
	}
	return kept
}

// restore deletes objects, and creates them again.
func (s *stage) restore(t testing.TB, backup []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range backup {
		if err := s.Client.Delete(t.Context(), o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(o.Object, "status")
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
