package settings_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestFollows(t *testing.T) {
	t.Parallel()
	intent := func(reload string) settings.Intent {
		if reload == "" {
			return settings.ForWorkload(nil, nil, settings.Defaults{})
		}
		return settings.ForWorkload(on(settings.Reload, reload), nil, settings.Defaults{})
	}
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason     string
		reload     string
		own        string
		referenced bool
		want       bool
	}{
		"Auto":                    {"auto follows what is referenced", "auto", "", true, true},
		"AutoUnreferenced":        {"and nothing else", "auto", "", false, false},
		"Listed":                  {"a list needs no reference", "configmap/app", "", false, true},
		"ListedOther":             {"a list without auto follows nothing else", "configmap/other", "", true, false},
		"Glob":                    {"a pattern is a list", "configmap/a*", "", false, true},
		"Never":                   {"never is never", "never", "auto", true, false},
		"Unset":                   {"nobody asked", "", "", true, false},
		"SourceAsks":              {"a source may ask for everybody who references it", "", "auto", true, true},
		"SourceAsksStrangers":     {"but not for others", "", "auto", false, false},
		"SourceRefuses":           {"a source may refuse", "auto", "never", true, false},
		"WorkloadNamesTheRefuser": {"what a workload names itself wins", "configmap/app", "never", true, true},
		"SourceAsksAListing":      {"a source that asks is followed beside a list", "configmap/other", "auto", true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var own settings.Source
			if tc.own != "" {
				own = settings.ForSource(on(settings.Reload, tc.own))
			}
			if got := intent(tc.reload).Follows(app, tc.referenced, own); got != tc.want {
				t.Errorf("%s: Follows is %t", tc.reason, got)
			}
		})
	}
}

func TestForSource(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        settings.Source
	}{
		"Nothing": {"most sources say nothing", nil, settings.Source{}},
		"Auto":    {"asks", on(settings.Reload, " auto"), settings.Source{Mode: settings.Follow}},
		"Never":   {"refuses", on(settings.Reload, "never"), settings.Source{Mode: settings.Never}},
		"Unknown": {"an unknown word asks for nothing", on(settings.Reload, "yes"), settings.Source{}},
		"Held":    {"held with a reason", on(settings.Hold, "audit"), settings.Source{Held: true, HeldBy: "audit"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := settings.ForSource(tc.annotations); got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestScopeProblems(t *testing.T) {
	t.Parallel()
	spaced := " never "
	for value, problem := range map[string]bool{"auto": false, spaced: false, "": true, "yes": true, "configmap/app": true} {
		got := settings.ScopeProblems(on(settings.Reload, value))
		if (len(got) > 0) != problem {
			t.Errorf("%q on a namespace gives the problems %v", value, got)
		}
	}
	if got := settings.ScopeProblems(nil); got != nil {
		t.Errorf("no annotation gives the problems %v", got)
	}
}

// FuzzForWorkload: nothing panics; every setting is either understood or a
// problem that names it; and a workload with a problem can be told from one
// without.
func FuzzForWorkload(f *testing.F) {
	f.Add("auto", "5s", "true", "")
	f.Add("configmap/a-[x,secret/b", "-1ns", "TRUE", "why")
	f.Add("never", "", "", "\xff")
	f.Fuzz(func(t *testing.T, reload, quiet, observe, hold string) {
		workload := map[string]string{settings.Reload: reload, settings.Quiet: quiet, settings.Observe: observe, settings.Hold: hold}
		in := settings.ForWorkload(workload, nil, settings.Defaults{Quiet: 1})
		if in.Quiet < 0 {
			t.Errorf("a window of %s", in.Quiet)
		}
		if !in.Held || in.HeldBy != hold {
			t.Errorf("the hold %q is read as %q", hold, in.HeldBy)
		}
		understood := in.Mode == settings.Never || in.Mode == settings.Follow && (in.Auto || len(in.Listed) > 0)
		if !understood && !slices.ContainsFunc(in.Mistakes.Problems, func(p settings.Problem) bool { return p.Key == settings.Reload }) {
			t.Errorf("%q is neither understood nor a problem", reload)
		}
		for _, p := range in.Mistakes.Problems {
			if diff := cmp.Diff(workload[p.Key], p.Value); diff != "" || p.Accepted == "" {
				t.Errorf("problem %+v does not show the value: %s", p, diff)
			}
		}
		for _, p := range in.Listed {
			p.Matches(input.ConfigMap("app"))
		}
	})
}
