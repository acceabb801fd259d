package reload_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// injector is a mutating admission webhook. With every write of a Deployment it adds a sidecar to
// the template, if it lacks one, and changes an annotation of the template.
type injector struct {
	*httptest.Server

	mu     sync.Mutex
	writes map[string]int // by field manager and name
	stamp  int
}

func newInjector(t *testing.T) *injector {
	t.Helper()
	i := &injector{writes: map[string]int{}}
	i.Server = httptest.NewTLSServer(i)
	t.Cleanup(i.Close)
	return i
}

// ServeHTTP answers an admission review.
func (i *injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, d, options := admissionv1.AdmissionReview{}, appsv1.Deployment{}, metav1.PatchOptions{}
	err := json.NewDecoder(r.Body).Decode(&review)
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, &d)
	}
	if err == nil {
		err = json.Unmarshal(review.Request.Options.Raw, &options) // those of a creation have the manager too
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i.mu.Lock()
	if !*review.Request.DryRun {
		i.writes[options.FieldManager+" "+d.Name]++
	}
	i.stamp++
	stamp := i.stamp
	i.mu.Unlock()
	inject(&d.Spec.Template, stamp)
	body, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": d.Spec.Template}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	form := admissionv1.PatchTypeJSONPatch
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: body, PatchType: &form}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func inject(template *corev1.PodTemplateSpec, stamp int) {
	const name = "sidecar"
	if !slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
		from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "proxy"}}}
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: name, Image: name, EnvFrom: []corev1.EnvFromSource{from}})
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, "example.com/injected", fmt.Sprint(stamp))
}

// counted is how often a field manager wrote a Deployment.
func (i *injector) counted(manager, name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.writes[manager+" "+name]
}

// admit calls a webhook for each write of a Deployment in the stage's namespace, and refuses the
// write while the webhook doesn't respond. It returns when that is so.
func (s *stage) admit(t *testing.T, i *injector, url string) {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	hook.Name = s.Namespace
	s.make(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: sidecar.example.com
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, s.Namespace, url, base64.StdEncoding.EncodeToString(authority)))
	t.Cleanup(func() {
		if err := s.Client.Delete(context.WithoutCancel(t.Context()), hook); err != nil {
			t.Log(err)
		}
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := testkit.Deployment("web", "", "")
		d.Namespace = s.Namespace
		err := s.Client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"probe":"true"}}}`)), client.DryRunAll)
		return err != nil || len(d.Spec.Template.Spec.Containers) == 2, "the API server doesn't call the webhook yet"
	})
}

// TestWebhookThatRewritesTemplates: a mutating webhook adds a sidecar to every template, and writes
// into the template again with every write. Each change is one rollout, also one of the ConfigMap
// that only the sidecar uses, and Lockstep writes nothing else.
func TestWebhookThatRewritesTemplates(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+configMap("proxy", "key: one"))
	_, metric := s.runMeasured(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	i := newInjector(t)
	s.admit(t, i, i.URL)

	// The API server compares versions after the webhook, so a patch that fails with a conflict has called it.
	checkWrites := func(want int) {
		t.Helper()
		conflicts := int(metric(`lockstep_reloads_total{kind="Deployment",namespace="` + s.Namespace + `",reason="ReloadFailed",result="conflict"}`))
		if got := i.counted("lockstep", "web") - conflicts; got != want {
			t.Errorf("Lockstep wrote the Deployment %d times, beside %d conflicts, want %d", got, conflicts, want)
		}
	}

	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", versionOf("two"), "configmap/proxy")
	s.checkRollouts(t, "the sidecar comes with Lockstep's own rollout", 1, web)
	s.change(t, "configmap/proxy", "{data: {key: two}}")
	s.awaitRollouts(t, web, 2)
	s.checkRollouts(t, "the sidecar's ConfigMap", 2, web)
	checkWrites(2)

	s.change(t, web, "{metadata: {labels: {team: shop}}}") // the webhook makes a rollout of it
	s.awaitRollouts(t, web, 3)
	s.checkRollouts(t, "nothing has changed", 3, web)
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 4)
	s.checkRollouts(t, "after another's rollout", 4, web)
	checkWrites(3)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the record is written once a second
		said, stderr, _ := inprocess.Run(t, "explain", "deployment/web", "-n", s.Namespace, "--controller-namespace", s.Own, "--kubeconfig", s.Cluster.Kubeconfig())
		return strings.Contains(said, "InStep"), "explain doesn't say that web is in step:\n" + said + stderr
	})
}

// TestWebhookIsDown: a webhook that has to agree doesn't respond. Lockstep says why it can't roll
// out, in one event, tries again with growing pauses, and delivers the change when the webhook is
// back.
func TestWebhookIsDown(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+configMap("proxy", "key: one"))
	_, metric := s.runMeasured(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	i := newInjector(t)
	s.admit(t, i, "https://"+freeAddress(t))
	began := time.Now()
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Warning ReloadFailed", "could not roll out configmap/app", "sidecar.example.com", "connection refused")
	failures := func() float64 {
		return metric(`lockstep_reloads_total{kind="Deployment",namespace="` + s.Namespace + `",reason="ReloadFailed",result="failure"}`)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := failures()
		return got >= 6, fmt.Sprintf("%v attempts, want that it is tried again", got)
	})
	// The pauses double from half a second, so the attempts grow with the logarithm of the time. With
	// equal pauses, six take 2.5 s.
	if got, most := failures(), 3+math.Log2(time.Since(began).Seconds()/0.5); got > most {
		t.Errorf("%v attempts in %s, want %.1f at most", got, time.Since(began), most)
	}
	said, stderr, _ := inprocess.Run(t, "explain", "deployment/web", "-n", s.Namespace, "--controller-namespace", s.Own, "--kubeconfig", s.Cluster.Kubeconfig())
	if !strings.Contains(said, "ReloadFailed") || !strings.Contains(said, "sidecar.example.com") {
		t.Errorf("explain doesn't say why the change waits:\n%s%s", said, stderr)
	}
	if got := s.rollouts(t, web); got != 0 {
		t.Errorf("%d rollouts without the webhook", got)
	}

	hook := blank(t, "configmap/"+s.Namespace)
	hook.SetAPIVersion("admissionregistration.k8s.io/v1")
	hook.SetKind("MutatingWebhookConfiguration")
	back := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/url","value":%q}]`, i.URL)
	if err := s.Client.Patch(t.Context(), hook, client.RawPatch("application/json-patch+json", []byte(back))); err != nil {
		t.Fatal(err)
	}
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "the webhook is back", 1, web)
	failed := slices.DeleteFunc(s.Events(t, "web"), func(note string) bool { return !strings.Contains(note, "ReloadFailed") })
	if len(failed) != 1 {
		t.Errorf("the events %q, want one about the failure", failed)
	}
}
