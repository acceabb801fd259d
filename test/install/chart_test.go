package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestEveryCombination renders combinations of capabilities, so that each two of them meet; all
// combinations in "make test-release". Each grants what the table says and nothing else, and the API server
// accepts every object.
func TestEveryCombination(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	own, shop, blog := labtest.Namespace(t, cluster), labtest.Namespace(t, cluster), labtest.Namespace(t, cluster)
	server := helmtest.NewServer(testkit.NewClient(t, cluster.Kubeconfig()))
	h := helmtest.New(t, "")
	all := combinations([]string{shop, blog})
	if !labtest.InTier(t, labtest.TierRelease) {
		all = pairwise(all)
	}
	for _, s := range all {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			if !s.valid() {
				wantRefused(t, h, s.values(), "podStrategies.enabled needs reload.enabled")
				return
			}
			objects := render(t, h, own, own, s.values())
			if diff := cmp.Diff(words(needed(s, own)), words(granted(t, objects))); diff != "" {
				t.Errorf("permissions (-table +rendered):\n%s", diff)
			}
			server.Accepts(t, objects)
			if secrets := helmtest.OfKind(objects, "Secret"); len(secrets) > 0 {
				t.Error("the chart renders a Secret: only the controller makes the installation key")
			}
		})
	}
}

func wantRefused(t *testing.T, h *helmtest.Helm, values string, texts ...string) {
	t.Helper()
	_, stderr, code := h.Try(t, "template", "lockstep", h.Chart("lockstep"), "--namespace", "own", "-f", helmtest.ValuesFile(t, values))
	if code == 0 {
		t.Fatalf("these values are accepted:\n%s", values)
	}
	for _, text := range texts {
		if !strings.Contains(stderr, text) {
			t.Errorf("want %q in\n%s", text, stderr)
		}
	}
}

// TestEveryValue: the API server accepts what the other values render. It does not know the
// kinds of the Prometheus operator; of those the shape is compared.
func TestEveryValue(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	own := labtest.Namespace(t, cluster)
	server := helmtest.NewServer(testkit.NewClient(t, cluster.Kubeconfig()))
	var standard []*unstructured.Unstructured
	foreign := map[string]any{}
	for _, o := range render(t, helmtest.New(t, ""), own, own, helmtest.Everything) {
		if o.GroupVersionKind().Group == "monitoring.coreos.com" {
			foreign[o.GetKind()] = o.Object["spec"]
			if o.GetAPIVersion() != "monitoring.coreos.com/v1" || o.GetLabels()["release"] != "prometheus" {
				t.Errorf("%s: %s, labels %v", o.GetKind(), o.GetAPIVersion(), o.GetLabels())
			}
			continue
		}
		if o.GetLabels()["team"] != "platform" || o.GetLabels()["app.kubernetes.io/name"] != "lockstep" {
			t.Errorf("%s %s has the labels %v", o.GetKind(), o.GetName(), o.GetLabels())
		}
		standard = append(standard, o)
	}
	server.Accepts(t, standard)
	rules, _ := foreign["PrometheusRule"].(map[string]any)
	if groups, _ := rules["groups"].([]any); len(groups) == 0 {
		t.Errorf("the PrometheusRule has no groups: %v", rules)
	}
	want := map[string]any{
		"selector":            map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "lockstep"}},
		"podMetricsEndpoints": []any{map[string]any{"port": "metrics", "interval": "30s", "honorLabels": true}},
	}
	if diff := cmp.Diff(want, foreign["PodMonitor"]); diff != "" {
		t.Errorf("PodMonitor (-want +got):\n%s", diff)
	}
	wantController(t, standard)
}

// TestServiceMonitor: it selects the Service of the metrics and no other one, by its labels
// and by the name of its port.
func TestServiceMonitor(t *testing.T) {
	t.Parallel()
	objects := render(t, helmtest.New(t, ""), "lockstep-system", "lockstep", `
image: {repository: registry.example/lockstep}
images: {enabled: true, webhook: {enabled: true, secretName: senders}}
serviceMonitor: {enabled: true}
`)
	monitors := helmtest.OfKind(objects, "ServiceMonitor")
	if len(monitors) != 1 {
		t.Fatalf("%d monitors", len(monitors))
	}
	spec, _ := monitors[0].Object["spec"].(map[string]any)
	want := []any{map[string]any{"port": "metrics", "honorLabels": true}}
	if diff := cmp.Diff(want, spec["endpoints"]); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	selector, _, err := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	var selected []string
	for _, s := range helmtest.OfKind(objects, "Service") {
		if labels.SelectorFromSet(selector).Matches(labels.Set(s.GetLabels())) {
			ports, _, _ := unstructured.NestedSlice(s.Object, "spec", "ports")
			selected = append(selected, fmt.Sprint(s.GetName(), ports[0].(map[string]any)["name"]))
		}
	}
	if len(selected) != 1 || !strings.HasSuffix(selected[0], "metrics") {
		t.Errorf("the monitor selects the Services %q", selected)
	}
}

// wantController compares what the values say with the pods that they become.
func wantController(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	d := deployment(t, objects)
	c := d.Spec.Template.Spec.Containers[0]
	for _, want := range []string{
		"--kind=example.com/v1/Worker=spec.template", "--quiet=10s", "--max-delay=2m", "--log-level=debug", "--log-format=text", "--auto", "--revisions-grace=20m",
		"--image-interval=5m", "--image-webhook-addr=:9000", "--image-webhook-secret-file=/etc/lockstep/webhook/senders", "--workers=4", "--cloud-identity=false",
		"--docker-config-namespaces=shop", "--cloud-identity-namespaces=shop,blog",
		"--ramp=false", "--max-rolling=5", "--stop-after=0", "--settle=20s", "--rollout-timeout=30m", "--pause-grace=1h", "--window=0 2 * * 1-5 2h Europe/Berlin",
		"--damping=1m", "--max-damping=1h", "--shared=configmap/ca-bundle", "--shared=secret/root",
		"--notify-file=/etc/lockstep/notifications/all.yaml",
	} {
		if !strings.Contains(" "+strings.Join(c.Args, " ")+" ", " "+want+" ") {
			t.Errorf("the arguments %q lack %s", c.Args, want)
		}
	}
	if want := "registry.example/team/lockstep@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"; c.Image != want {
		t.Errorf("image %s, want %s", c.Image, want)
	}
	if d.Spec.Template.Spec.ServiceAccountName != "account" || d.Spec.Template.Spec.PriorityClassName != "system-cluster-critical" {
		t.Errorf("the pods have account %q and priority class %q", d.Spec.Template.Spec.ServiceAccountName, d.Spec.Template.Spec.PriorityClassName)
	}
	if r := (permission{verb: "patch", group: "example.com", resource: "workers"}); !strings.Contains(strings.Join(words(granted(t, objects)), "\n"), r.String()) {
		t.Errorf("there is no permission to %s", r)
	}
	budgets := helmtest.OfKind(objects, "PodDisruptionBudget")
	if len(budgets) != 1 || !cmp.Equal(budgets[0].Object["spec"].(map[string]any)["minAvailable"], "50%") {
		t.Errorf("disruption budget: %v", budgets)
	}
}

func deployment(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	found := helmtest.OfKind(objects, "Deployment")
	if len(found) != 1 {
		t.Fatalf("%d Deployments, want one", len(found))
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPodsAreRestricted: a namespace that enforces the restricted level admits the pods.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	w := testkit.NewWorldOn(t, cluster)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Own}}
	body := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
	if err := w.Client.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
	template := deployment(t, render(t, helmtest.New(t, ""), "lockstep", w.Own, switches{reload: true}.values())).Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: "lockstep", Labels: template.Labels}, Spec: template.Spec}
	pod.Spec.ServiceAccountName = ""
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the label takes a moment
		privileged := pod.DeepCopy()
		privileged.Spec.HostNetwork = true
		err := w.Client.Create(t.Context(), privileged, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "PodSecurity"), fmt.Sprintf("PodSecurity admits a pod in the host network (error %v)", err)
	})
	if err := w.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// TestHelm3RendersTheSame compares the two engines. Helm 3 installs nothing here.
func TestHelm3RendersTheSame(t *testing.T) {
	t.Parallel()
	namespaces := []string{"shop", "blog"}
	for name, values := range map[string]string{
		"default":    switches{reload: true}.values(),
		"all":        switches{reload: true, revisions: true, images: true, pods: true, secrets: namespaces}.values(),
		"namespaced": switches{reload: true, images: true, listed: true, namespaces: namespaces}.values(),
		"none":       switches{}.values(),
		"everything": helmtest.Everything,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := byName(render(t, helmtest.New(t, ""), "lockstep", "own", values)), byName(render(t, helmtest.New3(t), "lockstep", "own", values))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Helm 3 renders something else (-4 +3):\n%s", diff)
			}
		})
	}
}

func byName(objects []*unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, o := range objects {
		all[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	return all
}
