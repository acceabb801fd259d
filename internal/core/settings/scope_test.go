package settings_test

import (
	"slices"
	"strings"
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
		"Except":                  {"auto except one", "auto, !configmap/app", "", true, false},
		"ExceptOther":             {"the others are followed", "auto, !configmap/other", "", true, true},
		"ExceptKind":              {"auto of the other kind only", "auto, !configmap/*", "", true, false},
		"ExceptBeforeAuto":        {"auto may come last", "!configmap/app, auto", "", true, false},
		"ExceptGlob":              {"an exception applies to what precedes it", "configmap/a*, !configmap/app", "", true, false},
		"ListedAfterExcept":       {"and not to what follows it", "auto, !configmap/*, configmap/a*", "", false, true},
		"ExceptSourceAsks":        {"the workload's word counts, whatever the source asks for", "!configmap/app", "auto", true, false},
		"ExceptOnly":              {"an exception doesn't ask for anything", "!configmap/other", "", true, false},
		"Search":                  {"a workload that searches finds what matches", "search", "match", true, true},
		"SearchAuto":              {"and what asks for everybody", "search", "auto", true, true},
		"SearchNothing":           {"and nothing else", "search", "", true, false},
		"SearchUnreferenced":      {"and only what it references", "search", "match", false, false},
		"MatchUnsearched":         {"a match is for those that search", "configmap/other", "match", true, false},
		"SearchExcept":            {"exceptions count for a search as well", "search, !configmap/app", "match", true, false},
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

// TestExceptionsAlone: an annotation that only leaves out sources leaves the rest to the
// namespace and the controller.
func TestExceptionsAlone(t *testing.T) {
	t.Parallel()
	in := settings.ForWorkload(on(settings.Reload, "!secret/*"), nil, settings.Defaults{Auto: true})
	if !in.Follows(input.ConfigMap("app"), true, settings.Source{}) || in.Follows(input.Secret("db"), true, settings.Source{}) {
		t.Errorf("with auto for all workloads, it reads as %+v", in)
	}
	if in = settings.ForWorkload(on(settings.Reload, "!secret/*"), on(settings.Reload, "never"), settings.Defaults{Auto: true}); in.Mode != settings.Never {
		t.Errorf("in a namespace that refuses, the mode is %d", in.Mode)
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
		"Match":   {"for those that search", on(settings.Reload, "match "), settings.Source{Match: true}},
		"Unknown": {"an unknown word asks for nothing", on(settings.Reload, "yes"), settings.Source{}},
		"Held":    {"held with a reason", on(settings.Hold, "audit"), settings.Source{Held: true, HeldBy: "audit"}},
		"Ramp":    {"a leaked credential can't wait", on(settings.Ramp, "off "), settings.Source{NoRamp: true}},
		"RampOn":  {"only off has a meaning", on(settings.Ramp, "no"), settings.Source{}},
		"Resume":  {"a failure that is acceptable", on(settings.Resume, "77ab01c9de"), settings.Source{Resume: []string{"77ab01c9de"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, settings.ForSource(tc.annotations)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSourceProblems(t *testing.T) {
	t.Parallel()
	spaced := " never "
	for value, problem := range map[string]bool{"auto": false, spaced: false, "match": false, "search": true, "": true, "yes": true, "configmap/app": true} {
		got := settings.SourceProblems(on(settings.Reload, value))
		if (len(got) > 0) != problem {
			t.Errorf("%q gives the problems %v", value, got)
		}
	}
	for key, values := range map[string]map[string]bool{
		settings.Ramp:   {"off": false, "on": true, "false": true, "": true},
		settings.Resume: {"77ab01c9de": false, "77ab01c9de, 0123456789": false, "all": true, "": true, "77ab": true, strings.Repeat("77ab01c9de,", 17): true},
	} {
		for value, problem := range values {
			if got := settings.SourceProblems(on(key, value)); (len(got) == 1) != problem {
				t.Errorf("%s: %q gives the problems %v", key, value, got)
			}
		}
	}
	if got := settings.SourceProblems(nil); got != nil {
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
		understood := in.Mode == settings.Never || in.Mode == settings.Follow && (in.Auto || in.Search || len(in.Listed) > 0) || len(in.Except) > 0
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
