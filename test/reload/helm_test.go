package reload_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// chart has a ConfigMap and a Deployment whose template changes with each release,
// as an application's image does.
func chart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"Chart.yaml":               "{apiVersion: v2, name: shop, version: 1.0.0}\n",
		"templates/configmap.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {key: {{ .Values.key }}}}\n",
		"templates/deployment.yaml": deployment("web", auto+", "+settings.Quiet+": {{ .Values.quiet }}",
			"containers: [{name: app, image: 'app:{{ .Values.image }}', envFrom: [{configMapRef: {name: app}}]}]"),
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestHelmUpgrade: a release of ConfigMap and template together is one rollout,
// one of the ConfigMap alone is one of ours, and neither undoes the other.
func TestHelmUpgrade(t *testing.T) {
	t.Parallel()
	helm := labtest.Program(t, program.Helm)
	s := newStage(t, "")
	dir := chart(t)
	// The window of a release of both is longer than Helm takes to write one after the other.
	release := func(key, image, quiet string) {
		t.Helper()
		args := []string{
			"upgrade", "--install", "shop", dir, "--namespace", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig(),
			"--set", "key=" + key, "--set", "image=" + image, "--set", "quiet=" + quiet,
		}
		_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: helm, Args: args, Env: []string{"HOME=" + dir}})
		if code != 0 {
			t.Fatalf("helm %q: exit code %d\n%s", args, code, stderr)
		}
	}
	s.run(t)
	release("one", "v1", "1h")
	s.awaitKnown(t, deploy, "web", versionOf("one"))
	s.checkRollouts(t, "installed", 0, web)

	release("two", "v2", "1h")
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "ConfigMap and template in one release", 1, web)

	release("three", "v2", testkit.Quiet)
	s.awaitRollouts(t, web, 2)
	s.awaitKnown(t, deploy, "web", versionOf("three"))
	shown := s.shown(t, web)
	release("three", "v2", testkit.Quiet)
	s.checkRollouts(t, "the same release again", 2, web)
	if got := s.shown(t, web); got != shown {
		t.Errorf("the template shows %q after the same release again, was %q", got, shown)
	}
}
