package revisions_test

import (
	"context"
	"net/http"
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

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// request is a request for the lab's workload.
func (l *lab) request(kind, group string, objects ...input.Source) revisions.Request {
	r := revisions.DefaultRequest()
	r.Workload, r.Objects = l.key(kind, group), objects
	r.Timeout = time.Minute
	return r
}

func (l *lab) rolloutRequest(objects ...input.Source) revisions.Request {
	return l.request("Rollout", "argoproj.io", objects...)
}

func (l *lab) attach(r revisions.Request) ([]revisions.Outcome, error) {
	var outcomes []revisions.Outcome
	a := &revisions.Attacher{Client: l.client, Report: func(o revisions.Outcome) { outcomes = append(outcomes, o) }}
	return outcomes, a.Attach(l.t.Context(), r)
}

// settled waits until the Deployment's controller has acted.
func (l *lab) settled() {
	l.t.Helper()
	labtest.Eventually(l.t, time.Minute, func() (bool, string) {
		d := &appsv1.Deployment{}
		err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "web"}, d)
		return err == nil && d.Status.ObservedGeneration == d.Generation, "the Deployment is not observed"
	})
}

func TestAttachSendsOneGetOneListAndOnePatchPerObject(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := input.ConfigMap("a"), input.Secret("b")
	l.source(a)
	l.source(b)
	l.deployment(a, b)
	l.settled()

	if _, err := l.attach(l.request("Deployment", "apps", a, b)); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET deployments/web", "LIST replicasets", "PATCH configmaps/a", "PATCH secrets/b"}
	if diff := cmp.Diff(want, l.wire.sent()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if accept := l.wire.accepts[3]; !strings.Contains(accept, "as=PartialObjectMetadata") {
		t.Errorf("the Secret's content was asked for: Accept: %s", accept)
	}

	before := l.get(a).GetResourceVersion() + l.get(b).GetResourceVersion()
	if _, err := l.attach(l.request("Deployment", "apps", a, b)); err != nil {
		t.Fatal(err)
	}
	if after := l.get(a).GetResourceVersion() + l.get(b).GetResourceVersion(); after != before {
		t.Error("a second run changed something")
	}
}

// TestStaleHash is the race of every deploy: the Rollout's controller is slow, and
// the status still shows the ReplicaSet before. The new ConfigMap must never be
// attached to that one; since owners are never taken away, the owners at the end
// show whether it ever was.
func TestStaleHash(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*revisions.Request){
		"as a job of our chart": func(*revisions.Request) {},
		"as configmap-attacher": func(r *revisions.Request) { r.RequireReference, r.AsController = false, true },
		"without any patience": func(r *revisions.Request) {
			r.RequireReference, r.AsController, r.Grace = false, true, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			older, newer := input.ConfigMap("older"), input.ConfigMap("newer")
			l.source(older)
			l.source(newer)
			rollout := l.slowRollout(older)
			rollout.act("1", older)
			rollout.publish("1")
			rollout.change(newer)

			request := l.rolloutRequest(newer)
			change(&request)
			done := make(chan error, 1)
			go func() {
				_, err := l.attach(request)
				done <- err
			}()
			l.wire.await(t, "WATCH replicasets", done)
			rollout.act("2", newer)
			rollout.publish("2")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := l.owners(newer); got != "ReplicaSet/web-2" {
				t.Errorf("the new ConfigMap belongs to %q", got)
			}
			want := []string{"GET rollouts/web", "LIST replicasets", "WATCH rollouts", "WATCH replicasets", "PATCH configmaps/newer"}
			if diff := cmp.Diff(want, l.wire.sent()); diff != "" && request.Grace > 0 {
				t.Errorf("waiting is no polling; requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAppliedAfterTheJob: Argo CD may start the Job before it applies the Rollout.
// Then everything is observed, and still of yesterday.
func TestAppliedAfterTheJob(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	older, newer := input.ConfigMap("older"), input.ConfigMap("newer")
	l.source(newer)
	rollout := l.slowRollout(older)
	rollout.act("1", older)
	rollout.publish("1")

	request := l.rolloutRequest(newer)
	request.RequireReference, request.AsController = false, true
	request.Grace = request.Timeout
	done := make(chan error, 1)
	go func() {
		_, err := l.attach(request)
		done <- err
	}()
	l.wire.await(t, "WATCH replicasets", done)
	rollout.change(newer)
	rollout.act("2", newer)
	rollout.publish("2")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := l.owners(newer); got != "ReplicaSet/web-2" {
		t.Errorf("the new ConfigMap belongs to %q", got)
	}
}

// TestInvalidRollout: Argo calls the version of an invalid Rollout observed, and the
// status still shows the ReplicaSet before. Nothing is attached to that one, however
// long it takes a person to mend the Rollout.
func TestInvalidRollout(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	older, newer := input.ConfigMap("older"), input.ConfigMap("newer")
	l.source(older)
	l.source(newer)
	rollout := l.rollout(older)
	if _, err := l.attach(l.rolloutRequest(older)); err != nil {
		t.Fatal(err)
	}
	rollout.set(newer, map[string]any{"canaryService": "nobody", "stableService": "nobody"})
	rollout.awaitInvalid()

	request := l.rolloutRequest(newer)
	request.RequireReference, request.AsController, request.Grace = false, true, 0
	before := len(l.wire.sent())
	done := make(chan error, 1)
	go func() {
		_, err := l.attach(request)
		done <- err
	}()
	l.wire.awaitAfter(t, before, "WATCH replicasets", done)
	rollout.set(newer, map[string]any{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if first, second := l.owners(older), l.owners(newer); strings.Contains(second, " ") || first == second || !strings.HasPrefix(second, "ReplicaSet/web-") {
		t.Errorf("the first ConfigMap belongs to %q, the second to %q", first, second)
	}
}

func TestTimeoutSaysWhatWasMissing(t *testing.T) {
	t.Parallel()
	cm := input.ConfigMap("cm")
	cases := map[string]struct {
		reason string
		play   func(*slowRollout)
		want   string
	}{
		"generation": {
			reason: "the controller does not run",
			play:   func(*slowRollout) {},
			want:   "has not acted on its newest version",
		},
		"revision": {
			reason: "the hash is published before the ReplicaSet exists",
			play:   func(r *slowRollout) { r.publish("1") },
			want:   "has no revision",
		},
		"validity": {
			reason: "the status is that of the version before, whatever generation it says",
			play: func(r *slowRollout) {
				r.act("1", cm)
				now := time.Now().UTC().Format(time.RFC3339)
				r.publish("1", map[string]any{
					"type": "InvalidSpec", "status": "True", "reason": "InvalidSpec", "message": "quotes the specification",
					"lastTransitionTime": now, "lastUpdateTime": now,
				})
			},
			want: "the controller of Rollout web has not acted on its newest version (it is invalid: see its condition InvalidSpec)",
		},
		"another's revision": {
			reason: "a ReplicaSet of that name which somebody else made is none of ours",
			play: func(r *slowRollout) {
				r.publish("1")
				none, labels := int32(0), map[string]string{"app": "web", "rollouts-pod-template-hash": "1"}
				t := template(cm)
				t.Labels = labels
				somebody := *metav1.NewControllerRef(r.get(cm), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
				r.create(&appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: labels, OwnerReferences: []metav1.OwnerReference{somebody}},
					Spec:       appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: t},
				})
			},
			want: "has no revision",
		},
		"reference": {
			reason: "the name in the Job is not the one in the template",
			play: func(r *slowRollout) {
				r.act("1", input.ConfigMap("other"))
				r.publish("1")
			},
			want: "the pod template of ReplicaSet/web-1, the newest revision of Rollout web, does not reference configmap/cm",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.source(cm)
			c.play(l.slowRollout(cm))
			request := l.rolloutRequest(cm)
			request.Timeout = 20 * time.Second
			_, err := l.attach(request)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "gave up after "+request.Timeout.String()) {
				t.Errorf("%s: error is %v, want %q", c.reason, err, c.want)
			}
			if got := l.owners(cm); got != "" {
				t.Errorf("%s: attached to %s", c.reason, got)
			}
		})
	}
}

// TestTimeoutAlsoSaysWhatWentWrong: when the revision was missing and watching for
// it failed, both are said.
func TestTimeoutAlsoSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	l.slowRollout(cm)
	l.wire.deaf = http.StatusServiceUnavailable
	request := l.rolloutRequest(cm)
	request.Timeout = 20 * time.Second
	_, err := l.attach(request)
	for _, want := range []string{"gave up after " + request.Timeout.String(), "has not acted on its newest version", "watch "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestIdleWorkload: an API server that was restarted does not know the version of
// a workload that was idle since; from then on a list tells where to continue.
func TestIdleWorkload(t *testing.T) {
	t.Parallel()
	cluster := labtest.Private(t, labtest.Options{})
	l := newLabOn(t, cluster)
	cm := input.ConfigMap("cm")
	l.source(cm)
	paused := true
	l.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Paused: paused, Selector: selector(), Template: template(cm),
	}})
	l.settled()
	l.source(input.ConfigMap("written-since"))
	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	go func() {
		_, err := l.attach(l.request("Deployment", "apps", cm))
		done <- err
	}()
	l.wire.await(t, "LIST deployments", done)
	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":false}}`))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "web"}}
	if err := l.admin.Patch(t.Context(), d, resume); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := l.owners(cm); !strings.HasPrefix(got, "ReplicaSet/web-") {
		t.Errorf("attached to %q", got)
	}
	lists := 0
	for _, request := range l.wire.sent() {
		if request == "LIST deployments" || request == "GET deployments/web" {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("the workload was read %d times, want once by name and once by list: %q", lists, l.wire.sent())
	}
}

func TestUnreferencedIsAttachedWithAWarningWhenAskedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	injected, named := input.ConfigMap("injected"), input.ConfigMap("named")
	l.source(injected)
	l.source(named)
	rollout := l.slowRollout(named)
	rollout.act("1", named)
	rollout.publish("1")
	request := l.rolloutRequest(injected, named)
	request.RequireReference, request.Grace = false, 50*time.Millisecond
	outcomes, err := l.attach(request)
	if err != nil {
		t.Fatal(err)
	}
	if l.owners(injected) != "ReplicaSet/web-1" || l.owners(named) != "ReplicaSet/web-1" {
		t.Errorf("owners are %q and %q", l.owners(injected), l.owners(named))
	}
	warnings := map[input.Source]string{}
	for _, o := range outcomes {
		warnings[o.Object] = o.Warning
	}
	if !strings.Contains(warnings[injected], "does not reference configmap/injected") || warnings[named] != "" {
		t.Errorf("outcomes are %+v", outcomes)
	}
}

// TestSharedByTwoRevisions: both own it, and what owned it before still does.
func TestSharedByTwoRevisions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	shared, other := input.ConfigMap("shared"), input.ConfigMap("other")
	l.source(other)
	yes := true
	controller := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: l.get(other).GetUID(), Controller: &yes}
	l.source(shared, controller)
	rollout := l.slowRollout(shared)
	rollout.act("1", shared)
	rollout.act("2", shared)
	rollout.publish("2")
	if _, err := l.attach(l.rolloutRequest(shared)); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(l.owners(shared))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ConfigMap/other", "ReplicaSet/web-1", "ReplicaSet/web-2"}, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if c := metav1.GetControllerOf(l.get(shared)); c == nil || c.Name != "other" {
		t.Errorf("the controller is %v", c)
	}
}

func TestEveryNameIsTried(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, gone, last := input.ConfigMap("first"), input.Secret("gone"), input.ConfigMap("last")
	l.source(first)
	l.source(last)
	l.deployment(first, gone, last)
	_, err := l.attach(l.request("Deployment", "apps", first, gone, last))
	if err == nil || !strings.Contains(err.Error(), "attach secret/gone: there is none in namespace "+l.namespace) {
		t.Errorf("error is %v", err)
	}
	if l.owners(first) == "" || l.owners(last) == "" {
		t.Error("the others were not attached")
	}
}

func TestUnknownWorkload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	elsewhere := l.request("Deployment", "apps", cm)
	elsewhere.Workload.Namespace = "no-such-namespace"
	unserved := l.request("Rollout", "argoproj.io", cm)
	for want, request := range map[string]revisions.Request{
		"get Deployment web: there is none in namespace " + l.namespace: l.request("Deployment", "apps", cm),
		"get Rollout web: there is none in namespace " + l.namespace:    unserved,
		"get Deployment web: there is no namespace no-such-namespace":   elsewhere,
		"the revisions of kind Pod are not known":                       l.request("Pod", "", cm),
	} {
		if _, err := l.attach(request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestPassingErrorsAreRetried: the answers are those of a busy API server, the
// rest is real.
func TestPassingErrorsAreRetried(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	rollout := l.slowRollout(cm)
	rollout.act("1", cm)
	rollout.publish("1")
	l.wire.refusals = []int{http.StatusConflict, http.StatusServiceUnavailable, http.StatusInternalServerError}
	if _, err := l.attach(l.rolloutRequest(cm)); err != nil {
		t.Fatal(err)
	}
	if got := l.owners(cm); got != "ReplicaSet/web-1" {
		t.Errorf("attached to %q", got)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	l.slowRollout(cm)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		a := &revisions.Attacher{Client: l.client, Report: func(revisions.Outcome) {}}
		done <- a.Attach(ctx, l.rolloutRequest(cm))
	}()
	l.wire.await(t, "WATCH replicasets", done)
	cancel()
	if err := <-done; err == nil {
		t.Error("no error although nothing was attached")
	}
}

// TestEveryKind: the revision of each kind, made by the real controllers.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	cm := input.ConfigMap("cm")
	none := int32(0)
	suspended := true
	cases := map[string]struct {
		group  string
		object client.Object
		owner  string
	}{
		"StatefulSet": {group: "apps", owner: "ControllerRevision/web-", object: &appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: &none, Selector: selector(), Template: template(cm)},
		}},
		"DaemonSet": {group: "apps", owner: "ControllerRevision/web-", object: &appsv1.DaemonSet{
			Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template(cm)},
		}},
		"Deployment": {group: "apps", owner: "ReplicaSet/web-", object: &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: selector(), Template: template(cm)},
		}},
		"CronJob": {group: "batch", owner: "CronJob/web", object: &batchv1.CronJob{
			Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: jobTemplate(cm)},
			}},
		}},
	}
	for kind, c := range cases {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.source(cm)
			c.object.SetName("web")
			l.create(c.object)
			if _, err := l.attach(l.request(kind, c.group, cm)); err != nil {
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
			if _, err := l.attach(l.request("DaemonSet", "apps", older)); err != nil {
				t.Fatal(err)
			}
			change := ds.DeepCopy()
			change.Spec.Template = template(newer)
			if err := l.admin.Patch(t.Context(), change, client.MergeFrom(ds)); err != nil {
				t.Fatal(err)
			}
			request := l.request("DaemonSet", "apps", newer)
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

func jobTemplate(sources ...input.Source) corev1.PodTemplateSpec {
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
		sources []input.Source
		ended   bool
	}{
		"living":  {owners: []metav1.OwnerReference{owner}, sources: []input.Source{cm}},
		"ended":   {owners: []metav1.OwnerReference{owner}, sources: []input.Source{cm}, ended: true},
		"without": {owners: []metav1.OwnerReference{owner}},
		"by-hand": {sources: []input.Source{cm}},
	} {
		l.job(name, job.owners, job.sources, job.ended)
	}
	// Jobs cannot be asked for by label: of many only a page at a time is held.
	l.wire.limit = "1"
	if _, err := l.attach(l.request("CronJob", "batch", cm)); err != nil {
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
func (l *lab) job(name string, owners []metav1.OwnerReference, sources []input.Source, ended bool) {
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

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
