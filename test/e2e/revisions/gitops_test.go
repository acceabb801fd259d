package revisions_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// repository is a Git repository with rendered manifests.
type repository struct {
	*world
	dir string
}

func newRepository(w *world) *repository {
	r := &repository{w, w.T.TempDir()}
	r.git("init", "--quiet")
	return r
}

func (r *repository) git(args ...string) {
	r.T.Helper()
	git := exec.CommandContext(r.T.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-C", r.dir}, args...)...)
	if out, err := git.CombinedOutput(); err != nil {
		r.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit replaces the manifests by the chart's for a color, and more.
func (r *repository) commit(color, more string) {
	r.T.Helper()
	file := helmtest.ValuesFile(r.T, walkthrough.Release(color, "revisions: {attach: controller}"))
	manifests := r.Helm.Run(r.T, "template", "demo", r.Helm.Chart("app"), "-n", r.Namespace, "-f", file)
	if err := os.WriteFile(filepath.Join(r.dir, "app.yaml"), []byte(manifests+more), 0o600); err != nil {
		r.T.Fatal(err)
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", color)
}

// sync starts the agent of Argo's GitOps engine, which applies and prunes.
func (r *repository) sync() {
	r.T.Helper()
	builder, err := program.NewBuilder(os.Stderr)
	if err != nil {
		r.T.Fatal(err)
	}
	built, err := builder.Build(r.T.Context(), program.GitOps)
	if err != nil {
		r.T.Fatal(err)
	}
	labtest.StartCommand(r.T, labtest.Command{Path: built[program.GitOps].Path, Args: []string{
		r.dir, "--kubeconfig", r.Kubeconfig, "--namespaced", "-n", r.Namespace, "--default-namespace", r.Namespace,
		"--prune", "--resync-seconds", "1", "--port", freePort(r.T),
	}})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestGitOpsEngineKeepsOldRevisions: with pruning on, Argo CD's engine removes what
// is no longer in Git, but neither a ConfigMap that the chart protects nor one
// that a revision owns.
func TestGitOpsEngineKeepsOldRevisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Continuous()
	r := newRepository(w)
	plain := func(name string) string {
		return fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {app: demo}}\ndata: {key: value}\n", name, w.Namespace)
	}
	r.commit("red", plain("unused"))
	r.sync()
	w.Eventually(func() (bool, string) {
		return len(w.ConfigMaps()) == 2, fmt.Sprint("nothing was applied: ", w.ConfigMaps())
	})
	red := w.ConfigMapOf("red")
	rsRed := w.AwaitReplicaSet(red)
	w.AwaitOwners(map[string][]string{red: {rsRed.Name}, "unused": {}})

	r.commit("blue", "")
	w.Eventually(func() (bool, string) {
		_, there := w.ConfigMaps()["unused"]
		return !there, "what is no longer in Git was not pruned"
	})
	blue := w.ConfigMapOf("blue")
	w.AwaitOwners(map[string][]string{red: {rsRed.Name}, blue: {w.AwaitReplicaSet(blue).Name}})
}
