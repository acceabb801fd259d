package revisions_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// published reads an object of the manifest that the README of configmap-attacher prints.
func published(t *testing.T, kind string, into any, fill ...string) {
	t.Helper()
	text, err := os.ReadFile("../../node/testdata/seeds/configmap-attacher.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := helmtest.OfKind(helmtest.Objects(t, strings.NewReplacer(fill...).Replace(string(text))), kind)
	if len(objects) != 1 {
		t.Fatalf("the manifest has %d objects of kind %s", len(objects), kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, into); err != nil {
		t.Fatal(err)
	}
}

// originalRole is the ClusterRole that users of configmap-attacher have installed.
func originalRole(t *testing.T) []labtest.Rule {
	t.Helper()
	role := struct {
		Rules []labtest.Rule `json:"rules"`
	}{}
	published(t, "ClusterRole", &role)
	return role.Rules
}

// publishedArgs are the arguments of the Job that users of configmap-attacher have.
func publishedArgs(w *world, configMaps string) []string {
	w.T.Helper()
	job := &batchv1.Job{}
	published(w.T, "Job", job, "<Rollout Name>", "demo", "<Namespace>", w.Namespace, "<Configmap name>", fmt.Sprintf("%q", configMaps))
	return job.Spec.Template.Spec.Containers[0].Args
}

// asBefore is configmap-attacher as an old manifest starts it: by its name, with
// its environment, and with the permissions of its role.
type asBefore struct {
	program string
	env     []string
}

func newAsBefore(w *world) asBefore {
	w.T.Helper()
	account := labtest.NewAccount(w.T, w.Cluster, w.Namespace)
	account.AllowEverywhere(w.T, originalRole(w.T)...)
	testkit.AwaitListing(w.T, account, true, &corev1.ConfigMapList{}, client.InNamespace(w.Namespace))
	program := filepath.Join(w.T.TempDir(), "configmap-attacher")
	if err := os.Symlink(w.Lockstep, program); err != nil {
		w.T.Fatal(err)
	}
	return asBefore{program: program, env: []string{
		"HOME=" + home(w.T, account.Kubeconfig), "KUBECONFIG=/nonexistent", "IS_IN_CLUSTER=false", "VERSION=1.0.1", "JOB_NAME=job-1",
	}}
}

func (a asBefore) run(w *world, args ...string) (lines []map[string]any, code int) {
	w.T.Helper()
	stdout, stderr, code := labtest.RunCommand(w.T, labtest.Command{Path: a.program, Args: args, Env: a.env})
	if stderr != "" && !strings.Contains(stderr, "-configmaps string") {
		w.T.Errorf("configmap-attacher wrote to its standard error: %s", stderr)
	}
	scanner := bufio.NewScanner(strings.NewReader(stdout))
	for scanner.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			w.T.Fatalf("a line that is no JSON: %s", scanner.Text())
		}
		lines = append(lines, line)
	}
	return lines, code
}

func (w *world) runAsBefore(args ...string) []map[string]any {
	w.T.Helper()
	lines, code := newAsBefore(w).run(w, args...)
	if code != 0 {
		w.T.Fatalf("configmap-attacher %q: exit %d\n%v", args, code, lines)
	}
	return lines
}

func (w *world) configMap(name string) *corev1.ConfigMap {
	w.T.Helper()
	cm := &corev1.ConfigMap{}
	if err := w.Client.Get(w.T.Context(), w.Key(name), cm); err != nil {
		w.T.Fatal(err)
	}
	return cm
}

func (w *world) newConfigMap(name string, owners ...metav1.OwnerReference) {
	w.T.Helper()
	mustCreate(w.T.Context(), w.T, w.Client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{"app": "demo"}, OwnerReferences: owners},
		Data:       map[string]string{"password": "hunter2"},
	})
}

// TestDropInWaitsForItsRollout: a Job that comes before the Rollout waits for it,
// and says at the debug level what it waits for.
func TestDropInWaitsForItsRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.newConfigMap("early")
	a := newAsBefore(w)
	running := labtest.StartCommand(t, labtest.Command{
		Path: a.program, Args: []string{"-rollout=demo", "-namespace=" + w.Namespace, "-configmaps=early"}, Env: append(a.env, "LOG_LEVEL=debug"),
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		said := running.Stdout()
		return strings.Contains(said, `"level":"debug"`) && strings.Contains(said, "waiting: ") && strings.Contains(said, "does not exist yet"), said
	})
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	if code := running.ExitCode(t, 3*testkit.Patience); code != 0 {
		t.Errorf("exit %d:\n%s", code, running.Stdout())
	}
	if owners := w.configMap("early").OwnerReferences; len(owners) != 1 || owners[0].Kind != "ReplicaSet" {
		t.Errorf("the owners are %v", owners)
	}
}

// TestDropInSpeaksAsBefore: JSON lines with level, msg and time on the standard
// output, a line each for the start, the names and the end; a second run changes
// nothing; contents are never logged.
func TestDropInSpeaksAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Deploy(walkthrough.Release("hunter2", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("hunter2")
	w.AwaitReplicaSet(red)
	a := newAsBefore(w)
	a.env = append(a.env, "LOG_LEVEL=debug")
	args := []string{"--rollout=demo", "-namespace", w.Namespace, "-configmaps", " " + red + ",," + red + ","}

	lines, code := a.run(w, args...)
	if code != 0 {
		t.Fatalf("exit %d: %v", code, lines)
	}
	if first, last := lines[0], lines[len(lines)-1]; first["version"] != "1.0.1" || last["msg"] != "done" {
		t.Errorf("first line %v, last line %v", first, last)
	}
	if second := lines[1]; second["configmaps"] != red || second["rollout"] != "demo" || second["namespace"] != w.Namespace || second["job"] != "job-1" {
		t.Errorf("second line %v", second)
	}
	for _, line := range lines {
		if line["level"] != "info" || line["msg"] == "" || line["time"] == "" {
			t.Errorf("line without level, msg or time: %v", line)
		}
		if strings.Contains(fmt.Sprint(line), "hunter2") {
			t.Errorf("content is logged: %v", line)
		}
	}
	before := w.configMap(red).ResourceVersion
	if _, code := a.run(w, args...); code != 0 || w.configMap(red).ResourceVersion != before {
		t.Errorf("second run: exit %d, version %s, was %s", code, w.configMap(red).ResourceVersion, before)
	}
}

// TestDropInOverTwoDeploys: of two ConfigMaps, a deploy changes one. The other one belongs to
// both ReplicaSets, the newer one controls it, and there is nothing to warn of. It goes with
// the last of its owners.
func TestDropInOverTwoDeploys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAsBefore(w)
	deploy := func(color string) (changed, same string, rs appsv1.ReplicaSet) {
		t.Helper()
		w.Deploy(walkthrough.Release(color, "  same: {kv_data: {color: always}}\nmount: {clashes: last}\nrevisions: {attach: controller}"))
		changed, same = w.ConfigMapOf(color), w.ConfigMapOf("always")
		lines, code := a.run(w, publishedArgs(w, changed+","+same)...)
		if code != 0 {
			t.Fatalf("deploy of %s: exit %d: %v", color, code, lines)
		}
		for _, line := range lines {
			if line["level"] != "info" {
				t.Errorf("deploy of %s: %v", color, line)
			}
		}
		return changed, same, w.AwaitReplicaSet(changed)
	}
	red, _, older := deploy("red")
	blue, same, newer := deploy("blue")
	got := map[string]metav1.OwnerReference{}
	for _, owner := range w.configMap(same).OwnerReferences {
		got[owner.Name] = owner
	}
	want := map[string]metav1.OwnerReference{
		older.Name: {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: older.Name, UID: older.UID, Controller: new(false), BlockOwnerDeletion: new(false)},
		newer.Name: {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: newer.Name, UID: newer.UID, Controller: new(true), BlockOwnerDeletion: new(true)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}

	w.Promote()
	w.AwaitPods(map[string]int{red: 0, blue: 3})
	w.Delete(&older)
	w.AwaitOwners(map[string][]string{blue: {newer.Name}, same: {newer.Name}})
	w.Delete(w.Rollout())
	w.AwaitOwners(map[string][]string{})
}

// TestDropInWithTheSameConfigMap: a deploy that changes no ConfigMap makes a ReplicaSet, which then controls
// the ConfigMap beside the older owner. A Job after which nothing is deployed writes nothing.
func TestDropInWithTheSameConfigMap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAsBefore(w)
	run := func(values string) (cm *corev1.ConfigMap) {
		t.Helper()
		w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}\n"+values))
		lines, code := a.run(w, publishedArgs(w, w.ConfigMapOf("red"))...)
		if code != 0 {
			t.Fatalf("exit %d: %v", code, lines)
		}
		for _, line := range lines {
			if line["level"] != "info" {
				t.Errorf("%v", line)
			}
		}
		return w.configMap(w.ConfigMapOf("red"))
	}
	first := run("")
	second := run("podAnnotations: {build: two}")
	rs := w.ReplicaSets()
	if len(rs) != 2 || second.Name != first.Name {
		t.Fatalf("%d ReplicaSets, ConfigMap %s after %s", len(rs), second.Name, first.Name)
	}
	got := map[string]bool{}
	for _, owner := range second.OwnerReferences {
		got[owner.Name] = *owner.Controller
	}
	if diff := cmp.Diff(map[string]bool{rs[0].Name: false, rs[1].Name: true}, got); diff != "" {
		t.Errorf("which owner is the controller (-want +got):\n%s", diff)
	}
	if third := run("podAnnotations: {build: two}"); third.ResourceVersion != second.ResourceVersion {
		t.Errorf("a Job without a deploy wrote %v", third.OwnerReferences)
	}
}

// TestDropInTriesEveryName: one that is missing, one of another namespace, one
// that somebody else controls, and one that the template does not name.
func TestDropInTriesEveryName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("red")
	rs := w.AwaitReplicaSet(red)
	w.newConfigMap("operator")
	yes := true
	operator := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "operator", UID: w.configMap("operator").UID, Controller: &yes}
	w.newConfigMap("controlled", operator)
	w.newConfigMap("injected")

	lines, code := newAsBefore(w).run(w, "-rollout", "demo", "-namespace", w.Namespace,
		"-configmaps", "missing, other/name,"+red+",controlled,injected")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	want := map[string][]string{red: {rs.Name}, "controlled": {rs.Name, "operator"}, "injected": {rs.Name}, "operator": {}}
	if diff := cmp.Diff(want, w.ConfigMaps()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if c := metav1.GetControllerOf(w.configMap("controlled")); c == nil || c.Name != "operator" {
		t.Errorf("the controller is %v, want the operator", c)
	}
	var fatal, warning []string
	for _, line := range lines {
		switch line["level"] {
		case "fatal":
			fatal = append(fatal, line["msg"].(string))
		case "warning":
			warning = append(warning, line["msg"].(string))
		}
	}
	wantContains(t, fatal, "missing", "same namespace")
	wantContains(t, warning, "in addition to the object's controller", "does not reference configmap/injected")
}

func wantContains(t *testing.T, lines []string, parts ...string) {
	t.Helper()
	all := strings.Join(lines, "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("nothing says %q in:\n%s", part, all)
		}
	}
}

// TestDropInRefusesAnEmptyList: there is nothing to attach.
func TestDropInRefusesAnEmptyList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, code := newAsBefore(w).run(w, "-rollout", "x", "-namespace", w.Namespace, "-configmaps", " , "); code != 1 {
		t.Errorf("an empty list: exit %d, want 1", code)
	}
}

// TestBlockingIsNotPermitted: where admission guards owner references, the owner
// is added without blocking, and is the controller all the same; the permissions that are
// needed at all are in the docs.
func TestBlockingIsNotPermitted(t *testing.T) {
	t.Parallel()
	cluster := labtest.Private(t, labtest.Options{
		With:           []labtest.Component{labtest.ArgoRollouts},
		APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"},
	})
	w := newWorldOn(t, cluster)
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("red")
	rs := w.AwaitReplicaSet(red)
	account := labtest.NewAccount(t, cluster, w.Namespace)
	account.AllowEverywhere(t, append(originalRole(t), labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}})...)
	a := newAsBefore(w)
	a.env[0] = "HOME=" + home(t, account.Kubeconfig)

	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		lines, code := a.run(w, "-rollout", "demo", "-namespace", w.Namespace, "-configmaps", red)
		return code == 0, fmt.Sprint(lines)
	})
	yes, no := true, false
	want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &yes, BlockOwnerDeletion: &no}}
	if diff := cmp.Diff(want, w.configMap(red).OwnerReferences); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}
}
