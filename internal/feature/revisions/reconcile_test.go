package revisions_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// loop runs the reconciler on the real cluster, one call at a time.
type loop struct {
	*lab
	cache      *cluster.Cache
	ownership  *ownership.Watch
	observes   bool
	reconciler *revisions.Reconciler
	fed        chan ownership.ObjectKey
	events     []string
	registry   *prometheus.Registry
	now        time.Time
	heard      func(mirror.Sync)
	ready      func() bool
	writes     func(context.Context, ownership.ObjectKey, string, []metav1.OwnerReference) error
}

// observing makes a loop of a namespace that is only observed.
func observing(l *loop) { l.observes = true }

func newLoop(t *testing.T, change ...func(*loop)) *loop {
	t.Helper()
	l := makeLoop(t)
	for _, f := range change {
		f(l)
	}
	l.start()
	return l
}

// makeLoop makes a loop that does not run yet.
func makeLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{lab: newLab(t), fed: make(chan ownership.ObjectKey, 100), registry: prometheus.NewRegistry(), now: time.Now()}
	l.heard, l.ready = func(mirror.Sync) {}, func() bool { return true }
	l.cache = cluster.NewCache(l.client, cluster.CacheOptions{
		Kinds: kube.Kinds(), Namespaces: []string{l.namespace}, IgnoreNamespaces: true,
		Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
	})
	l.ownership = ownership.New(l.cache, ownership.Options{
		Now: time.Now, Report: func(s mirror.Sync) { l.heard(s) }, Ready: func() bool { return l.ready() },
	})
	l.writes = func(ctx context.Context, o ownership.ObjectKey, uid string, owners []metav1.OwnerReference) error {
		return ownership.AddOwners(ctx, l.client, o, uid, owners)
	}
	l.reconciler = revisions.New(revisions.DefaultOptions(), revisions.Dependencies{
		Cluster: l.ownership, Announcer: l, Metrics: l.registry, Log: logr.Discard(),
		Observes: func(string) bool { return l.observes },
		Stopped:  func(string) (string, bool) { return "", false },
		Now:      func() time.Time { return l.now },
		Owners: func(ctx context.Context, o ownership.ObjectKey, uid string, owners []metav1.OwnerReference) error {
			return l.writes(ctx, o, uid, owners)
		},
	})
	return l
}

func (l *loop) start() {
	l.t.Helper()
	testkit.RunInBackground(l.t, func(ctx context.Context) { l.cache.Run(ctx, kube.Hashers{}) })
	testkit.RunInBackground(l.t, func(ctx context.Context) {
		l.ownership.Feed(ctx, func(key ownership.ObjectKey) {
			select {
			case l.fed <- key:
			case <-ctx.Done():
			}
		})
	})
}

func (l *loop) Announce(e announce.Event) {
	l.events = append(l.events, fmt.Sprintf("%s %t %s", e.Reason, e.Warning, e.Note))
}

// revisioned makes an object with the label.
func (l *loop) revisioned(id input.ID) {
	l.t.Helper()
	l.source(id)
	o := l.get(id)
	before := o.DeepCopyObject().(client.Object)
	o.SetLabels(map[string]string{settings.Revisioned: "true"})
	if err := l.admin.Patch(l.t.Context(), o, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

// until reconciles what the cluster brings until check is content.
func (l *loop) until(check func() bool) {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case key := <-l.fed:
			l.reconcile(key)
			if check() {
				return
			}
		case <-deadline:
			l.t.Fatal("not within a minute")
		}
	}
}

func (l *loop) reconcile(key ownership.ObjectKey) {
	l.t.Helper()
	if _, err := l.reconciler.Reconcile(l.t.Context(), key); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loop) objectKey(id input.ID) ownership.ObjectKey {
	return ownership.ObjectKey{Namespace: l.namespace, Source: id}
}

// TestAdoptsWhatItFinds: objects and revisions that were there before the
// controller, of every kind, and a Secret whose content is never read.
func TestAdoptsWhatItFinds(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm, secret := input.ConfigMap("cm"), input.Secret("secret")
	l.deployment(cm, secret)
	none := int32(0)
	l.create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &none, Selector: selector(), Template: template(cm),
	}})
	l.revisioned(cm)
	l.revisioned(secret)

	l.until(func() bool { return len(strings.Fields(l.owners(cm))) == 2 && l.owners(secret) != "" })
	for _, request := range l.wire.sent() {
		if strings.HasPrefix(request, "GET configmaps") || strings.HasPrefix(request, "GET secrets") {
			t.Errorf("content was read: %s", request)
		}
	}
	for i, accept := range l.wire.accepts {
		if strings.Contains(l.wire.requests[i], "secrets") && !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("%s asks for content: Accept: %s", l.wire.requests[i], accept)
		}
	}
	if n := len(l.metric("lockstep_attached_objects_total")); n != 2 {
		t.Errorf("%d series count attached objects, want one for each kind", n)
	}
}

// TestWithoutRevisionedObjectsNothingIsWatched: a cluster that does not use the
// feature pays for two empty watches.
func TestWithoutRevisionedObjectsNothingIsWatched(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	l.source(input.ConfigMap("plain"))
	l.wire.await(t, "WATCH secrets", nil)
	l.wire.await(t, "WATCH configmaps", nil)
	for _, request := range l.wire.sent() {
		if strings.Contains(request, " replicasets") || strings.Contains(request, " jobs") {
			t.Errorf("revisions are watched: %s", request)
		}
	}
	l.revisioned(input.ConfigMap("first"))
	l.wire.await(t, "WATCH replicasets", nil)
}

// TestUnreferencedIsReportedOnce: after its grace an object that nobody uses is
// reported, never attached; a revision that comes later adopts it.
func TestUnreferencedIsReportedOnce(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm := input.ConfigMap("cm")
	l.revisioned(cm)
	l.until(func() bool { return true })
	if len(l.events) != 0 {
		t.Fatalf("reported within its grace: %v", l.events)
	}
	l.now = l.now.Add(revisions.DefaultOptions().Grace + time.Minute)
	l.reconcile(l.objectKey(cm))
	l.reconcile(l.objectKey(cm))
	want := []string{"Unreferenced true no revision uses it and nothing owns it; delete it if you don't need it"}
	if diff := cmp.Diff(want, l.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := l.unreferenced(); n != 1 || l.owners(cm) != "" {
		t.Errorf("%v objects counted as unreferenced, owners %q", n, l.owners(cm))
	}
	l.deployment(cm)
	l.until(func() bool { return l.owners(cm) != "" })
	if n := l.unreferenced(); n != 0 {
		t.Errorf("%v objects still counted as unreferenced", n)
	}
}

func TestObserveWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLoop(t, observing)
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.revisioned(cm)
	l.until(func() bool { return len(l.events) > 0 })
	if !strings.HasPrefix(l.events[0], "WouldAttach false observe mode: would attach to ReplicaSet/web-") || l.owners(cm) != "" {
		t.Errorf("events %v, owners %q", l.events, l.owners(cm))
	}
	// Nothing wakes the object when the namespace no longer observes.
	if result, err := l.reconciler.Reconcile(t.Context(), l.objectKey(cm)); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("result %v, error %v; want another look in a minute", result, err)
	}
}

// TestNothingIsFedBeforeAllIsKnown: what a namespace asks for is known before the
// first decision on an object in it.
func TestNothingIsFedBeforeAllIsKnown(t *testing.T) {
	t.Parallel()
	l := makeLoop(t)
	asked := atomic.Int32{}
	l.ready = func() bool { return asked.Add(1) > 3 }
	l.revisioned(input.ConfigMap("cm"))
	l.start()
	if <-l.fed; asked.Load() < 4 {
		t.Errorf("fed after %d questions, of which the fourth is the first with the answer yes", asked.Load())
	}
}

// TestRefusedOwnersAreToldOnce: an error is retried, and people hear of it once.
func TestRefusedOwnersAreToldOnce(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.settled()
	l.writes = func(context.Context, ownership.ObjectKey, string, []metav1.OwnerReference) error {
		return errors.New("no")
	}
	l.revisioned(cm)
	<-l.fed
	for range 2 {
		if _, err := l.reconciler.Reconcile(t.Context(), l.objectKey(cm)); err == nil {
			t.Error("the error is not returned, so nobody tries again")
		}
	}
	if len(l.events) != 1 || !strings.Contains(l.events[0], "AttachFailed true could not attach to ReplicaSet/web-") {
		t.Errorf("events %v", l.events)
	}
}

// TestDeniedOwnersAreNotTriedAgainSoon: only an administrator can change what an admission policy denies.
func TestDeniedOwnersAreNotTriedAgainSoon(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.settled()
	l.writes = func(context.Context, ownership.ObjectKey, string, []metav1.OwnerReference) error {
		text := "ValidatingAdmissionPolicy 'lockstep-objects' with binding 'lockstep-objects' denied request: no"
		denial := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "cm", errors.New(text))
		denial.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: text}}
		return denial
	}
	l.revisioned(cm)
	<-l.fed
	for range 2 {
		if result, err := l.reconciler.Reconcile(t.Context(), l.objectKey(cm)); err != nil || result.RequeueAfter != announce.RepeatEvery {
			t.Errorf("tried again after %s, error %v; want %s and no error, which the queue would retry", result.RequeueAfter, err, announce.RepeatEvery)
		}
	}
	if len(l.events) != 1 || !strings.Contains(l.events[0], "denied request: no") {
		t.Errorf("events %v", l.events)
	}
}

// TestKnownRevisionsAreIndexed: as soon as a list of revisions counts as complete,
// their objects have users. Otherwise an object would be reported as unused at a
// start.
func TestKnownRevisionsAreIndexed(t *testing.T) {
	t.Parallel()
	l := makeLoop(t)
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.settled()
	l.revisioned(cm)
	users := make(chan int, 1)
	l.heard = func(s mirror.Sync) {
		if s.Resource == "replicasets in "+l.namespace && s.Synced {
			users <- len(l.ownership.Users(l.objectKey(cm)))
		}
	}
	l.start()
	if n := <-users; n != 1 {
		t.Errorf("%d users are known when the list is complete, want 1", n)
	}
}

// TestBlindWhileRevisionsCannotBeFollowed: what was known before says nothing of
// revisions that were made since, so nothing is reported as unused meanwhile. The
// report comes when they can be followed again.
func TestBlindWhileRevisionsCannotBeFollowed(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm := input.ConfigMap("cm")
	l.revisioned(cm)
	l.until(func() bool { return true })
	l.now = l.now.Add(revisions.DefaultOptions().Grace + time.Minute)
	l.wire.hangUp(http.StatusForbidden)
	labtest.Eventually(t, patience, func() (bool, string) {
		unreadable := l.ownership.UnreadableKinds(l.namespace)
		return len(unreadable) == 4, fmt.Sprint("unreadable for ", unreadable)
	})
	result, err := l.reconciler.Reconcile(t.Context(), l.objectKey(cm))
	if err != nil || result.RequeueAfter != time.Minute || len(l.events) != 0 {
		t.Fatalf("result %v, error %v, events %v", result, err, l.events)
	}
	l.wire.hangUp(0)
	labtest.Eventually(t, patience, func() (bool, string) {
		unreadable := l.ownership.UnreadableKinds(l.namespace)
		return len(unreadable) == 0, fmt.Sprint("unreadable for ", unreadable)
	})
	l.reconcile(l.objectKey(cm))
	if len(l.events) != 1 || !strings.HasPrefix(l.events[0], "Unreferenced") {
		t.Errorf("events %v", l.events)
	}
}

// TestOneBrokenKindHoldsUpNoOther: revisions of one kind cannot be read, for however
// long, and those of the others own what they use.
func TestOneBrokenKindHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	l := makeLoop(t)
	l.wire.broken = "controllerrevisions"
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.settled()
	l.revisioned(cm)
	l.start()
	l.until(func() bool { return l.owners(cm) != "" })
	if unreadable := l.ownership.UnreadableKinds(l.namespace); len(unreadable) != 1 || unreadable[0] != "ControllerRevision" {
		t.Errorf("unreadable for %v, want the broken kind", unreadable)
	}
}

// TestConflictsAreTriedAgain: a write that met another one is no failure to tell
// of, and nothing but ourselves will bring it up again.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	cm := input.ConfigMap("cm")
	l.deployment(cm)
	l.settled()
	l.writes = func(context.Context, ownership.ObjectKey, string, []metav1.OwnerReference) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "cm", errors.New("somebody wrote it"))
	}
	l.revisioned(cm)
	<-l.fed
	result, err := l.reconciler.Reconcile(t.Context(), l.objectKey(cm))
	if err != nil || result.RequeueAfter <= 0 || len(l.events) != 0 {
		t.Errorf("result %v, error %v, events %v", result, err, l.events)
	}
}

// TestEveryReferenceCounts: a registry's Secret is read for the pod, not by it, and
// the pod cannot be made again without.
func TestEveryReferenceCounts(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	secret := input.Secret("registry-3fa9c1d2e4")
	none := int32(0)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &none, Selector: selector(), Template: template()},
	}
	d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret.Name}}
	l.create(d)
	l.revisioned(secret)
	l.until(func() bool { return l.owners(secret) != "" })
	if _, err := l.attach(l.request(kube.Deployment(), secret)); err != nil {
		t.Error(err)
	}
}

// TestARevisionTooLargeToKnow: Lockstep keeps no list of 300 names, so an object that the
// revision may use gets no other owner, and its event says why. A smaller template ends that.
func TestARevisionTooLargeToKnow(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	many := make([]input.ID, 0, 300)
	for i := range cap(many) {
		many = append(many, input.ConfigMap(fmt.Sprintf("cm-%03d", i)))
	}
	l.deployment(many...)
	l.settled()
	l.revisioned(many[0])
	labtest.Eventually(t, patience, func() (bool, string) {
		large := l.ownership.TooLarge(l.namespace)
		return len(large) == 1 && strings.HasPrefix(large[0].Name, "web-"), fmt.Sprint("too large: ", large)
	})
	if users := l.ownership.Users(l.objectKey(many[0])); len(users) != 0 {
		t.Errorf("%d users are kept, want none", len(users))
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		l.reconcile(l.objectKey(many[0]))
		return len(l.events) == 1, fmt.Sprintf("events %q", l.events)
	})
	if !strings.HasPrefix(l.events[0], "TooManySources true not attached, because ReplicaSet/web-") || l.owners(many[0]) != "" {
		t.Errorf("events %q, owners %q", l.events, l.owners(many[0]))
	}
	var d appsv1.Deployment
	if err := l.admin.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "web"}, &d); err != nil {
		t.Fatal(err)
	}
	if err := l.admin.Delete(t.Context(), &d, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		large := l.ownership.TooLarge(l.namespace)
		return len(large) == 0, fmt.Sprint("too large: ", large)
	})
}

// TestAnotherObjectOfThatNameIsLeftAlone: the decision was taken for an object
// that is gone; its successor is decided on by itself.
func TestAnotherObjectOfThatNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	err := ownership.AddOwners(t.Context(), l.client, ownership.ObjectKey{Namespace: l.namespace, Source: cm}, "another", []metav1.OwnerReference{owner})
	if err == nil || !access.IsTransient(err) || l.owners(cm) != "" {
		t.Errorf("error %v, owners %q; want a conflict and no owner", err, l.owners(cm))
	}
}

// unreferenced is what the metric says.
func (l *loop) unreferenced() float64 {
	l.t.Helper()
	return l.metric("lockstep_unreferenced_objects")[0]
}

// metric is the value of every series of one metric.
func (l *loop) metric(name string) []float64 {
	l.t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	var values []float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue())
			}
		}
	}
	if values == nil {
		l.t.Fatalf("there is no metric %s", name)
	}
	return values
}
