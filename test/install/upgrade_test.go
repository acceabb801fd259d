package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// image is what an upgrade sets.
const image = "image.repository=registry.example/team/lockstep,image.tag=v1"

// TestUpgradesRestartNothing goes from the manifest that there was before the chart, over
// plain manifests, to the chart, to other values, and back. No step restarts a workload, and a
// change that was made while the controller was replaced is delivered once.
func TestUpgradesRestartNothing(t *testing.T) {
	t.Parallel()
	u := newUpgrade(t)
	u.create(t, "testdata/controller.yaml")
	u.create(t, "../../examples/workload.yaml")
	c := u.start(t)
	u.AwaitRecord(t, testkit.Web, "configmap/web-settings")
	for _, step := range []struct {
		name string
		do   func()
		want switches // after the step
	}{
		{"kubectl apply -k", func() { u.applyManifests(t) }, switches{reload: true}},
		{"helm install", func() { u.helm(t, "install", "--take-ownership", "--server-side=false", "--set", image) }, switches{reload: true}},
		{"helm upgrade", func() {
			u.helm(t, "upgrade", "--set", image, "--set", "quiet=300ms,replicas=1,podStrategies.enabled=true,revisions.enabled=true,images.enabled=true")
		}, switches{reload: true, pods: true, revisions: true, images: true}},
		{"helm rollback", func() { u.Run(t, "rollback", "lockstep", "1", "-n", "lockstep-system") }, switches{reload: true}},
	} {
		stop(t, c)
		u.change(t)
		step.do()
		if diff := cmp.Diff(words(needed(step.want, "lockstep-system")), words(granted(t, u.roles(t)))); diff != "" {
			t.Errorf("permissions after %s (-want +got):\n%s", step.name, diff)
		}
		c = u.start(t)
		u.awaitDelivered(t, step.name)
	}
	// Once more while it runs: whatever the last step might have caused has happened by then.
	u.change(t)
	u.awaitDelivered(t, "all steps")
	stop(t, c)
}

type upgrade struct {
	*testkit.World
	*helmtest.Helm

	changes int
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	cluster := labtest.Private(t, labtest.Options{})
	return &upgrade{Helm: helmtest.New(t, cluster.Kubeconfig()), World: &testkit.World{
		Cluster: cluster, Client: testkit.NewClient(t, cluster.Kubeconfig()), Namespace: "shop", Own: "lockstep-system",
	}}
}

// create creates the objects of a manifest, as kubectl would.
func (u *upgrade) create(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range helmtest.Objects(t, string(text)) {
		if err := u.Client.Create(t.Context(), o, client.FieldOwner("kubectl-client-side-apply"), client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// helm runs a command on the release, as the README says.
func (u *upgrade) helm(t *testing.T, command string, args ...string) {
	t.Helper()
	u.Run(t, append([]string{command, "lockstep", u.Chart("lockstep"), "--namespace", u.Own}, args...)...)
}

// applyManifests applies deploy/ with an image of one's own.
func (u *upgrade) applyManifests(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Rel(dir, filepath.Join(u.Root(), "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	const own = "registry.example/team/lockstep@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	name, digest, _ := strings.Cut(own, "@")
	text := fmt.Sprintf("resources: [%s]\nimages: [{name: registry.example/lockstep, newName: %s, digest: %q}]\n", deploy, name, digest)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "--kubeconfig", u.Cluster.Kubeconfig(), "apply", "-k", dir)
	if got := u.controller(t).Spec.Template.Spec.Containers[0].Image; got != own {
		t.Errorf("the image is %s, want %s", got, own)
	}
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	running := labtest.StartCommand(t, labtest.Command{Path: kubectlPath(t), Args: args})
	if code := running.ExitCode(t, testkit.Patience); code != 0 {
		t.Fatalf("kubectl %q: exit %d\n%s", args, code, running.Stderr())
	}
}

func kubectlPath(t *testing.T) string {
	t.Helper()
	return labtest.Program(t, program.Kubectl)
}

// controller is the Deployment of the controller, as it is in the cluster.
func (u *upgrade) controller(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := u.Client.Get(t.Context(), client.ObjectKey{Namespace: u.Own, Name: "lockstep"}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// roles are those of the installation that are in the cluster.
func (u *upgrade) roles(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, kind := range []string{"ClusterRole", "Role"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind + "List"})
		if err := u.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetName(), "lockstep") {
				all = append(all, &o)
			}
		}
	}
	return all
}

// start runs the container that the cluster has now as a process.
func (u *upgrade) start(t *testing.T) *testkit.Controller {
	t.Helper()
	args := slices.Clone(u.controller(t).Spec.Template.Spec.Containers[0].Args)
	c := startAs(t, append(args, "--quiet=300ms"), accountKubeconfig(t, u.World, "lockstep"), u.Own)
	c.AwaitReady(t, true)
	return c
}

func (u *upgrade) change(t *testing.T) {
	t.Helper()
	u.changes++
	u.SetConfig(t, "web-settings", "greeting", fmt.Sprintf("good day %d", u.changes))
}

// awaitDelivered waits until there is a revision for each change, and finds that there are
// no others.
func (u *upgrade) awaitDelivered(t *testing.T, after string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		n := u.Revisions(t, testkit.Web)
		return n > u.changes, fmt.Sprintf("after %s there are %d revisions, want the first and %d others", after, n, u.changes)
	})
	u.CheckRevisions(t, testkit.Web, u.changes+1, "one for each change, after "+after)
}
