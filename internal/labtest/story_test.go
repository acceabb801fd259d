package labtest_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// named is a test of another name, which notes that it would be skipped.
type named struct {
	testing.TB

	name    string
	skipped bool
}

func (n *named) Name() string         { return n.name }
func (n *named) Skipf(string, ...any) { n.skipped = true }

func TestStory(t *testing.T) {
	for name, c := range map[string]struct {
		tier    labtest.Tier
		test    string
		skipped bool
	}{
		"the story":                   {labtest.TierTest, "TestDefaults", false},
		"a part of it":                {labtest.TierTest, "TestDefaults/Pause", false},
		"another test":                {labtest.TierTest, "TestUndo", true},
		"a name that begins the same": {labtest.TierTest, "TestDefaultsOfToday", true},
		"another test in CI":          {labtest.TierAll, "TestUndo", false},
	} {
		t.Setenv(labtest.TierEnv, string(c.tier))
		n := &named{TB: t, name: c.test}
		labtest.Story(n, "TestDefaults")
		if n.skipped != c.skipped {
			t.Errorf("%s: skipped %t, want %t", name, n.skipped, c.skipped)
		}
	}
}
