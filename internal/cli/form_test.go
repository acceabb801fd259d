package cli_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// TestFormHasAnOldName: for one release the old name works, with a warning, and the new
// one wins over it.
func TestFormHasAnOldName(t *testing.T) {
	t.Parallel()
	const warning, noSuchForm, noCluster = "has been deprecated, use --form", `--form "label"`, "kubeconfig"
	cases := map[string]struct {
		reason string
		args   string
		env    map[string]string
		says   []string
		warns  bool
	}{
		"New":         {"no warning", "roll deployment/web --form label", nil, []string{noSuchForm}, false},
		"Old":         {"still read", "roll deployment/web --strategy label", nil, []string{noSuchForm}, true},
		"Variable":    {"also from the environment", "controller", map[string]string{"LOCKSTEP_STRATEGY": "label"}, []string{noSuchForm}, true},
		"NewWins":     {"a flag wins over the old variable", "controller --form env --kubeconfig /none", map[string]string{"LOCKSTEP_STRATEGY": "label"}, []string{noCluster}, true},
		"NewVariable": {"so does the new variable", "controller --kubeconfig /none", map[string]string{"LOCKSTEP_STRATEGY": "label", "LOCKSTEP_FORM": "env"}, []string{noCluster}, true},
		"Controller":  {"of both commands", "controller --strategy label", nil, []string{noSuchForm}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			code := cli.Run(t.Context(), strings.Fields(tc.args), cli.Environment{Stdout: &said, Stderr: &said, Lookup: func(name string) (string, bool) {
				value, set := tc.env[name]
				return value, set
			}})
			if code != 2 || strings.Contains(said.String(), warning) != tc.warns {
				t.Errorf("%s: exit code %d, want 2 and a warning: %t\n%s", tc.reason, code, tc.warns, &said)
			}
			for _, text := range tc.says {
				if !strings.Contains(said.String(), text) {
					t.Errorf("%s: it does not say %q\n%s", tc.reason, text, &said)
				}
			}
		})
	}
}
