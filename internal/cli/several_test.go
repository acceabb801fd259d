package cli_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// newFleet is a shop with three Deployments, of which web and api have labels of a team, and web and
// api are followed.
func newFleet(t *testing.T) shop {
	t.Helper()
	s := newShop(t)
	s.Create(t, testkit.Deployment("api", "app", "db"), testkit.Deployment("quiet", "app", "db"))
	for _, name := range []string{testkit.Web, "api"} {
		s.Patch(t, &appsv1.Deployment{}, name, `{"metadata":{"labels":{"team":"front"}}}`)
	}
	s.Annotate(t, "quiet", settings.Reload)
	s.Patch(t, &corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"team":"front"}}}`)
	return s
}

// held are the objects that carry a hold, with its reason.
func (s shop) held(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"api", "quiet", testkit.Web} {
		if reason, held := s.annotations(t, &appsv1.Deployment{}, name)[settings.Hold]; held {
			all = append(all, name+"="+reason)
		}
	}
	if reason, held := s.annotations(t, &corev1.ConfigMap{}, "app")[settings.Hold]; held {
		all = append(all, "cm="+reason)
	}
	return all
}

// TestHoldAndReleaseSeveral: names, labels and all of them; what fails for one object doesn't keep
// the others from being done.
func TestHoldAndReleaseSeveral(t *testing.T) {
	t.Parallel()
	s := newFleet(t)
	for _, step := range []struct {
		reason string
		args   []string
		code   int
		says   string
		holds  []string
	}{
		{"names, the reason last", []string{"hold", "deploy/web", "deploy/api", "deployment/web", "freeze"}, 0, "deployment/api in namespace " + s.Namespace + " held: freeze;", []string{"api=freeze", "web=freeze"}},
		{"one fails", []string{"release", "deploy/web", "deploy/nowhere-at-all", "deploy/api"}, 1, "Error: deployment/nowhere-at-all in namespace " + s.Namespace + " not found\nError: 1 of 3 objects failed\n", nil},
		{"a reason by flag", []string{"hold", "deploy/web", "cm/app", "--reason", "deploy/api"}, 0, "", []string{"web=deploy/api", "cm=deploy/api"}},
		{"another reason is refused for both", []string{"hold", "deploy/web", "cm/app", "--reason", "other"}, 1, "Error: 2 of 2 objects failed", []string{"web=deploy/api", "cm=deploy/api"}},
		{"the followed workloads", []string{"release", "--all"}, 0, "deployment/web in namespace " + s.Namespace + ": removed the hold", []string{"cm=deploy/api"}},
		{"a source by its kind", []string{"release", "cm", "-l", "team=front"}, 0, "configmap/app in namespace " + s.Namespace + ": removed the hold", nil},
		{"followed workloads with labels", []string{"hold", "-l", "team=front", "freeze"}, 0, "deployment/web in namespace " + s.Namespace + " held: freeze", []string{"api=freeze", "web=freeze"}},
		{"of one kind", []string{"release", "sts", "-l", "team=front"}, 1, "there is no sts with the labels team=front in namespace " + s.Namespace, []string{"api=freeze", "web=freeze"}},
		{"by label and kind", []string{"release", "deployments", "cm", "-l", "team=front"}, 0, "configmap/app in namespace " + s.Namespace + ": nothing was held\n", nil},
		{"no match", []string{"hold", "-l", "team=none", "freeze"}, 1, "there is no followed workload with the labels team=none", nil},
	} {
		got := s.run(t, step.args...)
		if said := got.stdout + got.stderr; got.code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%s: exit code %d, said %q, want %d and %q", step.reason, got.code, said, step.code, step.says)
		}
		if held := s.held(t); !slices.Equal(held, step.holds) {
			t.Fatalf("%s: held are %q, want %q", step.reason, held, step.holds)
		}
		if strings.Count(got.stdout, "If a change was reverted") > 1 {
			t.Errorf("%s: the controller is named for each object: %s", step.reason, got.stdout)
		}
	}
}

// TestVariablesDontSelect: a command that names its objects is about these, whatever was exported for another one, and it
// says which variables it doesn't read.
func TestVariablesDontSelect(t *testing.T) {
	t.Parallel()
	s := newFleet(t)
	s.Create(t, testkit.Secret("lockstep-installation-key", "key", strings.Repeat("k", 32)))
	everywhere := map[string]string{settings.StopAll: "incident", settings.StopKey(s.Namespace): "freeze"}
	if err := s.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Own, Name: settings.StopName}, Data: everywhere}); err != nil {
		t.Fatal(err)
	}
	own := []string{"--controller-namespace", s.Own}
	for _, step := range []struct {
		reason, args, variables string
		own                     []string
		code                    int
		says, warns             string
		holds                   []string
	}{
		{"not the team", "hold deploy/web freeze", "LOCKSTEP_SELECTOR=team=front", nil, 0, "", "LOCKSTEP_SELECTOR is not read: use --selector", []string{"web=freeze"}},
		{"not the namespace", "hold cm/app freeze", "LOCKSTEP_ALL=true", nil, 0, "", "LOCKSTEP_ALL is not read: use --all", []string{"web=freeze", "cm=freeze"}},
		{"not another reason", "hold deploy/web other", "LOCKSTEP_OVERWRITE=true", nil, 1, "is held already", "LOCKSTEP_OVERWRITE is not read: use --overwrite", []string{"web=freeze", "cm=freeze"}},
		{"a hold is respected", "roll deploy/web", "LOCKSTEP_NOW=true", []string{"--controller-namespace", s.Namespace}, 1, "use --now", "LOCKSTEP_NOW is not read: use --now", []string{"web=freeze", "cm=freeze"}},
		{"only this source", "release cm/app", "LOCKSTEP_ALL=true", nil, 0, "", "LOCKSTEP_ALL is not read", []string{"web=freeze"}},
		{"only this workload", "release deploy/web", "LOCKSTEP_ALL=true", nil, 0, "", "LOCKSTEP_ALL is not read", nil},
		{"one rollout", "roll deploy/web --now", "LOCKSTEP_SELECTOR=team=front", []string{"--controller-namespace", s.Namespace}, 0, " rolled out: ", "LOCKSTEP_SELECTOR is not read", nil},
		{"in step", "roll deploy/web --now", "LOCKSTEP_FORCE=true", []string{"--controller-namespace", s.Namespace}, 0, "shows these versions already", "LOCKSTEP_FORCE is not read", nil},
		{"the stop of everything stays", "resume", "LOCKSTEP_ALL=true", own, 1, "every automatic change stays stopped", "LOCKSTEP_ALL is not read", nil},
		{"one namespace stops", "stop later --timeout 0", "LOCKSTEP_ALL=true", own, 0, "in namespace " + s.Namespace + " is stopped: later", "LOCKSTEP_ALL is not read", nil},
		{"a pod isn't where its controller is", "resume", "POD_NAMESPACE=" + s.Own, nil, 0, "was not stopped for the controller in namespace lockstep-system", "", nil},
	} {
		args := append(strings.Fields(step.args), step.own...)
		got := saying(t, "lockstep", append(args, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig()), step.variables)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) || !strings.Contains(got.stderr, step.warns) {
			t.Errorf("%s: exit code %d, want %d, %q and %q: %+v", step.reason, got.code, step.code, step.says, step.warns, got)
		}
		if held := s.held(t); !slices.Equal(held, step.holds) {
			t.Fatalf("%s: held are %q, want %q", step.reason, held, step.holds)
		}
		if rolled := strings.Count(got.stdout, " rolled out: "); rolled > 1 {
			t.Errorf("%s: %d rollouts", step.reason, rolled)
		}
	}
	want := map[string]string{settings.StopAll: "incident", settings.StopKey(s.Namespace): "later"}
	if left := s.stops(t); !maps.Equal(left, want) {
		t.Errorf("the stops are %v, want %v", left, want)
	}
}

// TestPartOfTheNamespace: what a user can't list may be missing, so the command says so and fails after it did the rest.
func TestPartOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := newFleet(t)
	account := labtest.NewAccount(t, s.Cluster, s.Namespace)
	account.Allow(t, labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "patch"}})
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
	const missing = "Error: workloads may be missing from the selection, because a kind or the record can't be read\n"
	for _, step := range []struct {
		reason string
		args   []string
		says   []string
		holds  []string
	}{
		{"a freeze", []string{"hold", "--all", "freeze"}, []string{"deployment/api in namespace " + s.Namespace + " held: freeze", "deployment/web in namespace " + s.Namespace + " held: freeze", "list statefulsets", "the record is not visible to you", missing}, []string{"api=freeze", "web=freeze"}},
		{"one kind, but the record isn't visible", []string{"release", "deployment", "-l", "team=front"}, []string{"deployment/web in namespace " + s.Namespace + ": removed the hold", "the record is not visible to you", missing}, nil},
		{"nothing is found", []string{"hold", "-l", "team=none", "freeze"}, []string{"list statefulsets", "workloads may be missing", "there is no followed workload with the labels team=none"}, nil},
	} {
		got := saying(t, "lockstep", append(step.args, "-n", s.Namespace, "--kubeconfig", account.Kubeconfig))
		for _, want := range step.says {
			if got.code != 1 || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: exit code %d, said %q and %q, want 1 and %q", step.reason, got.code, got.stdout, got.stderr, want)
			}
		}
		if strings.Contains(got.stderr, "statefulset") && step.args[1] == "deployment" {
			t.Errorf("%s: a kind that wasn't selected is named: %q", step.reason, got.stderr)
		}
		if held := s.held(t); !slices.Equal(held, step.holds) {
			t.Fatalf("%s: held are %q, want %q", step.reason, held, step.holds)
		}
	}
	if got := saying(t, "lockstep", []string{"hold", "deploy/web", "freeze", "-n", s.Namespace, "--kubeconfig", account.Kubeconfig}); got.code != 0 || got.stderr != "" {
		t.Errorf("by name: %+v", got)
	}
}

// TestRollSeveral rolls out what can be, one after the other, and each line says which.
func TestRollSeveral(t *testing.T) {
	t.Parallel()
	s := newFleet(t)
	s.Create(t, testkit.Secret("lockstep-installation-key", "key", strings.Repeat("k", 32)))
	run := func(args ...string) said {
		return s.run(t, append(append([]string{"roll"}, args...), "--controller-namespace", s.Namespace, "--now")...)
	}
	s.Annotate(t, "api", settings.Hold, "freeze")
	got := run("deploy/web", "deploy/nowhere-at-all", "deploy/quiet")
	if got.code != 1 || strings.Count(got.stdout, " rolled out: ") != 2 || !strings.Contains(got.stderr, "Error: deployment/nowhere-at-all in namespace "+s.Namespace+" not found\nError: 1 of 3 objects failed\n") {
		t.Errorf("by name: %+v", got)
	}
	s.Make(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, annotations: {lockstep.dev/reload: auto}}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]}}}}}}`)
	if got := run("cronjob/nightly"); got.code != 1 || !strings.Contains(got.stderr, "its next Job loads the new content") {
		t.Errorf("a CronJob by name: %+v", got)
	}
	got = run("--all", "--force")
	if got.code != 0 || strings.Count(got.stdout, " rolled out: ") != 2 {
		t.Errorf("all: %+v", got)
	}
}

// TestSelectionMistakes: what is ambiguous is refused before anything is done.
func TestSelectionMistakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"release":                             "name at least one workload, ConfigMap, Secret or namespace, such as deployment/web, or select workloads with -l or --all",
		"roll":                                "name at least one workload, such as deployment/web",
		"release deploy/web --all":            `"deploy/web": names and -l or --all exclude each other`,
		"release --all -l app=web":            "--all and --selector exclude each other",
		"hold namespace --all freeze":         "--all with namespaces would reach every namespace of the cluster",
		"release ns --all":                    "--all with namespaces would reach every namespace of the cluster",
		"release ns -l team=web -n shop":      "a namespace isn't in another one: omit -n",
		"hold deploy/web deploy/api":          "a reason is missing",
		"hold deploy/web deploymnt/api":       "a reason is missing",
		"hold deployment --all":               "a reason is missing",
		"hold deploy/web release freeze":      `workload "release": want KIND/NAME`,
		"hold deploy/web app --reason freeze": `workload "app": want KIND/NAME`,
		"roll cm/app":                         "unknown kind",
	} {
		if got := saying(t, "lockstep", strings.Fields(args)); got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit code %d, said %q, want %q", args, got.code, got.stderr, want)
		}
	}
}
