package monitoring_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// How much there is to do: each ConfigMap is used by some of the workloads, and changed in
// every round.
const (
	workloads  = 12
	configMaps = 6
	rounds     = 2
)

// load is a controller of two replicas that has something of everything to do.
type load struct {
	*testkit.World
	registry *testkit.Registry
	metrics  [2]string // where the replicas serve them
	webhook  string    // of the leader
}

// newLoad starts a registry and a controller in a world with workloads, settings that cannot be
// understood, and a part of the record that belongs to another program.
func newLoad(t testing.TB) *load {
	t.Helper()
	l := &load{World: testkit.NewWorld(t), metrics: [2]string{freeAddress(t), freeAddress(t)}, webhook: freeAddress(t)}
	l.registry = testkit.StartRegistry(t)
	for i := range configMaps {
		l.Create(t, testkit.ConfigMap(fmt.Sprint("app-", i), "key", "0"))
	}
	for i := range workloads {
		l.Create(t, testkit.Deployment(fmt.Sprint("web-", i), fmt.Sprint("app-", i%configMaps), ""))
	}
	invalid := testkit.Deployment("invalid", "app-0", "")
	invalid.Annotations[settings.Quiet] = "soon"
	held := testkit.Deployment("held", "app-0", "")
	held.Annotations[settings.Hold] = "release freeze"
	kept := testkit.ConfigMap("kept-1", "key", "1")
	kept.Labels = map[string]string{settings.Revisioned: "true"}
	l.Create(t, invalid, held, kept, testkit.Deployment("revisioned", "kept-1", ""))
	l.spoilRecord(t, "unwritable")
	l.Create(t, testkit.Deployment("unwritable", "app-0", ""))
	l.Create(t, testkit.Deployment("refused", "app-0", ""))
	l.refuse(t, "refused")
	l.makeUnsafe(t)
	flags := append(l.registry.Flags(), "--leader-elect", "--kind", "example.com/v1/Widget=spec.template", "--settle=0", "--notify-file", targetsFile(t))
	l.StartReady(t, append(flags, "--metrics-addr", l.metrics[0], "--image-webhook-addr", l.webhook, "--image-webhook-secret-file", secretFile(t))...)
	l.AwaitRecord(t, "web-5", "configmap/app-5") // It leads.
	l.StartReady(t, append(flags, "--metrics-addr", l.metrics[1])...)
	return l
}

// refuse has the API server refuse every change to the template of a Deployment.
func (l *load) refuse(t testing.TB, deployment string) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: l.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.Namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.name != %q || object.spec.template == oldObject.spec.template", deployment),
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: l.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := l.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Client.Delete(context.WithoutCancel(t.Context()), object) })
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := l.Deployment(t, deployment)
		d.Spec.Template.Labels["refused"] = "no"
		err := l.Client.Update(t.Context(), d, client.DryRunAll)
		return apierrors.IsInvalid(err), fmt.Sprintf("the policy does not hold yet: %v", err)
	})
}

// makeUnsafe makes a workload whose next rollout fails, one whose window is closed, and a stop of
// another namespace.
func (l *load) makeUnsafe(t testing.TB) {
	t.Helper()
	testkit.RunInBackground(t, func(ctx context.Context) {
		refuses := func(pod *corev1.Pod) bool {
			return pod.Labels["app"] != "fails" || pod.Annotations[settings.Inputs] != ""
		}
		if err := kubelet.Play(ctx, testkit.NewClient(t, l.Cluster.Kubeconfig()), l.Namespace, refuses); err != nil {
			t.Error(err)
		}
	})
	one, second := int32(1), int32(1)
	fails := testkit.Deployment("fails", "fails", "")
	fails.Spec.Replicas, fails.Spec.ProgressDeadlineSeconds = &one, &second
	fails.Spec.Template.Spec.SchedulerName = kubelet.Scheduler
	waits := testkit.Deployment("waits", "app-1", "")
	waits.Annotations[settings.Window] = "0 2 29 2 * 2h"
	stop := testkit.ConfigMap(settings.StopName, settings.StopKey("elsewhere"), "incident 42")
	stop.Namespace = l.Own
	l.Create(t, testkit.ConfigMap("fails", "key", "0"), fails, waits, stop)
}

// targetsFile has a notification target that nothing listens at.
func targetsFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "targets: {nobody: {webhook: 'http://%s'}}\n", freeAddress(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func secretFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("a-secret-of-the-registry\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// spoilRecord makes the ConfigMap, into which a Deployment's entry belongs, one of another
// program.
func (l *load) spoilRecord(t testing.TB, deployment string) {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte("Deployment.apps_" + l.Namespace + "_" + deployment))
	foreign := testkit.ConfigMap(fmt.Sprintf("lockstep-state-%02d", h.Sum32()%64), "theirs", "1")
	foreign.Namespace = l.Own
	l.Create(t, foreign)
}

// play changes every ConfigMap in rounds, while images are followed, fought over and not found.
func (l *load) play(t testing.TB) {
	t.Helper()
	l.AwaitRecord(t, "held", "configmap/app-0")
	l.CreateImageUser(t, "moved", l.registry, "app", "1.*")
	l.CreateImageUser(t, "unresolved", l.registry, "app", "9.*")
	for round := range rounds {
		for i := range configMaps {
			l.SetConfig(t, fmt.Sprint("app-", i), "key", fmt.Sprint(round+1))
		}
		before := l.Shown(t, "web-5")
		l.registry.Push(t, "app", fmt.Sprint("1.", round))
		l.AwaitRollout(t, "web-5", before)
	}
	l.AwaitEvent(t, "held", "Warning Held")
	l.AwaitEvent(t, "refused", "Warning ReloadFailed")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return l.Deployment(t, "fails").Status.AvailableReplicas == 1, "deployment fails has no available pod"
	})
	l.SetConfig(t, "fails", "key", "1")
	l.fight(t)
	l.notify(t)
}

// fight puts an image back as often as Lockstep pins it, until Lockstep gives up.
func (l *load) fight(t testing.TB) {
	t.Helper()
	l.registry.Push(t, "fought", "latest")
	l.CreateImageUser(t, "contested", l.registry, "fought", "latest")
	plain := l.registry.Address + "/fought"
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := l.Deployment(t, "contested")
		if d.Status.ObservedGeneration == d.Generation && d.Spec.Template.Spec.Containers[0].Image != plain {
			l.Patch(t, &appsv1.Deployment{}, "contested", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, plain))
		}
		for _, note := range l.Events(t, "contested") {
			if strings.HasPrefix(note, "Warning Contested") {
				return true, ""
			}
		}
		return false, fmt.Sprintf("Lockstep goes on: %q", l.Events(t, "contested"))
	})
}

// notify tells of a push without knowing the secret.
func (l *load) notify(t testing.TB) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.webhook+"/generic", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a notification without a secret gets %s", response.Status)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(labtest.FreePort(t))
}
