package revisions_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// request is a request for the lab's workload.
func (l *lab) request(kind kube.Kind, objects ...input.ID) revisions.Request {
	r := revisions.DefaultRequest()
	r.Kind, r.Workload, r.Objects = kind, types.NamespacedName{Namespace: l.namespace, Name: "web"}, objects
	r.Timeout = time.Minute
	return r
}

func (l *lab) rolloutRequest(objects ...input.ID) revisions.Request {
	return l.request(kube.Rollout(), objects...)
}

// asConfigmapAttacher is the request as the drop-in for configmap-attacher makes it.
func asConfigmapAttacher(r revisions.Request) revisions.Request {
	r.RequireReference, r.AsController, r.WaitForWorkload = false, true, true
	return r
}

func (l *lab) attach(r revisions.Request) ([]revisions.Outcome, error) {
	var outcomes []revisions.Outcome
	a := &revisions.Attacher{Client: l.client, Report: func(o revisions.Outcome) { outcomes = append(outcomes, o) }}
	return outcomes, a.Attach(l.t.Context(), r)
}

// attachBeside attaches while the test goes on.
func (l *lab) attachBeside(r revisions.Request) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := l.attach(r)
		done <- err
	}()
	return done
}

// settled waits until the Deployment's controller has acted.
func (l *lab) settled() {
	l.t.Helper()
	labtest.Eventually(l.t, time.Minute, func() (bool, string) {
		d := &appsv1.Deployment{}
		err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "web"}, d)
		return err == nil && d.Status.ObservedGeneration == d.Generation, fmt.Sprintf("generation %d of the Deployment is not observed, only %d (error %v)", d.Generation, d.Status.ObservedGeneration, err)
	})
}

func TestAttachSendsOneGetOneListAndTwoPatchesPerObject(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := input.ConfigMap("a"), input.Secret("b")
	l.source(a)
	l.source(b)
	l.deployment(a, b)
	l.settled()

	outcomes, err := l.attach(l.request(kube.Deployment(), a, b))
	if err != nil || outcomes[0].Unchanged {
		t.Fatalf("the first run says %+v, error %v", outcomes, err)
	}
	want := []string{"GET deployments/web", "LIST replicasets", "PATCH configmaps/a", "PATCH configmaps/a", "PATCH secrets/b", "PATCH secrets/b"}
	if diff := cmp.Diff(want, l.wire.sent()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if accept := l.wire.accepts[5]; !strings.Contains(accept, "as=PartialObjectMetadata") {
		t.Errorf("the Secret's content was asked for: Accept: %s", accept)
	}

	before := l.get(a).GetResourceVersion() + l.get(b).GetResourceVersion()
	outcomes, err = l.attach(l.request(kube.Deployment(), a, b))
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 2 || !outcomes[0].Unchanged || !outcomes[1].Unchanged {
		t.Errorf("a second run says %+v", outcomes)
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
	for name, change := range map[string]func(revisions.Request) revisions.Request{
		"as a job of our chart": func(r revisions.Request) revisions.Request { return r },
		"as configmap-attacher": asConfigmapAttacher,
		"without any patience": func(r revisions.Request) revisions.Request {
			r.Grace = 0
			return asConfigmapAttacher(r)
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

			request := change(l.rolloutRequest(newer))
			done := l.attachBeside(request)
			l.wire.await(t, "WATCH replicasets", done)
			rollout.act("2", newer)
			rollout.publish("2")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := l.owners(newer); got != "ReplicaSet/web-2" {
				t.Errorf("the new ConfigMap belongs to %q", got)
			}
			want := []string{"GET rollouts/web", "LIST replicasets", "WATCH rollouts", "WATCH replicasets", "PATCH configmaps/newer", "PATCH configmaps/newer"}
			if request.WaitForWorkload {
				want = append(want, "PATCH configmaps/newer") // it reads the owners once more, to know whether the deploy may follow
			}
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

	request := asConfigmapAttacher(l.rolloutRequest(newer))
	request.Grace = request.Timeout
	done := l.attachBeside(request)
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
// long it takes a person to fix the Rollout.
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

	request := asConfigmapAttacher(l.rolloutRequest(newer))
	request.Grace = 0
	before := len(l.wire.sent())
	done := l.attachBeside(request)
	l.wire.awaitAfter(t, before, "WATCH replicasets", done)
	rollout.set(newer, map[string]any{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if first, second := l.owners(older), l.owners(newer); strings.Contains(second, " ") || first == second || !strings.HasPrefix(second, "ReplicaSet/web-") {
		t.Errorf("the first ConfigMap belongs to %q, the second to %q", first, second)
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

	done := l.attachBeside(l.request(kube.Deployment(), cm))
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
	warnings := map[input.ID]string{}
	for _, o := range outcomes {
		warnings[o.Object] = o.Warning
	}
	if !strings.Contains(warnings[injected], "does not reference configmap/injected") || warnings[named] != "" {
		t.Errorf("outcomes are %+v", outcomes)
	}
}

// TestSharedByTwoRevisions: both own it, and what owned and controlled it before still does.
func TestSharedByTwoRevisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(revisions.Request) revisions.Request
		warning string
	}{
		"as a job of our chart": {func(r revisions.Request) revisions.Request { return r }, ""},
		"as configmap-attacher": {asConfigmapAttacher, "owner added in addition to the object's controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			shared, other := input.ConfigMap("shared"), input.ConfigMap("other")
			l.source(other)
			l.source(shared, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: l.get(other).GetUID(), Controller: new(true)})
			rollout := l.slowRollout(shared)
			rollout.act("1", shared)
			rollout.act("2", shared)
			rollout.publish("2")
			outcomes, err := l.attach(c.change(l.rolloutRequest(shared)))
			if err != nil || len(outcomes) != 1 || outcomes[0].Warning != c.warning {
				t.Fatalf("error %v, outcomes %+v, want the warning %q", err, outcomes, c.warning)
			}
			if diff := cmp.Diff(map[string]bool{"other": true, "web-1": false, "web-2": false}, l.controls(shared)); diff != "" {
				t.Errorf("owners, and which is the controller (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewestRevisionIsTheController: a ConfigMap that stays the same over several deploys
// belongs to each revision that uses it. As with configmap-attacher, the newest one is the
// controller, after a rollback too. That is everyday life and not worth a warning: with two
// ConfigMaps, most deploys change only one of them.
func TestNewestRevisionIsTheController(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	shared, injected := input.ConfigMap("shared"), input.ConfigMap("injected")
	l.source(shared)
	l.source(injected)
	rollout := l.slowRollout(shared)
	request := asConfigmapAttacher(l.rolloutRequest(shared, injected))
	request.Grace = 0
	attach := func() map[input.ID]revisions.Outcome {
		t.Helper()
		outcomes, err := l.attach(request)
		if err != nil {
			t.Fatal(err)
		}
		byObject := map[input.ID]revisions.Outcome{}
		for _, o := range outcomes {
			byObject[o.Object] = o
		}
		return byObject
	}
	for i, step := range []struct {
		current string
		want    map[string]bool
	}{
		{"1", map[string]bool{"web-1": true}},
		{"2", map[string]bool{"web-1": false, "web-2": true}},
		{"3", map[string]bool{"web-1": false, "web-2": false, "web-3": true}},
		{"1", map[string]bool{"web-1": true, "web-2": false, "web-3": false}},
	} {
		deployed := input.ConfigMap("of-" + step.current)
		rollout.change(shared, deployed)
		if i < 3 {
			rollout.act(step.current, shared, deployed)
		}
		rollout.publish(step.current)
		outcomes := attach()
		if o := outcomes[shared]; o.Warning != "" || o.Unchanged {
			t.Errorf("deploy %d: the outcome is %+v, want a change without a warning", i+1, o)
		}
		if o := outcomes[injected]; !strings.HasSuffix(o.Warning, "does not reference configmap/injected; attached anyway") {
			t.Errorf("deploy %d: the outcome is %+v, want only the warning that the template doesn't reference it", i+1, o)
		}
		for _, object := range request.Objects {
			if diff := cmp.Diff(step.want, l.controls(object)); diff != "" {
				t.Errorf("deploy %d: owners of %s, and which is the controller (-want +got):\n%s", i+1, object, diff)
			}
		}
		if o := attach()[shared]; o.Warning != "" || !o.Unchanged {
			t.Errorf("deploy %d: a second run says %+v", i+1, o)
		}
	}
}

func TestEveryNameIsTried(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, gone, last := input.ConfigMap("first"), input.Secret("gone"), input.ConfigMap("last")
	l.source(first)
	l.source(last)
	l.deployment(first, gone, last)
	_, err := l.attach(l.request(kube.Deployment(), first, gone, last))
	if err == nil || !strings.Contains(err.Error(), "attach secret/gone in namespace "+l.namespace+": it does not exist") {
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
	elsewhere := l.request(kube.Deployment(), cm)
	elsewhere.Workload.Namespace = "no-such-namespace"
	unserved := l.request(kube.Rollout(), cm)
	pods, err := kube.ParseKind("v1/Pod=spec")
	if err != nil {
		t.Fatal(err)
	}
	for want, request := range map[string]revisions.Request{
		"get deployment/web in namespace " + l.namespace + ": it does not exist": l.request(kube.Deployment(), cm),
		"get rollout/web in namespace " + l.namespace + ": it does not exist":    unserved,
		"get deployment/web: there is no namespace no-such-namespace":            elsewhere,
		"the revisions of kind Pod are not known":                                l.request(pods, cm),
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

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
