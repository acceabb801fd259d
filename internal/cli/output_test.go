package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestNames: -o name lists each object once, without anything else.
func TestNames(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	cluster := []string{"-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig(), "-o", "name"}
	changed := file(t, "web.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {annotations: {edited: once}}}}}")
	for args, want := range map[string]string{
		"status":             "deployment/web\n",
		"explain deploy/web": "configmap/app\nsecret/db\n",
		"explain cm/app":     "",
		"images":             "",
		"plan " + changed:    "deployment/web\n",
	} {
		if stdout, stderr, code := command(t, append(strings.Fields(args), cluster...)...); code != 0 || stdout != want {
			t.Errorf("%s: exit code %d, said %q, want %q\n%s", args, code, stdout, want, stderr)
		}
	}
	if stdout, _, code := command(t, append([]string{"history", "deploy/web"}, cluster...)...); code != 0 || !strings.HasPrefix(stdout, "replicaset/web-") && stdout != "" {
		t.Errorf("history: exit code %d, said %q", code, stdout)
	}
	if stdout, _, code := command(t, "lint", "-o", "name", file(t, "web.yaml", wrong)); code != 1 || stdout != "deployment/web\n" {
		t.Errorf("lint: exit code %d, said %q", code, stdout)
	}
	if stdout, _, code := command(t, "lint", "-o", "yaml", file(t, "web.yaml", wrong)); code != 1 || !strings.HasPrefix(stdout, "files: 1\nfindings:\n") {
		t.Errorf("lint -o yaml: exit code %d, said %q", code, stdout)
	}
}

// TestEveryListHasTheFormats: one flag has the same values everywhere, so nobody has to look them up.
func TestEveryListHasTheFormats(t *testing.T) {
	t.Parallel()
	var with []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			walk(below)
		}
		flag := cmd.Flags().Lookup("output")
		if flag == nil || cmd.Name() == "resolve" { // It doesn't list objects.
			return
		}
		with = append(with, cmd.Name())
		if !strings.HasSuffix(flag.Usage, "wide, json, yaml, name") {
			t.Errorf("%s -o takes %s", cmd.CommandPath(), flag.Usage)
		}
	}
	walk(Document())
	for _, o := range Outputs() {
		if name, _, _ := strings.Cut(o.Command, " "); !slices.Contains(with, name) {
			t.Errorf("%s has no -o; those with it are %q", o.Command, with)
		}
	}
}

// TestNamesAreOneLine whatever they contain, and one for each object: two namespaces may use a name.
func TestNamesAreOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := (outputOptions{formatName}).list(commandline.NewScreen(&out), nil, []listed{{"", "a\nb"}, {"", "a\nb"}, {"shop", "c"}, {"blog", "c"}}, nil); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("said %q, error %v", out.String(), err)
	}
}
