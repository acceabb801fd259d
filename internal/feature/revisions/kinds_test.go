package revisions_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestEveryKind: the revision of each kind, made by the real controllers.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	cm := input.ConfigMap("cm")
	none := int32(0)
	suspended := true
	cases := map[string]struct {
		kind   kube.Kind
		object client.Object
		owner  string
	}{
		"StatefulSet": {kind: kube.StatefulSet(), owner: "ControllerRevision/web-", object: &appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: &none, Selector: selector(), Template: template(cm)},
		}},
		"DaemonSet": {kind: kube.DaemonSet(), owner: "ControllerRevision/web-", object: &appsv1.DaemonSet{
			Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template(cm)},
		}},
		"Deployment": {kind: kube.Deployment(), owner: "ReplicaSet/web-", object: &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: selector(), Template: template(cm)},
		}},
		"CronJob": {kind: kube.CronJob(), owner: "CronJob/web", object: &batchv1.CronJob{
			Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: jobTemplate(cm)},
			}},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.source(cm)
			c.object.SetName("web")
			l.create(c.object)
			if _, err := l.attach(l.request(c.kind, cm)); err != nil {
				t.Fatal(err)
			}
			if got := l.owners(cm); !strings.HasPrefix(got, c.owner) || strings.Contains(got, " ") {
				t.Errorf("attached to %q, want one %s", got, c.owner)
			}
		})
	}
}

// TestSecondRevisionOfADaemonSet: its revisions and itself are told by two watches,
// so the newest revision that is known may be the one before.
func TestSecondRevisionOfADaemonSet(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"named by the template": true, "not insisting on that": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			older, newer := input.ConfigMap("older"), input.ConfigMap("newer")
			l.source(older)
			l.source(newer)
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template(older)}}
			l.create(ds)
			if _, err := l.attach(l.request(kube.DaemonSet(), older)); err != nil {
				t.Fatal(err)
			}
			change := ds.DeepCopy()
			change.Spec.Template = template(newer)
			if err := l.admin.Patch(t.Context(), change, client.MergeFrom(ds)); err != nil {
				t.Fatal(err)
			}
			request := l.request(kube.DaemonSet(), newer)
			request.RequireReference, request.Grace = strict, 0
			if _, err := l.attach(request); err != nil {
				t.Fatal(err)
			}
			if first, second := l.owners(older), l.owners(newer); strings.Contains(second, " ") || first == second || !strings.HasPrefix(second, "ControllerRevision/web-") {
				t.Errorf("the first ConfigMap belongs to %q, the second to %q", first, second)
			}
		})
	}
}

func jobTemplate(sources ...input.ID) corev1.PodTemplateSpec {
	t := template(sources...)
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	return t
}

// TestCronJobAndItsLivingJobs: a Job that was started with the object keeps it,
// one that has ended does not.
func TestCronJobAndItsLivingJobs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	suspended := true
	cj := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", Suspend: &suspended,
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: jobTemplate(cm)}},
	}}
	l.create(cj)
	owner := *metav1.NewControllerRef(cj, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	for name, job := range map[string]struct {
		owners  []metav1.OwnerReference
		sources []input.ID
		ended   bool
	}{
		"living":  {owners: []metav1.OwnerReference{owner}, sources: []input.ID{cm}},
		"ended":   {owners: []metav1.OwnerReference{owner}, sources: []input.ID{cm}, ended: true},
		"without": {owners: []metav1.OwnerReference{owner}},
		"by-hand": {sources: []input.ID{cm}},
	} {
		l.job(name, job.owners, job.sources, job.ended)
	}
	// Jobs cannot be asked for by label: of many only a page at a time is held.
	l.wire.limit = "1"
	if _, err := l.attach(l.request(kube.CronJob(), cm)); err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, request := range l.wire.sent() {
		if request == "LIST jobs" {
			pages++
		}
	}
	if pages != 4 {
		t.Errorf("four Jobs were read in %d pages of one", pages)
	}
	got := strings.Fields(l.owners(cm))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"CronJob/web", "Job/living"}, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// job makes a Job whose pods nobody starts: it is suspended, or has ended.
func (l *lab) job(name string, owners []metav1.OwnerReference, sources []input.ID, ended bool) {
	l.t.Helper()
	suspended, limit := true, int32(0)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Spec:       batchv1.JobSpec{Suspend: &suspended, BackoffLimit: &limit, Template: jobTemplate(sources...)},
	}
	if ended {
		deadline := int64(1)
		job.Spec.ActiveDeadlineSeconds = &deadline
		unsuspended := false
		job.Spec.Suspend = &unsuspended
	}
	l.create(job)
	if !ended {
		return
	}
	labtest.Eventually(l.t, time.Minute, func() (bool, string) {
		err := l.admin.Get(l.t.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, job)
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				return true, ""
			}
		}
		return false, "the Job has not ended: " + job.Status.String() + errText(err)
	})
}
