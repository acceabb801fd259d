package ask_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// TestServedByReads: commands read the annotations that the controller reads.
func TestServedByReads(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	reads := settings.Native{Reads: []settings.ReloadWords{stakater.Translator{Words: stakater.Words{Keys: keys}}}}
	for name, tc := range map[string]struct {
		words settings.Native
		want  string
	}{"Off": {}, "On": {reads, "auto"}} {
		served, err := ask.ServedBy(t.Context(), nil, []installation.Found{{Configured: installation.Configured{Words: tc.words}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := served.Words(settings.Defaults{}).OfWorkload("Deployment", map[string]string{keys.Auto: "true"}, nil)[settings.Reload]; got != tc.want {
			t.Errorf("%s: it is read as %q, want %q", name, got, tc.want)
		}
	}
}
