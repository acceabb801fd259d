package ui

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestMain takes out the library's handlers of errors: they sleep by a time of the last error that
// all tests share, and some tests have a clock of their own.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(labtest.RunTests(m))
}

// oneAnswer is a cluster that answers every list and watch with the same error.
type oneAnswer struct {
	client.WithWatch

	answer func(context.Context) error
}

func (c oneAnswer) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return c.answer(ctx)
}

func (c oneAnswer) Watch(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	return nil, c.answer(ctx)
}

// browser takes whatever is sent to it.
type browser struct{ *httptest.ResponseRecorder }

func (browser) SetWriteDeadline(time.Time) error { return nil }

// startLive opens the page of a workload on a cluster, and tells when its connection has ended.
func startLive(ctx context.Context, cluster client.WithWatch) (ended *atomic.Bool) {
	s := standIn(ask.Status{})
	s.board.watches.client = cluster
	ended = &atomic.Bool{}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live", http.NoBody)
	go func() {
		defer ended.Store(true)
		to := browser{httptest.NewRecorder()}
		(&live{server: s, at: &url.URL{Path: "/workload/shop/deployment/web"}, to: to, flush: http.NewResponseController(to)}).run(r)
	}()
	return ended
}

// TestLiveEndsLast: a connection ends after its watches.
func TestLiveEndsLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		var running atomic.Int32
		last := make(chan struct{})
		ended := startLive(ctx, oneAnswer{answer: func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			<-last
			return ctx.Err()
		}})
		synctest.Wait()
		if got := running.Load(); got != 4 {
			t.Errorf("%d watches are open, want those of ConfigMaps, Secrets, the namespace and the events", got)
		}
		leave()
		synctest.Wait()
		if ended.Load() {
			t.Error("the connection ends before its watches")
		}
		close(last)
		synctest.Wait()
		if !ended.Load() || running.Load() != 0 {
			t.Errorf("ended is %t, and %d watches are left", ended.Load(), running.Load())
		}
	})
}

// TestLiveWithoutPermission: the page stays open, and the cluster isn't asked all the time.
func TestLiveWithoutPermission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		var asked atomic.Int32
		ended := startLive(ctx, oneAnswer{answer: func(context.Context) error {
			asked.Add(1)
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
		}})
		time.Sleep(10 * time.Minute) // of the bubble
		const watches, eachMinute = 4, 5
		if got := asked.Load(); got == 0 || got > watches*eachMinute*10 {
			t.Errorf("in ten minutes it asked %d times", got)
		}
		if ended.Load() {
			t.Error("the page isn't live any more")
		}
		leave()
		synctest.Wait()
		if !ended.Load() {
			t.Error("the connection doesn't end")
		}
	})
}

// TestLiveFollowsSources: while the page of a workload is open, a change of a ConfigMap or Secret
// that it uses, or of its namespace, makes the page again. Nothing else changes.
func TestLiveFollowsSources(t *testing.T) {
	t.Parallel()
	control := labtest.Shared(t)
	namespace := labtest.Namespace(t, control)
	config, err := clientcmd.BuildConfigFromFlags("", control.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := access.NewClient(t.Context(), config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
	}}}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	web := &appsv1.Deployment{ObjectMeta: in("web"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: metav1.SetAsLabelSelector(template.Labels), Template: template,
	}}
	web.Annotations = map[string]string{settings.Reload: "auto"}
	app, db := &corev1.ConfigMap{ObjectMeta: in("app")}, &corev1.Secret{ObjectMeta: in("db")}
	for _, o := range []client.Object{app, db, web} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := access.InstallationKey(t.Context(), c, namespace, ask.DefaultKey); err != nil {
		t.Fatal(err)
	}
	// The Deployment controller's write is a change too.
	labtest.Eventually(t, patient, func() (bool, string) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(web), web)
		return web.Status.ObservedGeneration > 0, fmt.Sprint(web.Status, err)
	})
	s := New(Options{
		Reader: &ask.Reader{Client: c, Kinds: kube.Kinds(), Own: ask.Own{Namespace: namespace}, Now: time.Now},
		Can:    func(context.Context, []access.Permission) ([]access.Permission, error) { return nil, nil },
	})
	s.again = time.Hour
	o := open(t, s)
	within, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	events := bufio.NewReader(o.get(t, "/live?at=/workload/"+namespace+"/deployment/web", func(r *http.Request) { *r = *r.WithContext(within) }).Body)
	before := nextEvent(t, events).data
	for _, change := range []struct {
		object    client.Object
		patch, id string
	}{
		{app, `{"data":{"key":"2"}}`, "input-configmap/app"},
		{db, `{"stringData":{"key":"2"}}`, "input-secret/db"},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, `{"metadata":{"annotations":{"` + settings.Hold + `":"a migration"}}}`, "settings"},
	} {
		if err := c.Patch(t.Context(), change.object, client.RawPatch(types.MergePatchType, []byte(change.patch))); err != nil {
			t.Fatal(err)
		}
		was, now := partOf(before, change.id), ""
		for now == "" || now == was {
			before = nextEvent(t, events).data
			now = partOf(before, change.id)
		}
	}
	told := &corev1.Event{ObjectMeta: in("told"), Reason: "Told", Message: "by another", InvolvedObject: corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "web", UID: web.UID,
	}}
	if err := c.Create(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(before, "by another") {
		before = nextEvent(t, events).data
	}
}

// partOf is what a page says of an input or in a section.
func partOf(html, id string) string {
	_, part, _ := strings.Cut(html, ` id="`+id+`"`)
	part, _, _ = strings.Cut(part, "<section")
	part, _, _ = strings.Cut(part, "</li>")
	return part
}
