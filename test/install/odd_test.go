package install

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// odd are values that YAML takes for numbers and truths when they are not quoted.
const odd = `
image: {repository: registry.example/lockstep, tag: "20240101"}
imagePullSecrets: [{name: "1"}]
labels: {app.kubernetes.io/component: "2", team: "3"}
namespaces: [%[1]q]
revisions: {enabled: true, secretNamespaces: [%[1]q], grace: 5m}
images: {enabled: true, pullSecrets: ["5"], interval: 1s, webhook: {enabled: true, secretName: "6", secretKey: "7"}}
kinds: [{kind: example.com/v1/Worker=spec.template, resource: "8"}]
serviceAccount: {name: "9"}
priorityClassName: "10"
podMonitor: {enabled: true, interval: 30s}
prometheusRule: {enabled: true}
dashboard: {enabled: true}
networkPolicy: {enabled: true}
notifications: {secretName: "11", secretKey: "12"}
`

// TestNumbersAsNames: a release, a namespace and every other name may consist of digits, and the
// API server accepts the objects.
func TestNumbersAsNames(t *testing.T) {
	t.Parallel()
	c := testkit.NewClient(t, labtest.Shared(t).Kubeconfig())
	own, followed := numbered(t, c), numbered(t, c)
	objects := render(t, helmtest.New(t, ""), own, own, fmt.Sprintf(odd, followed))
	helmtest.NewServer(c).Accepts(t, helmtest.Standard(objects))
	for _, o := range objects {
		if _, isText, err := unstructured.NestedString(o.Object, "metadata", "name"); !isText || err != nil {
			t.Errorf("%s %v: %v", o.GetKind(), o.Object["metadata"], err)
		}
	}
	var components []string
	for _, o := range helmtest.OfKind(objects, "Service") {
		components = append(components, o.GetLabels()["app.kubernetes.io/component"])
	}
	if slices.Sort(components); !slices.Equal(components, []string{"metrics", "webhook"}) {
		t.Errorf("the Services have the components %q", components)
	}
	d := deployment(t, objects)
	if got := d.Spec.Template.Spec.Containers[0].Image; got != "registry.example/lockstep:20240101" {
		t.Errorf("image %s", got)
	}
}

// numbered makes a namespace whose name consists of digits.
func numbered(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(rand.Uint64())}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), ns); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// TestDefaultTag: without a tag the image is one that a release of this version has.
func TestDefaultTag(t *testing.T) {
	t.Parallel()
	d := deployment(t, render(t, helmtest.New(t, ""), "lockstep", "own", switches{reload: true}.values()))
	version := strings.TrimPrefix(d.Labels["helm.sh/chart"], "lockstep-")
	if got, want := d.Spec.Template.Spec.Containers[0].Image, "registry.example/lockstep:v"+version; got != want {
		t.Errorf("image %s, want %s", got, want)
	}
}

// TestTwoReleases: two of one name would share the ClusterRole. Helm refuses the second, and
// fullnameOverride is a way out.
func TestTwoReleases(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	h := helmtest.New(t, cluster.Kubeconfig())
	one, other := labtest.Namespace(t, cluster), labtest.Namespace(t, cluster)
	install := func(namespace, more string) (stderr string, code int) {
		values := helmtest.ValuesFile(t, "image: {repository: registry.example/lockstep}\nreplicas: 0\n"+more)
		_, stderr, code = h.Try(t, "install", one, h.Chart("lockstep"), "-n", namespace, "-f", values)
		if code == 0 {
			t.Cleanup(func() { h.Run(t, "uninstall", one, "-n", namespace) })
		}
		return stderr, code
	}
	if stderr, code := install(one, ""); code != 0 {
		t.Fatal(stderr)
	}
	if stderr, code := install(other, ""); code == 0 || !strings.Contains(stderr, `ClusterRole "`+one+`"`) {
		t.Fatalf("exit %d, want an error about the ClusterRole:\n%s", code, stderr)
	}
	if stderr, code := install(other, "fullnameOverride: "+other); code != 0 {
		t.Error(stderr)
	}
}

// TestFollowedNamespaceIsDeleted: an upgrade names the namespace that is gone, and works once the values do not
// have it, as docs/guides/operations.md says.
func TestFollowedNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	c := testkit.NewClient(t, cluster.Kubeconfig())
	h := helmtest.New(t, cluster.Kubeconfig())
	own, shop := labtest.Namespace(t, cluster), labtest.Namespace(t, cluster)
	gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tmp-"}}
	if err := c.Create(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	upgrade := func(namespaces ...string) (stderr string, code int) {
		values := fmt.Sprintf("image: {repository: registry.example/lockstep}\nreplicas: 0\nnamespaces: [%s]\n", strings.Join(namespaces, ", "))
		_, stderr, code = h.Try(t, "upgrade", "--install", own, h.Chart("lockstep"), "-n", own, "-f", helmtest.ValuesFile(t, values))
		return stderr, code
	}
	if stderr, code := upgrade(shop, gone.Name); code != 0 {
		t.Fatal(stderr)
	}
	t.Cleanup(func() { h.Run(t, "uninstall", own, "-n", own) })
	if err := c.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(gone), gone)
		return apierrors.IsNotFound(err), fmt.Sprintf("the namespace is still there: %v", err)
	})
	if stderr, code := upgrade(shop, gone.Name); code == 0 || !strings.Contains(stderr, fmt.Sprintf("lists %q, which doesn't exist in the cluster", gone.Name)) || !strings.Contains(stderr, "create the namespace, or remove it") {
		t.Errorf("exit %d, want an error about the namespace:\n%s", code, stderr)
	}
	if history := h.Run(t, "history", own, "-n", own); strings.Contains(history, "failed") {
		t.Errorf("something was changed:\n%s", history)
	}
	if stderr, code := upgrade(shop); code != 0 {
		t.Error(stderr)
	}
}
