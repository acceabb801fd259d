package labtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// TierEnv names the environment variable that selects the tier of a test run. Without
// it only [TierTest] runs, so a plain "go test ./..." needs neither root nor packages.
const TierEnv = "LOCKSTEP_TIER"

// Tier is a set of tests. Each tier contains the ones before it.
type Tier string

const (
	// TierTest is "make test": one bare control plane, no root, no Debian packages.
	TierTest Tier = "test"
	// TierAll is "make test-all": everything that CI runs.
	TierAll Tier = "all"
	// TierRelease is "make test-release": everything that a release has to pass.
	TierRelease Tier = "release"
)

// Tiers lists the tiers, the smallest first.
func Tiers() []Tier { return []Tier{TierTest, TierAll, TierRelease} }

// ParseTier parses the name of a tier.
func ParseTier(text string) (Tier, error) {
	if !slices.Contains(Tiers(), Tier(text)) {
		return "", fmt.Errorf("%q isn't a tier of tests: use test, all or release", text)
	}
	return Tier(text), nil
}

// Includes reports whether a run of this tier includes the tests of another one.
func (t Tier) Includes(other Tier) bool {
	return slices.Index(Tiers(), other) <= slices.Index(Tiers(), t)
}

// target is the make target that runs the tier.
func (t Tier) target() string {
	if t == TierTest {
		return "make test"
	}
	return "make test-" + string(t)
}

// SkipReason begins the message of every test that a run skips because it belongs to a later
// tier.
const SkipReason = "this test belongs to "

// In skips a test in runs of smaller tiers. Tests that need a component or a program of a
// later tier don't call it: [Shared], [Private], [Program] and [Need] do.
func In(t testing.TB, tier Tier) {
	t.Helper()
	if !InTier(t, tier) {
		t.Skipf("%s%q", SkipReason, tier.target())
	}
}

// InTier reports whether the run includes the tests of a tier.
func InTier(t testing.TB, tier Tier) bool {
	t.Helper()
	running, err := runningTier()
	if err != nil {
		t.Fatal(err)
	}
	return running.Includes(tier)
}

// Story leaves one test of a directory in "make test" and skips the others there. What all tests of
// the directory begin with calls it: the story shows each day that the whole works, the others show
// details of a program that changes rarely.
func Story(t testing.TB, story string) {
	t.Helper()
	if test, _, _ := strings.Cut(t.Name(), "/"); test != story {
		In(t, TierAll)
	}
}

func runningTier() (Tier, error) {
	text := os.Getenv(TierEnv)
	if text == "" {
		return TierTest, nil
	}
	tier, err := ParseTier(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", TierEnv, err)
	}
	return tier, nil
}

// TierOf is the first tier that needs a program of the lab.
func TierOf(name string) Tier {
	base, release, _ := strings.Cut(name, "@")
	switch {
	case release != "", base == program.GitOps:
		return TierRelease
	case slices.Contains([]string{program.Etcd, program.APIServer, program.ControllerManager, program.Registry}, base):
		return TierTest
	}
	return TierAll
}

// TierPrograms lists the programs of the lab that a tier needs, in the order of need.
func TierPrograms(tier Tier) []string {
	var names []string
	for _, p := range program.All() {
		if tier.Includes(TierOf(p.Name)) {
			names = append(names, p.Name)
		}
	}
	return names
}

// inTierOf skips a test in runs whose tier doesn't build all these programs.
func inTierOf(t testing.TB, programs []string) {
	t.Helper()
	for _, name := range programs {
		In(t, TierOf(name))
	}
}

// Program returns the path of a lab program, such as [program.Helm]. A run whose tier
// doesn't build the program skips the test.
func Program(t testing.TB, name string) string {
	t.Helper()
	return Programs(t, name)[name].Path
}

// Programs returns lab programs by name, as [Program] does.
func Programs(t testing.TB, names ...string) map[string]program.Built {
	t.Helper()
	inTierOf(t, names)
	builder, err := program.NewBuilder(os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	built, err := builder.Build(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return built
}
