package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

// fewTries is how often a test repeats a command whose answer came too late for a user.
const fewTries = 14

// kubeconfig is a file whose context has the namespace of the shop.
func (s shop) kubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = s.Namespace
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCompletion asks as a shell does, on a real API server.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	file := s.kubeconfig(t)
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
			complete := func() said {
				return saying(t, "lockstep", args, "LOCKSTEP_KUBECONFIG="+file)
			}
			got := complete()
			// A completion gives up soon, because a user waits at a prompt. On a busy machine it may, but not each time.
			for range fewTries {
				if !strings.Contains(got.stderr, "deadline exceeded") {
					break
				}
				got = complete()
			}
			if diff := cmp.Diff(tc.want, strings.Fields(got.stdout)); diff != "" {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, diff, got.stderr)
			}
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
