package reloader

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func testReloader(strategy Strategy) *Reloader {
	return New(Options{Words: stakater.Words{Keys: stakater.DefaultKeys()}, Strategy: strategy}, dependencies(func() time.Time { return time.Unix(1700000000, 0).UTC() }))
}

// dependencies are those of a Reloader that doesn't reach a cluster.
func dependencies(now func() time.Time) Dependencies {
	return Dependencies{Metrics: NewMetrics(prometheus.NewRegistry(), false), Now: now}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	deployment, rollout := Kind{Kind: kube.Deployment()}, Kind{Kind: kube.Rollout()}
	dotted := func(c *change) { c.Name, c.hash = "a.b", oldHash }
	dashed := func(c *change) { c.Name = "a-b" }
	gone := func(c *change) { c.event = deleted }
	cases := map[string]struct {
		reason   string
		strategy Strategy
		kind     Kind
		on       observation
		due      []due
		want     []patch.Change
	}{
		"First":   {"a first variable", EnvVars, deployment, follower(), []due{{change: of()}}, []patch.Change{patch.SetVariable{Name: "STAKATER_APP_CONFIGMAP", Value: newHash, Index: -1, First: true}}},
		"Again":   {"an existing one keeps its place", EnvVars, deployment, follower(shows(oldHash)), []due{{change: of()}}, []patch.Change{patch.SetVariable{Name: "STAKATER_APP_CONFIGMAP", Value: newHash, Index: 1}}},
		"Rollout": {"a new one is last in a Rollout", EnvVars, rollout, follower(), []due{{change: of()}}, []patch.Change{patch.SetVariable{Name: "STAKATER_APP_CONFIGMAP", Value: newHash, Index: -1, First: true, Last: true}}},
		"Shared":  {"names that share a variable overwrite each other", EnvVars, deployment, follower(), []due{{change: of(dotted)}, {change: of(dashed)}}, []patch.Change{patch.SetVariable{Name: "STAKATER_A_B_CONFIGMAP", Value: newHash, Index: -1, First: true}}},
		"Gone":    {"a variable is removed", EnvVars, deployment, follower(shows(oldHash)), []due{{change: of(gone)}}, []patch.Change{patch.RemoveVariable{Index: 1}}},
		"Unseen":  {"the template shows the hash already", EnvVars, deployment, follower(shows(newHash)), []due{{change: of(), unseen: true}}, []patch.Change{patch.SetAnnotation{Key: restartedAt, Value: "2023-11-14T22:13:20Z"}}},
		"Annotation": {"one place for the last change", Annotations, deployment, follower(), []due{{change: of(dotted)}, {change: of()}}, []patch.Change{patch.SetAnnotation{
			Key:   stakater.LastReloadedFrom,
			Value: `{"type":"CONFIGMAP","name":"app","namespace":"shop","hash":"` + newHash + `","containerRefs":["web"],"observedAt":1700000000}`,
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, testReloader(tc.strategy).marks(tc.kind, tc.on, tc.due)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func someJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "load", Namespace: "shop", UID: "1", ResourceVersion: "7", Labels: map[string]string{"team": "a"}, Finalizers: []string{"a.b/c"}},
		Spec: batchv1.JobSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"controller-uid": "1"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"controller-uid": "1", "job-name": "load", batchv1.ControllerUidLabel: "1", batchv1.JobNameLabel: "load", "app": "x"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "load", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}}},
			},
		},
		Status: batchv1.JobStatus{Active: 1},
	}
}

func TestCopyOfJob(t *testing.T) {
	t.Parallel()
	r, manual := testReloader(EnvVars), true
	got := r.copyOf(someJob(), []due{{change: of()}})
	if got.UID != "" || got.ResourceVersion != "" || got.Spec.Selector != nil || got.Status.Active != 0 {
		t.Errorf("it still belongs to the old one: %+v", got)
	}
	if diff := cmp.Diff(map[string]string{"app": "x"}, got.Spec.Template.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	if got.Labels["team"] != "a" || len(got.Finalizers) != 1 {
		t.Errorf("metadata is lost: %+v", got.ObjectMeta)
	}
	want := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "STAKATER_APP_CONFIGMAP", Value: newHash}}
	if diff := cmp.Diff(want, got.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("variables (-want +got)\n%s", diff)
	}
	shown, gone := someJob(), func(name string) due { return due{change: of(func(c *change) { c.Name, c.event = name, deleted })} }
	shown.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STAKATER_A_B_CONFIGMAP", Value: oldHash}}
	if env := r.copyOf(shown, []due{gone("a-b"), gone("a.b")}).Spec.Template.Spec.Containers[0].Env; len(env) > 0 {
		t.Errorf("two deleted sources share a variable, and it stays: %v", env)
	}
	own := someJob()
	own.Spec.ManualSelector = &manual
	if r.copyOf(own, []due{{change: of()}}).Spec.Selector == nil {
		t.Error("a selector that a user wrote is lost, and the API server would refuse the Job")
	}
}

// TestRunName: the same changes have one name, other ones another, and all are valid.
func TestRunName(t *testing.T) {
	t.Parallel()
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("c", 52), UID: "1"}}
	one, again, back := []due{{change: of()}}, []due{{change: of()}}, []due{{change: of(func(c *change) { c.version = "9" })}}
	if runName(cron, one) != runName(cron, again) {
		t.Error("a crash would run it twice")
	}
	if runName(cron, one) == runName(cron, back) {
		t.Error("a content that comes back is a change too")
	}
	other := due{change: of(func(c *change) { c.Name = "other" })}
	if runName(cron, []due{one[0], other}) != runName(cron, []due{other, one[0]}) {
		t.Error("a process that finds the changes in another order would run it twice")
	}
	if name := runName(cron, one); len(name) > maxJobName || !strings.HasPrefix(name, cron.Name) {
		t.Errorf("the name is %q", name)
	}
}

// TestRunsFor: whose Job is still running, whoever started it.
func TestRunsFor(t *testing.T) {
	t.Parallel()
	yes := true
	running, finished := someJob(), someJob()
	running.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", UID: "cron", Controller: &yes}}
	finished.OwnerReferences = running.OwnerReferences
	finished.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if owner, runs := runsFor(running); !runs || owner != "cron" {
		t.Errorf("a running Job: %t for %q", runs, owner)
	}
	for name, o := range map[string]client.Object{"a finished Job": finished, "a Job without an owner": someJob(), "a CronJob": &batchv1.CronJob{}} {
		if owner, runs := runsFor(o); runs {
			t.Errorf("%s runs for %q", name, owner)
		}
	}
	r, again := testReloader(EnvVars), testReloader(EnvVars)
	again.RerunJobs = true
	forbids := &batchv1.CronJob{Spec: batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent}}
	if !r.runOf(forbids, nil).alone || r.runOf(&batchv1.CronJob{}, nil).alone || again.runOf(forbids, nil).alone {
		t.Error("only a CronJob that forbids a second Job runs alone, unless Jobs are to run again")
	}
}

// TestLeaves: which objects aren't reloaded whatever changes.
func TestLeaves(t *testing.T) {
	t.Parallel()
	yes, now := true, metav1.Now()
	finished, owned, deleting := someJob(), someJob(), someJob()
	finished.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Controller: &yes}}
	deleting.DeletionTimestamp = &now
	busy := &batchv1.CronJob{Spec: batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent}, Status: batchv1.CronJobStatus{Active: []corev1.ObjectReference{{Name: "x"}}}}
	r, again := testReloader(EnvVars), testReloader(EnvVars)
	again.RerunJobs = true
	for _, tc := range []struct {
		name          string
		leaves, also  bool // also with RerunJobs
		got, gotAgain string
	}{
		{"a running Job", false, false, r.leaves(someJob()), again.leaves(someJob())},
		{"a finished Job", true, false, r.leaves(finished), again.leaves(finished)},
		{"a Job of a CronJob", true, false, r.leaves(owned), again.leaves(owned)},
		{"a Job that is being deleted", true, true, r.leaves(deleting), again.leaves(deleting)},
		{"a CronJob", false, false, r.leaves(&batchv1.CronJob{}), again.leaves(&batchv1.CronJob{})},
		{"a suspended CronJob", true, false, r.leaves(&batchv1.CronJob{Spec: batchv1.CronJobSpec{Suspend: &yes}}), again.leaves(&batchv1.CronJob{Spec: batchv1.CronJobSpec{Suspend: &yes}})},
		{"a CronJob with a running Job that forbids another", true, false, r.leaves(busy), again.leaves(busy)},
	} {
		if (tc.got != "") != tc.leaves || (tc.gotAgain != "") != tc.also {
			t.Errorf("%s: left because %q; with RerunJobs because %q", tc.name, tc.got, tc.gotAgain)
		}
	}
}
