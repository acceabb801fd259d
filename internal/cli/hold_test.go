package cli_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// shop is a namespace with an application, and a person who types commands there.
type shop struct{ *testkit.World }

func newShop(t *testing.T) shop {
	t.Helper()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	return shop{w}
}

func (s shop) run(t *testing.T, args ...string) said {
	t.Helper()
	return saying(t, "lockstep", append(args, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig()))
}

func (s shop) annotations(t *testing.T, o client.Object, name string) map[string]string {
	t.Helper()
	s.Get(t, name, o)
	return o.GetAnnotations()
}

// TestHoldAndRelease: a hold is set, kept, replaced and ended, and each time the command says so.
func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Annotate(t, testkit.Web, "other", "stays")
	steps := []struct {
		reason string
		args   []string
		code   int
		says   []string
		holds  string // empty when there must be no hold
	}{
		{"set", []string{"hold", "deploy/web", "release freeze"}, 0, []string{"deployment/web in namespace " + s.Namespace + " held: release freeze; end it with \"lockstep release deployment/web -n " + s.Namespace + " --kubeconfig " + s.Cluster.Kubeconfig() + "\"\n"}, "release freeze"},
		{"the same again", []string{"hold", "deployment/web", " release freeze "}, 0, []string{"held already for this reason, written by lockstep-command at 20"}, "release freeze"},
		{"another reason", []string{"hold", "deployments/web", "audit"}, 1, []string{"deployment/web in namespace " + s.Namespace + ` is held already: "release freeze", written by lockstep-command at 20`, "--overwrite"}, "release freeze"},
		{"it is meant", []string{"hold", "deployment.apps/web", "audit", "--overwrite"}, 0, []string{"held: audit (before: \"release freeze\""}, "audit"},
		{"a blank is no reason", []string{"hold", "deployment/web", " "}, 2, []string{"a reason"}, "audit"},
		{"ended", []string{"release", "deploy/web"}, 0, []string{"deployment/web in namespace " + s.Namespace + `: removed the hold "audit"`, "\nIf a change was reverted", "Released"}, ""},
		{"once more", []string{"release", "deploy/web"}, 0, []string{"deployment/web in namespace " + s.Namespace + ": there is no hold annotation to remove; if an undo removed it, the hold ends now\nIf a change was reverted"}, ""},
	}
	for _, step := range steps {
		got := s.run(t, step.args...)
		for _, want := range step.says {
			if !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: said %q, want %q", step.reason, got.stdout+got.stderr, want)
			}
		}
		annotations := s.annotations(t, &appsv1.Deployment{}, testkit.Web)
		if hold, held := annotations[settings.Hold]; got.code != step.code || hold != step.holds || held != (step.holds != "") || annotations["other"] != "stays" {
			t.Fatalf("%s: exit code %d, want %d; the annotations are %v", step.reason, got.code, step.code, annotations)
		}
	}
	if version := s.annotations(t, &appsv1.Deployment{}, testkit.Web)[settings.Release]; version == "" {
		t.Error("the controller was not asked to accept what was reverted")
	}
}

// TestReasonsStayAsEvents: the reason of a command that writes no annotation for it is an event on
// the object, of the command and not of the controller.
func TestReasonsStayAsEvents(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if got := s.run(t, "release", "deploy/web", "--reason", "it's $HOME"); got.code != 0 || got.stderr != "" {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	if got := s.run(t, "release", "cm/app", "--reason", " "); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	var deployment appsv1.Deployment
	s.Get(t, testkit.Web, &deployment)
	told, err := announce.ReportedIn(t.Context(), s.Client, s.Namespace)
	if err != nil || len(told) > 0 {
		t.Errorf("the controller's events are %v, %v; want none", told, err)
	}
	events, err := announce.ReportedOf(t.Context(), s.Client, s.Namespace, string(deployment.UID))
	if err != nil || len(events) != 1 || events[0].Reason != string(input.ReleasedByHand) || events[0].Note != "it's $HOME" || events[0].By != "lockstep-command" {
		t.Errorf("the events are %+v, %v; want the reason", events, err)
	}
}

// TestHoldOfSources: ConfigMaps and Secrets are held and released by kubectl's names, and the
// controller is asked for nothing.
func TestHoldOfSources(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []struct {
		ref, name, called string
		object            client.Object
	}{{"cm/app", "app", "configmap/app", &corev1.ConfigMap{}}, {"Secrets/db", "db", "secret/db", &corev1.Secret{}}} {
		if got := s.run(t, "hold", c.ref, "migration"); got.code != 0 || !strings.HasPrefix(got.stdout, c.called+" in namespace "+s.Namespace+" held: migration; ") {
			t.Errorf("hold %s: %+v", c.ref, got)
		}
		if held := s.annotations(t, c.object, c.name); held[settings.Hold] != "migration" {
			t.Errorf("%s has %v", c.called, held)
		}
		if got := s.run(t, "release", c.ref); got.code != 0 || !strings.Contains(got.stdout, `removed the hold "migration"`) || strings.Contains(got.stdout, "controller") {
			t.Errorf("release %s: %+v", c.ref, got)
		}
		if got := s.run(t, "release", c.ref); got.code != 0 || got.stdout != c.called+" in namespace "+s.Namespace+": nothing was held\n" {
			t.Errorf("release %s again: %+v", c.ref, got)
		}
		if left := s.annotations(t, c.object.DeepCopyObject().(client.Object), c.name); len(left) != 0 {
			t.Errorf("%s is left with %v", c.called, left)
		}
	}
}

// TestNearNames: a name that does not exist costs one line and exit code 1, with a hint as
// far as the person may list.
func TestNearNames(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []struct{ args, want string }{
		{"hold deploy/webb freeze", "deployment/webb in namespace " + s.Namespace + " not found; did you mean deployment/web?"},
		{"release cm/ap", "configmap/ap in namespace " + s.Namespace + " not found; did you mean configmap/app?"},
		{"release sts/web", "statefulset/web in namespace " + s.Namespace + " not found"},
		{"attach deploy/webb cm/app", "get deployment/webb in namespace " + s.Namespace + ": it does not exist; did you mean deployment/web?"},
	} {
		got := s.run(t, strings.Fields(c.args)...)
		// The list for a hint gives up soon. On a busy machine there may be none, but not each time.
		plain, _, _ := strings.Cut(c.want, "; did you mean")
		for range fewTries {
			if got.stderr != "Error: "+plain+"\n" {
				break
			}
			got = s.run(t, strings.Fields(c.args)...)
		}
		if got.code != 1 || got.stderr != "Error: "+c.want+"\n" {
			t.Errorf("%s: exit code %d, said %q, want %q", c.args, got.code, got.stderr, c.want)
		}
	}
	narrow := labtest.NewAccount(t, s.Cluster, s.Namespace)
	narrow.Allow(t, labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the API server takes a moment to know the rule
		got := saying(t, "lockstep", []string{"release", "deploy/webb", "-n", s.Namespace, "--kubeconfig", narrow.Kubeconfig})
		return got.code == 1 && strings.HasSuffix(got.stderr, " in namespace "+s.Namespace+" not found\n"), "without the permission to list: " + got.stderr
	})
}
