package reloader_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// settled is a pod whose container already has variables.
func settled(env ...corev1.EnvVar) corev1.PodSpec {
	pod := uses("configmap/c")
	pod.Containers[0].Env = env
	return pod
}

// templateKinds: a reload adds one variable to the template and changes nothing else, whatever
// the update strategy is and whoever has paused the workload.
func templateKinds(t *testing.T, r *room, _ *program) {
	t.Helper()
	other, ours := corev1.EnvVar{Name: "OTHER", Value: "x"}, corev1.EnvVar{Name: variable("configmap/c"), Value: "old"}
	cases := map[string]struct {
		app  app
		want string
	}{
		"Deployment":  {app{pod: settled(other)}, "web[0] "},
		"DaemonSet":   {app{kind: "DaemonSet", pod: settled(other)}, "web[0] "},
		"StatefulSet": {app{kind: "StatefulSet", pod: settled(other)}, "web[0] "},
		"InPlace":     {app{pod: settled(other, ours)}, "web[1] "},
		"Paused":      {app{spec: map[string]any{"paused": true}}, "web[0] "},
		"OnDelete":    {app{kind: "StatefulSet", spec: map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}}, "web[0] "},
		"OnDeleteDaemons": {
			app{kind: "DaemonSet", spec: map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}}, "web[0] ",
		},
	}
	source := r.configMap(t, "c", "0")
	workloads, before := map[string]*unstructured.Unstructured{}, map[string]string{}
	for name, tc := range cases {
		tc.app.name, tc.app.notes = strings.ToLower(name), notes(auto, "true")
		workloads[name] = r.add(t, tc.app)
		before[name] = withoutMark(t, workloads[name])
	}
	r.set(t, source, "1")
	for name, o := range workloads {
		r.awaitReloads(t, o, 1, cases[name].want+variable("configmap/c")+"="+sum("1"))
		if after := withoutMark(t, o); after != before[name] {
			t.Errorf("%s: the spec was\n%s, and is\n%s", name, before[name], after)
		}
		r.awaitEvent(t, o, "Normal Reloaded reloader-configmaps ", "'c'", "CONFIGMAP", "'"+o.GetName()+"'", "'"+o.GetKind()+"'", "'"+r.name+"'")
	}
}

// withoutMark is the spec of a workload without the original's variables.
func withoutMark(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	template := podTemplate(t, o)
	c := &template.Spec.Containers[0]
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Name, "STAKATER_") })
	spec := o.DeepCopy().Object["spec"].(map[string]any)
	delete(spec, "template")
	text, err := json.Marshal([]any{spec, template})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cronJob: a change creates one Job at once, with the mark in it, and leaves the CronJob as it
// is.
func cronJob(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	cron := r.add(t, app{kind: "CronJob", notes: notes(auto, "true"), pod: settled(corev1.EnvVar{Name: "OTHER", Value: "x"}), spec: map[string]any{"backoffLimit": int64(2)}})
	r.patch(t, cron, `{"spec":{"jobTemplate":{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b","cronjob.kubernetes.io/instantiate":"c"}}}}}`)
	generation := cron.GetGeneration()
	r.set(t, source, "1")
	job := r.awaitJobs(t, 1)[0]
	if !strings.HasPrefix(job.Name, "app-") || len(job.Name) <= len("app-") {
		t.Errorf("the Job is called %s", job.Name)
	}
	if job.Labels["team"] != "a" || job.Annotations["note"] != "b" || job.Annotations["cronjob.kubernetes.io/instantiate"] != "c" {
		t.Errorf("the Job has labels %v and annotations %v", job.Labels, job.Annotations)
	}
	if owner := metav1.GetControllerOf(&job); owner == nil || owner.Kind != "CronJob" || owner.APIVersion != "batch/v1" || owner.UID != cron.GetUID() || !*owner.BlockOwnerDeletion {
		t.Errorf("the Job belongs to %v", owner)
	}
	if *job.Spec.BackoffLimit != 2 {
		t.Errorf("the Job has %v", job.Spec)
	}
	if got, want := marks(job.Spec.Template), []string{"web[1] " + variable("configmap/c") + "=" + sum("1")}; !slices.Equal(got, want) {
		t.Errorf("the Job has the marks %q, want %q", got, want)
	}
	r.read(t, cron)
	if cron.GetGeneration() != generation || len(marks(podTemplate(t, cron))) > 0 {
		t.Errorf("the CronJob was changed: %v", cron.Object["spec"])
	}
	r.awaitEvent(t, cron, "Normal Reloaded reloader-configmaps ", "'c'", "'app'", "'CronJob'")
	r.set(t, source, "2")
	r.awaitJobs(t, 2)
}

// instantiateIsManual: a Job of a CronJob shows that it didn't start by schedule.
func instantiateIsManual(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.secret(t, "s", "0")
	r.add(t, app{kind: "CronJob", notes: notes(secretReload, "s"), pod: uses()})
	r.set(t, source, "1")
	job := r.awaitJobs(t, 1)[0]
	if got := job.Annotations["cronjob.kubernetes.io/instantiate"]; got != "manual" {
		t.Errorf("the Job's annotation is %q", got)
	}
	if got, want := marks(job.Spec.Template), []string{mark("secret/s", "1")}; !slices.Equal(got, want) {
		t.Errorf("the Job has the marks %q, want %q", got, want)
	}
}

// jobIsReplaced: a Job that hasn't finished is replaced by one of the same name.
func jobIsReplaced(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{kind: "Job", notes: notes(auto, "true", "note", "b"), pod: settled(corev1.EnvVar{Name: "OTHER", Value: "x"}), spec: map[string]any{"backoffLimit": int64(2)}})
	r.patch(t, o, `{"metadata":{"labels":{"team":"a"}}}`)
	uid := o.GetUID()
	r.set(t, source, "1")
	r.awaitMarks(t, o, "web[1] "+variable("configmap/c")+"="+sum("1"))
	job := r.job(t, "app")
	if job.UID == uid || job.Labels["team"] != "a" || job.Annotations["note"] != "b" || *job.Spec.BackoffLimit != 2 || !writtenByReloader(job) {
		t.Errorf("the Job is %v", job)
	}
	if got := job.Spec.Template.Labels[batchv1.ControllerUidLabel]; got != string(job.UID) {
		t.Errorf("the pods of the Job belong to %q, not to %s", got, job.UID)
	}
	r.awaitEvent(t, o, "Normal Reloaded reloader-configmaps ", "'c'", "'app'", "'Job'")
}

func (r *room) job(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	o := &batchv1.Job{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: r.name, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRollouts: a Rollout gets the variable at the end of its environment, or restarts its pods
// without it. Fields that this program doesn't know stay.
func TestRollouts(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{isArgoRollouts: true}, labtest.ArgoRollouts)
	r := s.namespace(t, "rollouts")
	s.run(t, "--is-Argo-Rollouts=true")
	source := r.configMap(t, "c", "0")
	other := settled(corev1.EnvVar{Name: "OTHER", Value: "x"})
	canary := map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"setWeight": int64(20)}, map[string]any{"pause": map[string]any{}}}}}
	written := r.add(t, app{kind: "Rollout", name: "written", notes: notes(auto, "true"), pod: other, spec: map[string]any{"strategy": canary, "rollbackWindow": map[string]any{"revisions": int64(3)}}})
	restarted := r.add(t, app{kind: "Rollout", name: "restarted", notes: notes(auto, "true", rolloutStrategy, "restart")})
	begun := time.Now().Truncate(time.Second)
	r.set(t, source, "1")
	r.awaitReloads(t, written, 1, "web[1] "+variable("configmap/c")+"="+sum("1"))
	if !writtenByReloader(written) {
		t.Errorf("the field managers are %v", written.GetManagedFields())
	}
	if steps, _, _ := unstructured.NestedSlice(written.Object, "spec", "strategy", "canary", "steps"); len(steps) != 2 {
		t.Errorf("the steps are %v", steps)
	}
	if window, _, _ := unstructured.NestedInt64(written.Object, "spec", "rollbackWindow", "revisions"); window != 3 {
		t.Errorf("the rollback window is %d", window)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		r.read(t, restarted)
		text, _, _ := unstructured.NestedString(restarted.Object, "spec", "restartAt")
		at, err := time.Parse(time.RFC3339, text)
		return err == nil && !at.Before(begun), fmt.Sprintf("restartAt is %q", text)
	})
	if got := marks(podTemplate(t, restarted)); len(got) > 0 {
		t.Errorf("the restarted Rollout has the marks %q", got)
	}
	r.awaitEvent(t, written, "Normal Reloaded reloader-configmaps ", "'c'", "'written'", "'Rollout'")
	r.awaitEvent(t, restarted, "Normal Reloaded reloader-configmaps ", "'c'", "'restarted'", "'Rollout'")
}

// TestRolloutsAreOptional: without the flag, with its wrong spelling or with another value than
// true, Rollouts stay as they are.
func TestRolloutsAreOptional(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{isArgoRollouts: true}, labtest.ArgoRollouts)
	r := s.namespace(t, "rollouts")
	p := s.run(t, "--is-Argo-Rollouts=True")
	source := r.configMap(t, "c", "0")
	rollout, f := r.add(t, app{kind: "Rollout", notes: notes(auto, "true")}), r.fence(t)
	r.set(t, source, "1")
	f.pass(t)
	r.mustBeUntouched(t, rollout)
	p.awaitLog(t, "--is-Argo-Rollouts=true")
}
