package reloader_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// odd are Jobs and a CronJob that mustn't run because of a change.
type odd struct {
	finished, owned, suspended *unstructured.Unstructured
}

func (r *room) addOdd(t *testing.T) odd {
	t.Helper()
	all := odd{
		finished:  r.add(t, app{kind: "Job", name: "finished", notes: notes(auto, "true"), spec: map[string]any{"completions": int64(0)}}),
		suspended: r.add(t, app{kind: "CronJob", name: "suspended", notes: notes(auto, "true")}),
	}
	r.patch(t, all.suspended, `{"spec":{"suspend":true}}`)
	cron := r.add(t, app{kind: "CronJob", name: "owner"})
	all.owned = r.add(t, app{kind: "Job", name: "owned", notes: notes(auto, "true")})
	r.patch(t, all.owned, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"owner","uid":%q,"controller":true}]}}`, cron.GetUID()))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		job := r.job(t, "finished")
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete {
				return true, ""
			}
		}
		return false, fmt.Sprintf("the Job has the conditions %v", job.Status.Conditions)
	})
	return all
}

// jobsStay: a change re-runs neither a finished Job nor one of a CronJob, and fires no
// suspended CronJob.
func jobsStay(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	all := r.addOdd(t)
	before := map[string]string{}
	for _, job := range r.jobs(t) {
		before[job.Name] = string(job.UID)
	}
	f := r.fence(t)
	r.set(t, source, "1")
	f.pass(t)
	after := r.jobs(t)
	for _, job := range after {
		if before[job.Name] != string(job.UID) {
			t.Errorf("Job %s was run", job.Name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d Jobs, want %d", len(after), len(before))
	}
	if events := r.events(t, all.suspended); len(events) > 0 {
		t.Errorf("the suspended CronJob has the events %q", events)
	}
}

// forbids: a CronJob that forbids a second Job gets none while one runs, whoever started that.
func forbids(t *testing.T, r *room, _ *program) {
	t.Helper()
	source, f := r.configMap(t, "c", "0"), r.fence(t)
	cron := r.add(t, app{kind: "CronJob", notes: notes(auto, "true")})
	r.patch(t, cron, `{"spec":{"concurrencyPolicy":"Forbid"}}`)
	r.set(t, source, "1")
	running := r.awaitJobs(t, 1)[0]
	r.set(t, source, "2")
	f.pass(t)
	r.awaitJobs(t, 1)
	r.remove(t, &running)
	r.awaitJobs(t, 0)
	r.set(t, source, "3")
	if got, want := marks(r.awaitJobs(t, 1)[0].Spec.Template), []string{mark("configmap/c", "3")}; !slices.Equal(got, want) {
		t.Errorf("the Job has the marks %q, want %q", got, want)
	}
}

// TestRerunJobs: a flag restores what the original did.
func TestRerunJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "rerun")
	source := r.configMap(t, "c", "0")
	all := r.addOdd(t)
	s.run(t, "--rerun-jobs")
	r.set(t, source, "1")
	r.awaitMarks(t, all.finished, mark("configmap/c", "1"))
	r.awaitMarks(t, all.owned, mark("configmap/c", "1"))
	r.awaitJobs(t, 3)
}

// jobIsNotLost: a Job that can't be created again isn't deleted. It is replaced when it can be,
// and so is one with a selector of its own.
func jobIsNotLost(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{kind: "Job", notes: notes(auto, "true")})
	uid := o.GetUID()
	policy := r.refuse(t, "batch", "jobs", "CREATE", "false")
	f := r.fence(t)
	r.set(t, source, "1")
	r.awaitEvent(t, o, "Warning ReloadFail reloader-configmaps ", "'app'")
	f.pass(t)
	r.read(t, o)
	if o.GetUID() != uid {
		t.Fatal("the Job was deleted")
	}
	policy.lift(t)
	f.pass(t) // Pauses between attempts grow, and a change ends them.
	r.awaitMarks(t, o, mark("configmap/c", "1"))
}

// manualSelector: the selector of a Job that brings its own stays.
func manualSelector(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "app", Annotations: notes(auto, "true")}}
	job.Spec.Parallelism, job.Spec.ManualSelector = new(int32(0)), new(true)
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"mine": "yes"}}
	job.Spec.Template.Labels, job.Spec.Template.Spec = map[string]string{"mine": "yes"}, uses("configmap/c")
	job.Spec.Template.Spec.RestartPolicy = "Never"
	r.create(t, job)
	r.set(t, source, "1")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("batch/v1")
	o.SetKind("Job")
	o.SetNamespace(r.name)
	o.SetName("app")
	r.awaitMarks(t, o, mark("configmap/c", "1"))
	if got := r.job(t, "app").Spec.Selector.MatchLabels; len(got) != 1 || got["mine"] != "yes" {
		t.Errorf("the selector is %v", got)
	}
}
