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
	"github.com/lockstep-dev/lockstep/test/testkit"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// awaitJobs returns a function that waits for the next Job which somebody makes
// from now on, and runs its command as its account: the fake node takes every Job
// for done at once.
func (w *world) awaitJobs() (runNext func()) {
	w.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig)
	if err != nil {
		w.T.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		w.T.Fatal(err)
	}
	before := &batchv1.JobList{}
	if err := c.List(w.T.Context(), before, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	from := &metav1.ListOptions{ResourceVersion: before.ResourceVersion}
	jobs, err := c.Watch(w.T.Context(), &batchv1.JobList{}, &client.ListOptions{Namespace: w.Namespace, Raw: from})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(jobs.Stop)
	return func() {
		w.T.Helper()
		late := time.After(testkit.Patience)
		for {
			select {
			case event := <-jobs.ResultChan():
				if made, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Added {
					w.RunJob(walkthrough.JobOf(made))
					return
				}
			case <-late:
				w.T.Fatal("nobody made a Job")
			}
		}
	}
}

// hooked runs Helm with its hooks.
func (w *world) hooked(args ...string) {
	w.T.Helper()
	runNext := w.awaitJobs()
	w.Helm.Run(w.T, append(args, "-n", w.Namespace)...)
	runNext()
}

// TestHooksAttach: what Helm itself starts after an installation, an upgrade and a
// rollback attaches, with no more permissions than the chart brings. When it is rolled
// back, the first ReplicaSet is gone with its ConfigMap: both are made anew.
func TestHooksAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	values := func(color, more string) string {
		return helmtest.ValuesFile(t, walkthrough.Release(color, "workload: {kind: Deployment, revisionHistoryLimit: 1}\nsecrets: {db: {kv_data: {password: change-me}}}\n"+more))
	}
	w.hooked("install", "demo", w.Helm.Chart("app"), "-f", values("red", ""))
	red := w.ConfigMapOf("red")
	first := w.AwaitReplicaSet(red)
	w.AwaitOwners(map[string][]string{red: {first.Name}})

	w.hooked("upgrade", "demo", w.Helm.Chart("app"), "-f", values("blue", ""))
	blue := w.ConfigMapOf("blue")
	w.AwaitPods(map[string]int{red: 0, blue: 3})
	w.AwaitOwners(map[string][]string{red: {first.Name}, blue: {w.AwaitReplicaSet(blue).Name}})

	w.Delete(&first)
	w.AwaitOwners(map[string][]string{blue: {w.AwaitReplicaSet(blue).Name}})
	w.hooked("rollback", "demo", "1")
	w.AwaitPods(map[string]int{red: 3, blue: 0})
	w.AwaitOwners(map[string][]string{red: {w.AwaitReplicaSet(red).Name}, blue: {w.AwaitReplicaSet(blue).Name}})
}
