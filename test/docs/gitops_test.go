package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// manifests are what a repository has: a ConfigMap and the Deployment that uses it.
// The second of two applies changes the ConfigMap only.
func manifests(greeting string) string {
	return `
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {greeting: ` + greeting + `}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {lockstep.dev/reload: auto, lockstep.dev/quiet: ` + testkit.Quiet + `}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {example.org/team: shop}
    spec:
      containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]
`
}

// delivery is a tool that brings manifests to a world, again and again.
type delivery func(t *testing.T, w *testkit.World, greeting string)

// TestToolsLeaveAReloadAlone: docs/guides/gitops.md says that these tools need no exception.
// After Lockstep has rolled a change out, the tool delivers the same manifests again:
// what Lockstep wrote into the template stays, and no further rollout follows.
func TestToolsLeaveAReloadAlone(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]delivery{
		"KubectlApply": kubectl("apply", "-f"),
		// The request that Flux's kustomize-controller sends, by kubectl.
		"ServerSideApply": kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f"),
		"Helm4":           helm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t)
			w.StartReady(t)
			deliver(t, w, "hello")
			w.AwaitRecord(t, "web", "configmap/app")
			deliver(t, w, "bonjour")
			shown := w.AwaitRollout(t, "web", "")
			w.CheckRevisions(t, "web", 2, "one change")

			deliver(t, w, "bonjour")
			w.CheckRevisions(t, "web", 2, "the same manifests again")
			if now := w.Shown(t, "web"); now != shown {
				t.Errorf("the template shows %q, want %q as Lockstep wrote it", now, shown)
			}

			// A rollback of the ConfigMap is a change like any other: one rollout.
			deliver(t, w, "hello")
			w.AwaitRollout(t, "web", shown)
		})
	}
}

// TestReplaceTakesAReloadBack: a tool that replaces whole objects strips what Lockstep
// wrote. Lockstep warns and does not fight.
func TestReplaceTakesAReloadBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.StartReady(t)
	kubectl("apply", "-f")(t, w, "hello")
	w.AwaitRecord(t, "web", "configmap/app")
	kubectl("apply", "-f")(t, w, "bonjour")
	w.AwaitRollout(t, "web", "")

	kubectl("replace", "-f")(t, w, "bonjour")
	w.AwaitEvent(t, "web", "Warning Undone", "configmap/app", "was reverted")
	w.Settle(t)
	if now := w.Shown(t, "web"); now != "" {
		t.Errorf("the template shows %q: Lockstep has written it again", now)
	}
}

// kubectl delivers with the real program.
func kubectl(args ...string) delivery {
	return func(t *testing.T, w *testkit.World, greeting string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "manifests.yaml")
		if err := os.WriteFile(file, []byte(manifests(greeting)), 0o600); err != nil {
			t.Fatal(err)
		}
		command := labtest.Command{Path: tools(t)["kubectl"], Args: append(append([]string{"--kubeconfig", w.Cluster.Kubeconfig(), "-n", w.Namespace}, args...), file)}
		if _, stderr, code := labtest.RunCommand(t, command); code != 0 {
			t.Fatalf("kubectl %s: exit %d\n%s", strings.Join(args, " "), code, stderr)
		}
	}
}

// helm delivers with the real Helm 4, as a release of a chart.
func helm(t *testing.T, w *testkit.World, greeting string) {
	t.Helper()
	chart := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}\n", "templates/all.yaml": manifests(greeting),
	} {
		file := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	helmtest.New(t, w.Cluster.Kubeconfig()).Run(t, "upgrade", "--install", "shop", chart, "-n", w.Namespace)
}
