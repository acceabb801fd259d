package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestFilesOfPlanAndLint: both take files by flag and by argument, several of them, and the
// directories below one only when asked.
func TestFilesOfPlanAndLint(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := func(name, value string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: %q}}\n", name, value)
	}
	app, other := filepath.Join(dir, "app.yaml"), filepath.Join(below, "other.yaml")
	for file, text := range map[string]string{app: manifest("app", "1"), other: manifest("other", "2")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := []string{"-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig(), "-o", "json"}
	for _, c := range []struct {
		args  []string
		plans int
	}{
		{[]string{"-f", app, "-f", other}, 2},
		{[]string{app, other}, 2},
		{[]string{"-f", app, other}, 2},
		{[]string{"-f", dir}, 1},
		{[]string{"-R", "-f", dir}, 2},
	} {
		stdout, stderr, code := command(t, append(append([]string{"plan"}, c.args...), cluster...)...)
		if got := strings.Count(stdout, `"change"`); code != 0 || got != c.plans {
			t.Errorf("plan %q: exit code %d, %d sources, want %d\n%s%s", c.args, code, got, c.plans, stdout, stderr)
		}
		stdout, stderr, code = command(t, append([]string{"lint", "-o", "json"}, c.args...)...)
		if want := fmt.Sprintf(`"files": %d,`, c.plans); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("lint %q: exit code %d, want %s\n%s%s", c.args, code, want, stdout, stderr)
		}
	}
}

// TestPlanExitCode: something that would roll has a code of its own, only on request.
func TestPlanExitCode(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	const same = `{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {key: "1"}}`
	const rolls = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {annotations: {edited: once}}}}}"
	for _, c := range []struct {
		text  string
		flags []string
		code  int
	}{
		{same, []string{"--exit-code"}, exitOK},
		{rolls, nil, exitOK},
		{rolls, []string{"--exit-code"}, exitWouldRoll},
		{rolls, []string{"--exit-code", "--output", "json"}, exitWouldRoll},
		{rolls, []string{"--exit-code", "-f", "nowhere.yaml"}, exitUsage},
		{rolls, []string{"--exit-code", "--as", "jane"}, exitFailed},
	} {
		manifest := file(t, "app.yaml", c.text)
		stdout, stderr, code := command(t, append([]string{"plan", "-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig(), "-f", manifest}, c.flags...)...)
		if code != c.code || code == exitWouldRoll && stderr != "" {
			t.Errorf("%q with %q: exit code %d, want %d\n%s%s", c.text, c.flags, code, c.code, stdout, stderr)
		}
	}
}
