package revisions_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// awaitJobs returns a function that waits for the next Job which somebody makes
// from now on, and runs its command as its account: the fake node takes every Job
// for done at once.
func (w *world) awaitJobs() (runNext func()) {
	w.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	before := &batchv1.JobList{}
	if err := c.List(w.t.Context(), before, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	from := &metav1.ListOptions{ResourceVersion: before.ResourceVersion}
	jobs, err := c.Watch(w.t.Context(), &batchv1.JobList{}, &client.ListOptions{Namespace: w.namespace, Raw: from})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(jobs.Stop)
	return func() {
		w.t.Helper()
		late := time.After(patience)
		for {
			select {
			case event := <-jobs.ResultChan():
				if made, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Added {
					pod := made.Spec.Template.Spec
					w.runJob(&job{args: pod.Containers[0].Args, account: pod.ServiceAccountName})
					return
				}
			case <-late:
				w.t.Fatal("nobody made a Job")
			}
		}
	}
}

// hooked runs Helm with its hooks.
func (w *world) hooked(args ...string) {
	w.t.Helper()
	runNext := w.awaitJobs()
	w.helm.Run(w.t, append(args, "-n", w.namespace)...)
	runNext()
}

// TestHooksAttach: what Helm itself starts after an installation, an upgrade and a
// rollback attaches, with no more rights than the chart brings. When it is rolled
// back, the first ReplicaSet is gone with its ConfigMap: both are made anew.
func TestHooksAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	values := func(color, more string) string {
		return helmtest.ValuesFile(t, release(color, "workload: {kind: Deployment, revisionHistoryLimit: 1}\nsecrets: {db: {kv_data: {password: change-me}}}\n"+more))
	}
	w.hooked("install", "demo", w.helm.Chart("app"), "-f", values("red", ""))
	red := w.configMapOf("red")
	first := w.awaitReplicaSet(red)
	w.awaitOwners(map[string][]string{red: {first.Name}})

	w.hooked("upgrade", "demo", w.helm.Chart("app"), "-f", values("blue", ""))
	blue := w.configMapOf("blue")
	w.awaitPods(map[string]int{red: 0, blue: 3})
	w.awaitOwners(map[string][]string{red: {first.Name}, blue: {w.awaitReplicaSet(blue).Name}})

	w.delete(&first)
	w.awaitOwners(map[string][]string{blue: {w.awaitReplicaSet(blue).Name}})
	w.hooked("rollback", "demo", "1")
	w.awaitPods(map[string]int{red: 3, blue: 0})
	w.awaitOwners(map[string][]string{red: {w.awaitReplicaSet(red).Name}, blue: {w.awaitReplicaSet(blue).Name}})
}
