package reloader

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// scene is a namespace whose workloads follow ConfigMap app and Secret db.
type scene struct {
	*Reloader
	// refuse, unless it is nil, answers a request instead of the API server: "patch web".
	refuse func(request string) error
	// class reads the annotations of any SecretProviderClass.
	class func() (map[string]string, error)
	// patched, unless it is nil, is called with the context of a patch that was written.
	patched func(context.Context) error
	// told are the reasons of events, and woken the keys that the loop is to look at.
	told  []string
	woken []kube.Key

	writing sync.Mutex
	// done are the requests that write and were accepted.
	done []string
}

func newScene(strategy Strategy, objects ...client.Object) *scene {
	s := &scene{}
	attempt := func(request string, do func() error) error {
		if s.refuse != nil {
			if err := s.refuse(request); err != nil {
				return err
			}
		}
		err := do()
		if err == nil && !strings.HasPrefix(request, "list ") {
			s.writing.Lock()
			defer s.writing.Unlock()
			s.done = append(s.done, request)
		}
		return err
	}
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return attempt("patch "+o.GetName(), func() error {
				err := c.Patch(ctx, o, p, options...)
				if err == nil && s.patched != nil {
					err = s.patched(ctx)
				}
				return err
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return attempt("create "+o.GetName(), func() error { return c.Create(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return attempt("delete "+o.GetName(), func() error { return c.Delete(ctx, o, options...) })
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if s.class == nil || o.GetObjectKind().GroupVersionKind() != Class() {
				return c.Get(ctx, key, o, options...)
			}
			annotations, err := s.class()
			o.SetAnnotations(annotations)
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*appsv1.StatefulSetList); ok {
				return attempt("list statefulsets", func() error { return c.List(ctx, list, options...) })
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	s.Reloader = New(
		Options{Words: stakater.Words{Keys: stakater.DefaultKeys()}, Strategy: strategy, MaxDelay: time.Minute},
		Dependencies{
			Client: c, Tell: func(e Event) { s.told = append(s.told, e.Reason+" "+e.About.Name) }, Report: func(mirror.Sync) {},
			Metrics: NewMetrics(prometheus.NewRegistry(), false), Log: logr.Discard(), Now: func() time.Time { return start.Add(time.Hour) },
		},
	)
	s.add = func(k kube.Key) { s.woken = append(s.woken, k) }
	return s
}

// pass plays one pass, and returns the writes of it and whether another one follows.
func (s *scene) pass(t *testing.T) (writes []string, again bool) {
	t.Helper()
	s.done = nil
	result, err := s.Reconcile(t.Context(), inNamespace("shop"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.done)
	return s.done, result.RequeueAfter > 0
}

// owed are the workloads that lack ConfigMap app, by the record.
func (s *scene) owed() []string {
	e, _ := s.record.entry("shop", id{stakater.ConfigMap, "app"})
	return e.owed
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
		Annotations: map[string]string{"reloader.stakater.com/auto": "true"},
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Template: *follower().Template}}
}

func statefulSet(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: named(name), Spec: appsv1.StatefulSetSpec{Template: *follower().Template}}
}

// both puts a change of ConfigMap app and one of Secret db before the passes. A template has room for
// one of them in the annotation.
func (s *scene) both() {
	s.pending.put("shop", of())
	s.pending.put("shop", of(func(c *change) { c.Source = stakater.Source{Type: stakater.Secret, Name: "db"} }))
}

// TestRefused: a workload that can't be written holds up no other, is tried again without end, and
// what the others have isn't repeated.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newScene(Annotations, deployment("api"), deployment("web"), statefulSet("db"))
	s.both()
	s.refuse = func(request string) error {
		if request == "patch api" {
			return errors.New("the policy refuses it")
		}
		return nil
	}
	writes, again := s.pass(t)
	if diff := cmp.Diff([]string{"patch db", "patch web"}, writes); diff != "" || !again {
		t.Errorf("another pass follows: %t; writes (-want +got)\n%s", again, diff)
	}
	for range 20 {
		if writes, again = s.pass(t); len(writes) > 0 || !again {
			t.Fatalf("another pass follows: %t; it repeats %q", again, writes)
		}
	}
	if diff := cmp.Diff([]string{"Deployment/api"}, s.owed()); diff != "" {
		t.Errorf("owed (-want +got)\n%s", diff)
	}
	s.refuse = nil
	writes, again = s.pass(t)
	if diff := cmp.Diff([]string{"patch api"}, writes); diff != "" || again || s.pending.size() > 0 || len(s.owed()) > 0 {
		t.Errorf("another pass follows: %t; %d changes wait; writes (-want +got)\n%s", again, s.pending.size(), diff)
	}
}

// TestListFails: a list that fails isn't an empty one. The changes wait for it, and the other kinds
// don't.
func TestListFails(t *testing.T) {
	t.Parallel()
	s := newScene(Annotations, deployment("web"), statefulSet("db"))
	s.both()
	s.refuse = func(request string) error {
		if request == "list statefulsets" {
			return errors.New("timeout")
		}
		return nil
	}
	writes, again := s.pass(t)
	if diff := cmp.Diff([]string{"patch web"}, writes); diff != "" || !again || s.pending.size() != 2 {
		t.Errorf("another pass follows: %t; %d changes wait; writes (-want +got)\n%s", again, s.pending.size(), diff)
	}
	if diff := cmp.Diff([]string{"StatefulSet/*"}, s.owed()); diff != "" {
		t.Errorf("owed (-want +got)\n%s", diff)
	}
	s.refuse = nil
	writes, again = s.pass(t)
	if diff := cmp.Diff([]string{"patch db"}, writes); diff != "" || again || s.pending.size() > 0 {
		t.Errorf("another pass follows: %t; %d changes wait; writes (-want +got)\n%s", again, s.pending.size(), diff)
	}
}

// TestClassThatCannotBeRead: it may be ignored, so its change waits, and the others don't. One that doesn't exist has no
// annotations.
func TestClassThatCannotBeRead(t *testing.T) {
	t.Parallel()
	ignored := func() (map[string]string, error) {
		return map[string]string{"reloader.stakater.com/ignore": "true"}, nil
	}
	fails := func(err error) func() (map[string]string, error) {
		return func() (map[string]string, error) { return nil, err }
	}
	resource := schema.GroupResource{Group: "secrets-store.csi.x-k8s.io", Resource: "secretproviderclasses"}
	for name, tc := range map[string]struct {
		reason string
		read   func() (map[string]string, error)
		waits  bool
		// class is how often a workload is written for it once it can be read.
		class int
	}{
		"Unavailable": {"it is ignored, which a failed read doesn't show", fails(apierrors.NewServiceUnavailable("the API server restarts")), true, 0},
		"Forbidden":   {"neither does a missing permission", fails(apierrors.NewForbidden(resource, "vault", errors.New("no"))), true, 0},
		"NotFound":    {"it was deleted, so it isn't ignored", fails(apierrors.NewNotFound(resource, "vault")), false, 1},
		"Ignored":     {"it is read", ignored, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mounts := deployment("vaulted")
			mounts.Spec.Template.Spec = corev1.PodSpec{Volumes: []corev1.Volume{{Name: "vault", VolumeSource: corev1.VolumeSource{
				CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"}},
			}}}, Containers: []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "vault"}}}}}
			s := newScene(Annotations, deployment("web"), mounts)
			s.pending.put("shop", of())
			s.pending.put("shop", of(func(c *change) { c.Source = stakater.Source{Type: stakater.SecretProviderClass, Name: "vault"} }))
			s.class = tc.read
			want := []string{"patch web"}
			if tc.class > 0 {
				want = []string{"patch vaulted", "patch web"}
			}
			writes, again := s.pass(t)
			if diff := cmp.Diff(want, writes); diff != "" || again != tc.waits {
				t.Errorf("%s: another pass follows: %t; writes (-want +got)\n%s", tc.reason, again, diff)
			}
			e, _ := s.record.entry("shop", id{stakater.SecretProviderClass, "vault"})
			if owed := len(e.owed) > 0; owed != tc.waits {
				t.Errorf("%s: on record are %q", tc.reason, e.owed)
			}
			s.class = ignored
			if writes, again = s.pass(t); len(writes) > 0 || again || s.pending.size() > 0 {
				t.Errorf("%s: once it can be read: another pass follows: %t; %d changes wait; writes %q", tc.reason, again, s.pending.size(), writes)
			}
		})
	}
}

// TestConflict: another writer who is faster isn't a failure, unless it is faster again and again.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := newScene(EnvVars, deployment("web"))
	s.both()
	left := 1
	s.refuse = func(request string) error {
		if left == 0 || request != "patch web" {
			return nil
		}
		left--
		return apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("it was changed"))
	}
	writes, again := s.pass(t)
	if diff := cmp.Diff([]string{"patch web"}, writes); diff != "" || again {
		t.Errorf("another pass follows: %t; writes (-want +got)\n%s", again, diff)
	}
	if diff := cmp.Diff([]string{"Reloaded web", "Reloaded web"}, s.told); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	left, s.told = tries, nil
	s.pending.put("shop", of(func(c *change) { c.hash, c.before = oldHash, newHash }))
	if writes, again = s.pass(t); len(writes) > 0 || !again || s.pending.size() != 1 {
		t.Errorf("another pass follows: %t; %d changes wait; writes %q", again, s.pending.size(), writes)
	}
	if writes, _ = s.pass(t); len(writes) != 1 {
		t.Errorf("after the conflicts it is written %d times", len(writes))
	}
}

// TestEndDuringWrite: a process that ends while a patch is under way puts it on record. Otherwise
// the next one can't know of a Secret that was deleted meanwhile.
func TestEndDuringWrite(t *testing.T) {
	t.Parallel()
	s := newScene(Annotations, deployment("web"))
	s.pending.put("shop", of(func(c *change) { c.Source = stakater.Source{Type: stakater.Secret, Name: "db"} }))
	ctx, end := context.WithCancel(t.Context())
	s.patched = func(ctx context.Context) error {
		end()
		return context.Cause(ctx)
	}
	if _, err := s.Reconcile(ctx, inNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if _, known := s.record.entry("shop", id{stakater.Secret, "db"}); !known {
		t.Error("the patch was written, and isn't on record")
	}
	s.both()
	s.done = nil
	if _, err := s.Reconcile(ctx, inNamespace("shop")); err != nil || len(s.done) > 0 {
		t.Errorf("after the end it writes %q (%v)", s.done, err)
	}
}

// TestReplacement: a Job isn't deleted unless it can be created again.
func TestReplacement(t *testing.T) {
	t.Parallel()
	job := someJob()
	s := newScene(EnvVars, job)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	s.refuse = func(request string) error {
		if strings.HasPrefix(request, "create ") {
			return errors.New("the quota is used up")
		}
		return nil
	}
	err := s.replacementOf(job, []due{{change: of()}}).do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the quota is used up") || len(s.done) > 0 {
		t.Errorf("error %v; writes %q", err, s.done)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(job), &batchv1.Job{}); err != nil {
		t.Errorf("the Job is lost: %v", err)
	}
}

// TestReplacedByAnother: a writer that keeps objects in place may be faster to create the Job again.
func TestReplacedByAnother(t *testing.T) {
	t.Parallel()
	job := someJob()
	job.Finalizers = nil
	s := newScene(EnvVars, job)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	theirs := someJob()
	theirs.UID, theirs.ResourceVersion = "theirs", ""
	faster := false
	s.refuse = func(request string) error {
		if request != "create "+job.Name || faster {
			return nil
		}
		faster = true
		if err := s.Client.Create(t.Context(), theirs); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, job.Name)
	}
	if err := s.replacementOf(job, []due{{change: of()}}).do(t.Context()); err != nil || !faster {
		t.Errorf("another writer was faster: %t; error %v", faster, err)
	}
}

// TestPaused: a Deployment that a reload has paused is resumed when its time has come, whichever
// process paused it, and one that somebody has resumed by hand is paused anew by the next reload.
func TestPaused(t *testing.T) {
	t.Parallel()
	pausedAt := func(name, at string, paused bool) *appsv1.Deployment {
		o := deployment(name)
		o.Annotations["deployment.reloader.stakater.com/pause-period"] = "5m"
		if at != "" {
			o.Annotations["deployment.reloader.stakater.com/paused-at"] = at
		}
		o.Spec.Paused = paused
		return o
	}
	s := newScene(EnvVars,
		pausedAt("over", "2026-11-01T12:54:00Z", true), pausedAt("later", "2026-11-01T12:57:00Z", true),
		pausedAt("theirs", "", true), pausedAt("resumed", "2026-11-01T12:59:00Z", false))
	s.survey(t.Context(), false)
	slices.SortFunc(s.woken, func(a, b kube.Key) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff([]kube.Key{paused("shop", "later"), paused("shop", "over")}, s.woken); diff != "" {
		t.Errorf("after a start, to be resumed (-want +got)\n%s", diff)
	}
	s.woken = nil
	s.pending.put("shop", of())
	s.pass(t)
	if !slices.Contains(s.woken, paused("shop", "resumed")) {
		t.Errorf("a second pause has no end: woken %v", s.woken)
	}
	for name, want := range map[string]struct {
		paused bool
		wait   time.Duration
	}{"over": {false, 0}, "later": {true, 2 * time.Minute}, "theirs": {true, 0}, "resumed": {true, 5 * time.Minute}, "gone": {}} {
		result, err := s.Reconcile(t.Context(), paused("shop", name))
		if err != nil || result.RequeueAfter != want.wait {
			t.Errorf("%s: it waits for %s, want %s; error %v", name, result.RequeueAfter, want.wait, err)
		}
		o := &appsv1.Deployment{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if _, marked := o.Annotations["deployment.reloader.stakater.com/paused-at"]; o.Spec.Paused != want.paused || name == "over" && marked {
			t.Errorf("%s: paused %t, want %t", name, o.Spec.Paused, want.paused)
		}
	}
}
