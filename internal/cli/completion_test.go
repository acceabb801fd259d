package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestCompletion asks as a shell does, on a real API server.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const noSpace, word = ":6", ":4" // directives of Cobra: no file names, and no blank after it
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Kinds":      {"first the kind", []string{"roll", ""}, []string{"deployment/", "statefulset/", "daemonset/", "cronjob/", "rollout/", noSpace}},
		"Begun":      {"what begins so", []string{"roll", "de"}, []string{"deployment/", noSpace}},
		"Names":      {"then names, the kind as it was typed", []string{"roll", "deploy/"}, []string{"deploy/web", word}},
		"Name":       {"the one that begins so", []string{"release", "Deployment/w"}, []string{"Deployment/web", word}},
		"Other":      {"none of that kind", []string{"roll", "sts/"}, []string{word}},
		"Unknown":    {"no such kind", []string{"roll", "pod/"}, []string{word}},
		"Source":     {"ConfigMaps can be held", []string{"hold", "cm/a"}, []string{"cm/app", word}},
		"NoSource":   {"and not rolled", []string{"roll", "con"}, []string{noSpace}},
		"Reason":     {"a reason is free text", []string{"hold", "deploy/web", ""}, []string{word}},
		"Further":    {"another object to hold", []string{"hold", "deploy/web", "cm/a"}, []string{"cm/app", word}},
		"Twice":      {"each object once", []string{"release", "deploy/web", "deploy/"}, []string{word}},
		"Objects":    {"what is attached", []string{"attach", "deploy/web", "secret/"}, []string{"secret/db", word}},
		"MoreKinds":  {"a kind that a flag names", []string{"roll", "--kind", "v1/ReplicationController=spec.template", "repl"}, []string{"replicationcontroller/", noSpace}},
		"Namespaces": {"of any command", []string{"images", "-n", s.Namespace[:len(s.Namespace)-1]}, []string{s.Namespace, word}},
		"Formats":    {"no namespaces where none are meant", []string{"controller", ""}, []string{word}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"__complete"}, tc.args...)
			// A completion gives up soon, because somebody waits at a prompt: on a busy machine it may.
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				got := saying(t, "lockstep", args, "LOCKSTEP_KUBECONFIG="+s.Cluster.Kubeconfig(), "LOCKSTEP_NAMESPACE="+s.Namespace)
				diff := cmp.Diff(tc.want, strings.Fields(got.stdout))
				why := tc.reason + " (-want +got):\n" + diff + got.stderr
				if diff != "" && !strings.Contains(got.stderr, "deadline exceeded") {
					t.Fatal(why)
				}
				return diff == "", why
			})
		})
	}
}

// TestCompletionWithoutACluster offers nothing, and does not fail.
func TestCompletionWithoutACluster(t *testing.T) {
	t.Parallel()
	got := saying(t, "lockstep", []string{"__complete", "roll", "--kubeconfig", t.TempDir() + "/none", "deploy/"})
	if got.code != 0 || got.stdout != ":4\n" || !strings.Contains(got.stderr, "none") {
		t.Errorf("%+v", got)
	}
}
