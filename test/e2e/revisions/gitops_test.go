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
)

// repository is a Git repository with rendered manifests.
type repository struct {
	*world
	dir string
}

func newRepository(w *world) *repository {
	r := &repository{w, w.t.TempDir()}
	r.git("init", "--quiet")
	return r
}

func (r *repository) git(args ...string) {
	r.t.Helper()
	git := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-C", r.dir}, args...)...)
	if out, err := git.CombinedOutput(); err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit replaces the manifests by the chart's for a color, and more.
func (r *repository) commit(color, more string) {
	r.t.Helper()
	file := helmtest.ValuesFile(r.t, release(color, "revisions: {attach: controller}"))
	manifests := r.helm.Run(r.t, "template", "demo", r.helm.Chart("app"), "-n", r.namespace, "-f", file)
	if err := os.WriteFile(filepath.Join(r.dir, "app.yaml"), []byte(manifests+more), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", color)
}

// sync starts the agent of Argo's GitOps engine, which applies and prunes.
func (r *repository) sync() {
	r.t.Helper()
	builder, err := program.NewBuilder(os.Stderr)
	if err != nil {
		r.t.Fatal(err)
	}
	built, err := builder.Build(r.t.Context(), program.GitOps)
	if err != nil {
		r.t.Fatal(err)
	}
	labtest.StartCommand(r.t, labtest.Command{Path: built[program.GitOps].Path, Args: []string{
		r.dir, "--kubeconfig", r.kubeconfig, "--namespaced", "-n", r.namespace, "--default-namespace", r.namespace,
		"--prune", "--resync-seconds", "1", "--port", freePort(r.t),
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
	w.continuous()
	r := newRepository(w)
	plain := func(name string) string {
		return fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {app: demo}}\ndata: {key: value}\n", name, w.namespace)
	}
	r.commit("red", plain("unused"))
	r.sync()
	w.eventually(func() (bool, string) {
		return len(w.configMaps()) == 2, fmt.Sprint("nothing was applied: ", w.configMaps())
	})
	red := w.configMapOf("red")
	rsRed := w.awaitReplicaSet(red)
	w.awaitOwners(map[string][]string{red: {rsRed.Name}, "unused": {}})

	r.commit("blue", "")
	w.eventually(func() (bool, string) {
		_, there := w.configMaps()["unused"]
		return !there, "what is no longer in Git was not pruned"
	})
	blue := w.configMapOf("blue")
	w.awaitOwners(map[string][]string{red: {rsRed.Name}, blue: {w.awaitReplicaSet(blue).Name}})
}
