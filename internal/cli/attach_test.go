package cli_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// TestAttachRefusesBeforeItAsks: what is wrong with a command line is said
// without a cluster, with exit code 2.
func TestAttachRefusesBeforeItAsks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args string
		want string
	}{
		"nothing":            {"attach", "no workload: want KIND/NAME and at least one OBJECT"},
		"empty list":         {"attach rollout/web", "no objects"},
		"only commas":        {"attach rollout/web ,,", "no objects"},
		"unknown kind":       {"attach pod/web configmap/a", `workload "pod/web": unknown kind "pod", want one of deployment (deploy), `},
		"no kind":            {"attach web configmap/a", `workload "web": want KIND/NAME`},
		"object kind":        {"attach rollout/web ingress/a", `object "ingress/a"`},
		"bare object":        {"attach rollout/web a", `object "a": want configmap/NAME or secret/NAME`},
		"cross-namespace":    {"attach -n shop rollout/web configmap/other/a", "it is in namespace other, not shop: an object and its owner must be in the same namespace"},
		"workload elsewhere": {"attach -n shop rollout/other/web configmap/a", "it is in namespace other, not shop"},
		"bad name":           {"attach rollout/web configmap/A_B", "invalid name"},
		"bad namespace":      {"attach -n A rollout/web configmap/a", `namespace "A"`},
		"bad timeout":        {"attach --timeout 0s rollout/web configmap/a", "--timeout 0s: must be positive"},
		"bad flag":           {"attach --bogus", "unknown flag: --bogus"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			code := cli.Run(t.Context(), strings.Fields(c.args), cli.Environment{
				Stdout: &stdout, Stderr: &stderr, Lookup: func(string) (string, bool) { return "", false },
			})
			if code != 2 || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit %d, want 2; said %q, want %q", code, stderr.String(), c.want)
			}
		})
	}
}

// TestConfigmapAttacherByNameAndByArgument: both ways lead to the same program.
func TestConfigmapAttacherByNameAndByArgument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		program string
		args    []string
	}{
		{"/go/bin/configmap-attacher", []string{"-rollout", "x"}},
		{"/usr/bin/lockstep", []string{"configmap-attacher", "-rollout", "x"}},
	} {
		var stderr strings.Builder
		code := cli.Run(t.Context(), c.args, cli.Environment{
			Program: c.program, Stdout: &stderr, Stderr: &stderr, Lookup: func(string) (string, bool) { return "", false },
		})
		if code != 1 || !strings.Contains(stderr.String(), "-configmaps string") {
			t.Errorf("%s %q: exit %d, said %q", c.program, c.args, code, stderr.String())
		}
	}
}

// TestRunsShareNothing: what the libraries keep for the whole process is set by
// the program, not by a command; the race detector sees it otherwise.
func TestRunsShareNothing(t *testing.T) {
	t.Parallel()
	var commands sync.WaitGroup
	for range 8 {
		commands.Go(func() {
			var stderr strings.Builder
			code := cli.Run(t.Context(), []string{"attach", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "rollout/web", "configmap/a"}, cli.Environment{
				Stdout: &stderr, Stderr: &stderr, Lookup: func(string) (string, bool) { return "", false },
			})
			if code != 2 {
				t.Errorf("exit %d, want 2; said %q", code, stderr.String())
			}
		})
	}
	commands.Wait()
}
