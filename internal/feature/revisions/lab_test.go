package revisions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// patience bounds every wait for an expected event. A passing test never waits that long.
const patience = 5 * time.Minute

// lab is one test's part of the shared control plane.
type lab struct {
	t         *testing.T
	namespace string
	// admin does what other people do.
	admin client.Client
	// wire is what the tested code sends; client sends through it.
	wire   *wire
	client client.WithWatch
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := newLabOn(t, labtest.Shared(t, labtest.ArgoRollouts))
	// The API server lists a new kind a moment after it accepts it.
	labtest.Eventually(t, patience, func() (bool, string) {
		_, err := l.admin.RESTMapper().RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
		return err == nil, fmt.Sprint(err)
	})
	return l
}

func newLabOn(t *testing.T, cluster *labtest.Cluster) *lab {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, namespace: labtest.Namespace(t, cluster), admin: admin, wire: &wire{changed: make(chan struct{}, 1)}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.wire.next = next
		return l.wire
	})
	if l.client, err = access.NewDirectClient(config, kube.Kinds()); err != nil {
		t.Fatal(err)
	}
	return l
}

// wire records requests on their way to the real API server, and can answer some
// of them itself, as a busy server would.
type wire struct {
	next http.RoundTripper
	// changed has a value after a request, for one reader.
	changed chan struct{}

	mu       sync.Mutex
	requests []string
	accepts  []string
	// refusals are answers to patches, deaf is one to every watch.
	refusals []int
	deaf     int
	// broken is a resource that cannot be read.
	broken string
	// limit makes pages that small.
	limit string
	// watches are those that were opened.
	watches []io.Closer
	// before, if set, is called with each request before it is sent.
	before func(request string)
}

// hangUp ends every watch and answers new ones with a status; zero lets them pass.
func (w *wire) hangUp(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = status
	for _, open := range w.watches {
		_ = open.Close()
	}
	w.watches = nil
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.before(describe(r))
	}
	w.mu.Lock()
	w.requests = append(w.requests, describe(r))
	w.accepts = append(w.accepts, r.Header.Get("Accept"))
	refusal := 0
	if r.Method == http.MethodPatch && len(w.refusals) > 0 {
		refusal, w.refusals = w.refusals[0], w.refusals[1:]
	}
	if r.URL.Query().Has("watch") && w.deaf != 0 {
		refusal = w.deaf
	}
	if w.broken != "" && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+w.broken) {
		refusal = http.StatusInternalServerError
	}
	if query := r.URL.Query(); w.limit != "" && query.Has("limit") {
		r = r.Clone(r.Context())
		query.Set("limit", w.limit)
		r.URL.RawQuery = query.Encode()
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default: // the test has one to read, and then reads all requests
	}
	if refusal != 0 {
		return &http.Response{StatusCode: refusal, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	response, err := w.next.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watches = append(w.watches, response.Body)
	}
	return response, err
}

// describe is a request as people would write it: "LIST replicasets".
func describe(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := 0
	for i, part := range parts {
		if part == "namespaces" {
			at = i + 2
		}
	}
	verb := r.Method
	if verb == http.MethodGet && len(parts) == at+1 {
		verb = "LIST"
	}
	if r.URL.Query().Has("watch") {
		verb = "WATCH"
	}
	return verb + " " + strings.Join(parts[at:], "/")
}

func (w *wire) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.requests...)
}

// await waits until a request was sent; it must be before ended says that the
// tested code has returned.
func (w *wire) await(t *testing.T, request string, ended <-chan error) {
	t.Helper()
	w.awaitAfter(t, 0, request, ended)
}

// awaitAfter does not count the first requests.
func (w *wire) awaitAfter(t *testing.T, first int, request string, ended <-chan error) {
	t.Helper()
	for {
		if slices.Contains(w.sent()[first:], request) {
			return
		}
		select {
		case <-w.changed:
		case err := <-ended:
			t.Fatalf("ended with error %v before it sent %s", err, request)
		case <-time.After(patience):
			t.Fatalf("not sent within %s: %s; sent were %q", patience, request, w.sent())
		}
	}
}

// source makes a ConfigMap or Secret.
func (l *lab) source(id input.ID, owners ...metav1.OwnerReference) {
	l.t.Helper()
	meta := metav1.ObjectMeta{Namespace: l.namespace, Name: id.Name, OwnerReferences: owners}
	var o client.Object = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "hunter2"}}
	if id.Kind == input.KindSecret {
		o = &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"k": "hunter2"}}
	}
	l.create(o)
}

func (l *lab) create(o client.Object) {
	l.t.Helper()
	o.SetNamespace(l.namespace)
	if err := l.admin.Create(l.t.Context(), o); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) get(id input.ID) client.Object {
	l.t.Helper()
	var o client.Object = &corev1.ConfigMap{}
	if id.Kind == input.KindSecret {
		o = &corev1.Secret{}
	}
	if err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: id.Name}, o); err != nil {
		l.t.Fatal(err)
	}
	return o
}

// owners are the names of an object's owners.
func (l *lab) owners(id input.ID) string {
	l.t.Helper()
	var names []string
	for _, o := range l.get(id).GetOwnerReferences() {
		names = append(names, o.Kind+"/"+o.Name)
	}
	return strings.Join(names, " ")
}

// controls tells of each owner of an object, by name, whether it is the controller.
func (l *lab) controls(id input.ID) map[string]bool {
	l.t.Helper()
	found := map[string]bool{}
	for _, o := range l.get(id).GetOwnerReferences() {
		found[o.Name] = ptr.Deref(o.Controller, false)
	}
	return found
}

// template names sources in a volume each.
func template(sources ...input.ID) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	for i, s := range sources {
		v := corev1.Volume{Name: fmt.Sprintf("v%d", i)}
		if s.Kind == input.KindSecret {
			v.Secret = &corev1.SecretVolumeSource{SecretName: s.Name}
		} else {
			v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}}
		}
		t.Spec.Volumes = append(t.Spec.Volumes, v)
	}
	return t
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

// deployment makes a Deployment that the real controller follows.
func (l *lab) deployment(sources ...input.ID) {
	l.t.Helper()
	none := int32(0)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &none, Selector: selector(), Template: template(sources...)},
	}
	l.create(d)
}

// slowRollout is a Rollout whose controller is this test: the label hands it to
// a controller instance that does not run.
type slowRollout struct {
	*lab
	object *unstructured.Unstructured
}

func (l *lab) slowRollout(sources ...input.ID) *slowRollout {
	l.t.Helper()
	r := l.newRollout(sources)
	r.object.SetLabels(map[string]string{"argo-rollouts.argoproj.io/controller-instance-id": "nobody"})
	l.create(r.object)
	return r
}

func (l *lab) newRollout(sources []input.ID) *slowRollout {
	r := &slowRollout{l, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"strategy": map[string]any{"canary": map[string]any{}},
		},
	}}}
	r.setTemplate(sources)
	return r
}

// argoRollout is a Rollout that Argo follows.
type argoRollout struct{ *slowRollout }

func (l *lab) rollout(sources ...input.ID) argoRollout {
	l.t.Helper()
	r := argoRollout{l.newRollout(sources)}
	l.create(r.object)
	return r
}

// set gives the Rollout another template and strategy, as a deploy does.
func (r argoRollout) set(source input.ID, canary map[string]any) {
	r.t.Helper()
	body, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/spec/template", "value": template(source)},
		map[string]any{"op": "replace", "path": "/spec/strategy", "value": map[string]any{"canary": canary}},
	})
	if err == nil {
		err = r.admin.Patch(r.t.Context(), r.object, client.RawPatch(types.JSONPatchType, body))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// awaitInvalid waits until Argo has found the newest version invalid.
func (r argoRollout) awaitInvalid() {
	r.t.Helper()
	labtest.Eventually(r.t, time.Minute, func() (bool, string) {
		err := r.admin.Get(r.t.Context(), client.ObjectKeyFromObject(r.object), r.object)
		status, _ := json.Marshal(r.object.Object["status"])
		observed, _, _ := unstructured.NestedString(r.object.Object, "status", "observedGeneration")
		current := observed == fmt.Sprint(r.object.GetGeneration())
		return err == nil && current && strings.Contains(string(status), `"InvalidSpec"`), fmt.Sprintf("status %s, error %v", status, err)
	})
}

func (r *slowRollout) setTemplate(sources []input.ID) {
	t := template(sources...)
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := unstructured.SetNestedMap(r.object.Object, converted, "spec", "template"); err != nil {
		r.t.Fatal(err)
	}
}

// change gives the Rollout another template, as a deploy does.
func (r *slowRollout) change(sources ...input.ID) {
	r.t.Helper()
	r.setTemplate(sources)
	if err := r.admin.Update(r.t.Context(), r.object); err != nil {
		r.t.Fatal(err)
	}
}

// act does what the controller does: it makes the ReplicaSet for a template.
func (r *slowRollout) act(hash string, sources ...input.ID) {
	r.t.Helper()
	t := template(sources...)
	t.Labels["rollouts-pod-template-hash"] = hash
	labels := map[string]string{"app": "web", "rollouts-pod-template-hash": hash}
	none := int32(0)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Labels: labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(r.object, r.object.GroupVersionKind()),
		}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: t},
	}
	r.create(rs)
}

// number writes a revision's number on it and on the Rollout, as the controller does.
func (r *slowRollout) number(hash string, n int) {
	r.t.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"rollout.argoproj.io/revision":"%d"}}}`, n)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "web-" + hash}}
	for _, o := range []client.Object{rs, r.object} {
		if err := r.admin.Patch(r.t.Context(), o, client.RawPatch(types.MergePatchType, body)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// publish writes the status as the controller does.
func (r *slowRollout) publish(hash string, conditions ...any) {
	r.t.Helper()
	status := map[string]any{"currentPodHash": hash, "observedGeneration": fmt.Sprint(r.object.GetGeneration())}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	if err := unstructured.SetNestedMap(r.object.Object, status, "status"); err != nil {
		r.t.Fatal(err)
	}
	if err := r.admin.Status().Update(r.t.Context(), r.object); err != nil {
		r.t.Fatal(err)
	}
}
