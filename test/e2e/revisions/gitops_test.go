package revisions_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// repository is a Git repository with rendered manifests.
type repository struct {
	*world
	dir string
	// unprotected leaves out what keeps Argo CD from pruning.
	unprotected bool
}

func newRepository(w *world) *repository {
	r := &repository{world: w, dir: w.T.TempDir()}
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

// commit replaces the manifests by the chart's for some values, and more.
func (r *repository) commit(values, more string) {
	r.T.Helper()
	file := helmtest.ValuesFile(r.T, values)
	manifests := r.Helm.Run(r.T, "template", "demo", r.Helm.Chart("app"), "-n", r.Namespace, "-f", file)
	if r.unprotected {
		manifests = strings.ReplaceAll(manifests, "argocd.argoproj.io/sync-options: Prune=false", "example.org/unprotected: yes-it-is")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "app.yaml"), []byte(manifests+more), 0o600); err != nil {
		r.T.Fatal(err)
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", "next")
}

// sync starts the agent of Argo's GitOps engine, which applies and prunes.
func (r *repository) sync() *labtest.Running {
	r.T.Helper()
	return labtest.StartCommand(r.T, labtest.Command{Path: labtest.Program(r.T, program.GitOps), Args: []string{
		r.dir, "--kubeconfig", r.Kubeconfig, "--namespaced", "-n", r.Namespace, "--default-namespace", r.Namespace,
		"--prune", "--resync-seconds", "1", "--port", strconv.Itoa(labtest.FreePort(r.T)),
	}})
}

// TestGitOpsEngine plays on a control plane of its own: the engine's agent follows
// every kind of the cluster, and ends when one that it knows goes away, as kinds of
// other tests do.
func TestGitOpsEngine(t *testing.T) {
	t.Parallel()
	labtest.Program(t, program.GitOps)
	cluster := labtest.Private(t, labtest.Options{With: []labtest.Component{labtest.KWOK, labtest.ArgoRollouts}})
	for name, story := range map[string]func(*world){
		"KeepsWhatTheChartProtects": func(w *world) { keepsOldRevisions(w, false, false) },
		"KeepsWhatIsOwned":          func(w *world) { keepsOldRevisions(w, true, true) },
		"KeepsWhatIsBoth":           func(w *world) { keepsOldRevisions(w, true, false) },
		"RunsTheJob":                runsTheJob,
		"LeavesAReloadAlone":        leavesAReloadAlone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, cluster)
			w.AwaitRolloutKind()
			story(w)
		})
	}
}

// keepsOldRevisions: with pruning on, Argo CD's engine removes what is no longer in
// Git, but neither a ConfigMap that the chart protects nor one that a revision
// owns. Each is enough by itself.
func keepsOldRevisions(w *world, owned, unprotected bool) {
	w.T.Helper()
	r := newRepository(w)
	r.unprotected = unprotected
	owners := func(string) []string { return []string{} }
	if owned {
		w.Continuous()
		owners = func(configMap string) []string { return []string{w.AwaitReplicaSet(configMap).Name} }
	}
	plain := fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: unused, namespace: %s, labels: {app: demo}}\ndata: {key: value}\n", w.Namespace)
	r.commit(walkthrough.Release("red", "revisions: {attach: controller}"), plain)
	r.sync()
	w.Eventually(func() (bool, string) {
		return len(w.ConfigMaps()) == 2, fmt.Sprint("nothing was applied: ", w.ConfigMaps())
	})
	red := w.ConfigMapOf("red")
	w.AwaitOwners(map[string][]string{red: owners(red), "unused": {}})
	if protection := w.configMap(red).Annotations["argocd.argoproj.io/sync-options"]; (protection == "") != unprotected {
		w.T.Fatalf("sync-options are %q", protection)
	}

	r.commit(walkthrough.Release("blue", "revisions: {attach: controller}"), "")
	w.Eventually(func() (bool, string) {
		found := w.ConfigMaps()
		_, there := found["unused"]
		return !there, fmt.Sprint("the GitOps tool hasn't pruned the ConfigMap that was removed from Git: ", found)
	})
	w.Eventually(func() (bool, string) {
		return len(w.ConfigMaps()) == 2, fmt.Sprint("the ConfigMaps are ", w.ConfigMaps())
	})
	blue := w.ConfigMapOf("blue")
	w.AwaitOwners(map[string][]string{red: owners(red), blue: owners(blue)})
}

// runsTheJob: the attach Job is a hook of the sync itself. It is
// made beside the workload, in a first sync and in one that ends in a canary that
// waits for a person. The engine's agent looks at live objects once per sync and so
// never sees a hook end, unlike Argo CD; it is started anew for each sync.
func runsTheJob(w *world) {
	w.T.Helper()
	r := newRepository(w)
	runNext := w.awaitJobs()
	r.commit(walkthrough.Release("red", ""), "")
	agent := r.sync()
	runNext()
	red := w.ConfigMapOf("red")
	w.AwaitOwners(map[string][]string{red: {w.AwaitReplicaSet(red).Name}})
	w.AwaitPods(map[string]int{red: 3})
	agent.Stop(w.T)

	r.commit(walkthrough.Release("blue", ""), "")
	r.sync()
	runNext()
	blue := w.ConfigMapOf("blue")
	w.AwaitPause()
	w.AwaitOwners(map[string][]string{red: {w.AwaitReplicaSet(red).Name}, blue: {w.AwaitReplicaSet(blue).Name}})
}

// leavesAReloadAlone: after Lockstep has rolled out a ConfigMap that came with a
// commit, the engine goes on comparing and applying, and what Lockstep wrote into the
// template stays. The next commit shows that a sync came after the rollout.
func leavesAReloadAlone(w *world) {
	w.T.Helper()
	r := newRepository(w)
	w.Continuous()
	release := walkthrough.Release("red", "revisions: {attach: controller}")
	r.commit(release, followed(w, "hello", "none"))
	r.sync()
	web := &testkit.World{Cluster: w.Cluster, Client: w.Client, Namespace: w.Namespace, Own: w.Namespace}
	web.AwaitRecord(w.T, "web", "configmap/greeting")
	r.commit(release, followed(w, "bonjour", "none"))
	shown := web.AwaitRollout(w.T, "web", "")

	r.commit(release, followed(w, "bonjour", "later"))
	w.Eventually(func() (bool, string) {
		later := w.configMap("unused").Data["seen"]
		return later == "later", "the last sync brought " + later
	})
	if now, revisions := web.Shown(w.T, "web"), web.Revisions(w.T, "web"); now != shown || revisions != 2 {
		w.T.Errorf("the template shows %q in revision %d, want %q in the second", now, revisions, shown)
	}
}

// followed is a Deployment that follows a ConfigMap, and a ConfigMap that nothing uses.
func followed(w *world, greeting, seen string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: unused, namespace: %[1]s}, data: {seen: %[3]s}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: greeting, namespace: %[1]s}, data: {greeting: %[2]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, annotations: {lockstep.dev/reload: auto, lockstep.dev/quiet: 200ms}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: app, envFrom: [{configMapRef: {name: greeting}}]}]}
`, w.Namespace, greeting, seen)
}
