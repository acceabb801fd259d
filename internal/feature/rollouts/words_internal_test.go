package rollouts

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestVersionsInWords: a version that isn't known leaves no gap in a message.
func TestVersionsInWords(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	unknown := input.Finding{ID: app, Bars: []input.Bar{{Reason: input.Undone, By: "1"}}}
	for name, c := range map[string]struct{ got, want string }{
		"Reverted": {revertedInWords([]input.Finding{unknown}), "configmap/app was reverted: new pods start from revision 1"},
		"Versions": {versions([]input.Finding{unknown}), "configmap/app"},
		"Changes":  {changes([]input.Finding{unknown}), "configmap/app unknown -> unknown"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
