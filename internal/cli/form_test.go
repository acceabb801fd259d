package cli_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// TestFormIsChecked on the command line and from the environment.
func TestFormIsChecked(t *testing.T) {
	t.Parallel()
	for args, env := range map[string]map[string]string{
		"roll deployment/web --form label": nil,
		"controller --form label":          nil,
		"controller":                       {"LOCKSTEP_FORM": "label"},
	} {
		var said strings.Builder
		code := cli.Run(t.Context(), strings.Fields(args), cli.Environment{Stdout: &said, Stderr: &said, Lookup: func(name string) (string, bool) {
			value, set := env[name]
			return value, set
		}})
		if code != 2 || !strings.Contains(said.String(), `--form "label"`) {
			t.Errorf("%s: exit code %d, want 2 and the wrong value\n%s", args, code, &said)
		}
	}
}
