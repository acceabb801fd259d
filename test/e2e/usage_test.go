package e2e

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// nowhere is the environment of a machine that knows no cluster.
func nowhere(t *testing.T) []string {
	t.Helper()
	return []string{"KUBECONFIG=", "HOME=" + t.TempDir(), "KUBERNETES_SERVICE_HOST=", "KUBERNETES_SERVICE_PORT="}
}

func TestUsedWrongly(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		env    []string
		says   []string
		lines  int // at most; 0 means any number
	}{
		"NoCluster": {
			reason: "one line says what was looked for and what to do",
			args:   []string{"controller"},
			says:   []string{"--kubeconfig", "$KUBECONFIG", ".kube/config", "service account", "run in a pod"}, lines: 1,
		},
		"NoSuchKubeconfig": {
			reason: "a file that is not there is named",
			args:   []string{"controller", "--kubeconfig", "/no/such/file"}, says: []string{"/no/such/file"}, lines: 1,
		},
		"UnknownFlag": {
			reason: "the flag that may be meant, the usage line of the command, and where the help is",
			args:   []string{"controller", "--max-dealy", "5s"}, says: []string{"--max-dealy; did you mean --max-delay?", `"lockstep controller --help"`}, lines: 3,
		},
		"BadValue":       {reason: "a value that is none", args: []string{"controller", "--quiet", "soon"}, says: []string{"--quiet", "soon"}},
		"UnknownCommand": {reason: "which one is unknown", args: []string{"controler"}, says: []string{`"controler"; did you mean controller?`}, lines: 2},
		"Argument":       {reason: "what would be ignored is refused", args: []string{"controller", "now"}, says: []string{`"now"`}},
		"BadVariable":    {reason: "the variable is named", args: []string{"controller"}, env: []string{"LOCKSTEP_QUIET=soon"}, says: []string{"LOCKSTEP_QUIET", "soon"}},
		"BadLogLevel":    {reason: "what is accepted", args: []string{"controller", "--log-level", "loud"}, says: []string{"loud", "debug, info, warn or error"}},
		"BadNamespace":   {reason: "not a name", args: []string{"controller", "--own-namespace", "A_B"}, says: []string{"A_B"}},
		"CrossedDelays":  {reason: "a bound below what it bounds", args: []string{"controller", "--max-delay", "1s"}, says: []string{"maximum delay 1s"}},
	}
	binary := labtest.Binary(t, "./cmd/lockstep")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary, Args: tc.args, Env: append(nowhere(t), tc.env...)})
			if code != 2 {
				t.Errorf("%s: exit code %d, want 2", tc.reason, code)
			}
			if stdout != "" {
				t.Errorf("%s: a mistake is told on standard output: %q", tc.reason, stdout)
			}
			for _, text := range tc.says {
				if !strings.Contains(stderr, text) {
					t.Errorf("%s: %q is not said in\n%s", tc.reason, text, stderr)
				}
			}
			if lines := strings.Count(stderr, "\n"); tc.lines > 0 && lines > tc.lines {
				t.Errorf("%s: %d lines, want %d:\n%s", tc.reason, lines, tc.lines, stderr)
			}
		})
	}
}

func TestUsedRightly(t *testing.T) {
	t.Parallel()
	binary := labtest.Binary(t, "./cmd/lockstep")
	for name, want := range map[string]string{"version": "lockstep " + labtest.Version, "--version": "lockstep " + labtest.Version, "--help": "lockstep.dev/reload: auto", "controller --help": "--max-delay"} {
		stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary, Args: strings.Fields(name), Env: nowhere(t)})
		if code != 0 || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("lockstep %s: exit code %d, error %q, output\n%s", name, code, stderr, stdout)
		}
	}
}
