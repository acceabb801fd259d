package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// completeScript is what docs/reference/command-line.md has people install beside the plugin.
const completeScript = "#!/bin/sh\nexec kubectl lockstep __complete \"$@\"\n"

// TestKubectlPlugin: kubectl finds the program by its name, runs it, and completes its
// arguments through a script of one line.
func TestKubectlPlugin(t *testing.T) {
	t.Parallel()
	binary := labtest.Program(t, program.Kubectl)
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	dir := t.TempDir()
	for name, file := range map[string]string{"kubectl": binary, "kubectl-lockstep": labtest.Binary(t, "./cmd/lockstep")} {
		if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "kubectl_complete-lockstep"), []byte(completeScript), 0o755); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		return labtest.RunCommand(t, labtest.Command{
			Path: filepath.Join(dir, "kubectl"), Args: args,
			Env: []string{"PATH=" + dir + ":/usr/bin:/bin", "KUBECONFIG=" + w.Cluster.Kubeconfig()},
		})
	}
	if stdout, stderr, code := kubectl("lockstep", "hold", "--help"); code != 0 || !strings.Contains(stdout, "\n  kubectl lockstep hold KIND/NAME... REASON [flags]\n") {
		t.Errorf("hold --help: exit code %d, %s\n%s", code, stderr, stdout)
	}
	want := `end it with "kubectl lockstep release deployment/web -n ` + w.Namespace + `"`
	if stdout, stderr, code := kubectl("lockstep", "hold", "deploy/web", "release freeze", "-n", w.Namespace); code != 0 || !strings.Contains(stdout, want) {
		t.Errorf("hold: exit code %d, %s\n%s", code, stderr, stdout)
	}
	if held := w.Deployment(t, testkit.Web).Annotations[settings.Hold]; held != "release freeze" {
		t.Errorf("the hold is %q", held)
	}
	if _, stderr, code := kubectl("lockstep", "relase", "deploy/web"); code != 2 || !strings.Contains(stderr, "did you mean release?") || !strings.Contains(stderr, `"kubectl lockstep --help"`) {
		t.Errorf("a mistake: exit code %d, %s", code, stderr)
	}
	for typed, want := range map[string]string{"de": "deployment/", "deploy/": "deploy/web"} {
		stdout, stderr, code := kubectl("__complete", "lockstep", "roll", "-n", w.Namespace, typed)
		if first, _, _ := strings.Cut(stdout, "\n"); code != 0 || first != want {
			t.Errorf("complete %q: exit code %d, %s\n%s", typed, code, stderr, stdout)
		}
	}
}
