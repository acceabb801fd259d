package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const quiet = 5 * time.Second

func on(key, value string) map[string]string {
	return map[string]string{key: value}
}

func TestForWorkload(t *testing.T) {
	t.Parallel()
	follow := settings.Intent{Mode: settings.Follow, Auto: true, Quiet: quiet}
	listed := func(patterns ...settings.Pattern) settings.Intent {
		return settings.Intent{Mode: settings.Follow, Listed: patterns, Quiet: quiet}
	}
	with := func(in settings.Intent, change func(*settings.Intent)) settings.Intent {
		change(&in)
		return in
	}
	app := settings.Pattern{Kind: input.KindConfigMap, Name: "app"}
	dbs := settings.Pattern{Kind: input.KindSecret, Name: "db-*"}
	cases := map[string]struct {
		reason              string
		workload, namespace map[string]string
		defaults            settings.Defaults
		want                settings.Intent
	}{
		"Nothing":          {reason: "nothing asks for anything", want: settings.Intent{Auto: true, Quiet: quiet}},
		"Auto":             {reason: "the workload asks", workload: on(settings.Reload, "auto"), want: follow},
		"AutoWithSpaces":   {reason: "spaces are no letters", workload: on(settings.Reload, " auto\n"), want: follow},
		"Never":            {reason: "the workload refuses", workload: on(settings.Reload, " never "), want: settings.Intent{Mode: settings.Never, Quiet: quiet}},
		"List":             {reason: "these and no others", workload: on(settings.Reload, "configmap/app, secret/db-*"), want: listed(app, dbs)},
		"ListAndAuto":      {reason: "these and what is referenced", workload: on(settings.Reload, "configmap/app,auto"), want: with(listed(app), func(in *settings.Intent) { in.Auto = true })},
		"TrailingComma":    {reason: "an empty element means nothing", workload: on(settings.Reload, "configmap/app,,"), want: listed(app)},
		"NamespaceAuto":    {reason: "a namespace asks for its workloads", namespace: on(settings.Reload, "auto"), want: follow},
		"NamespaceNever":   {reason: "a namespace refuses for its workloads", namespace: on(settings.Reload, "never"), want: settings.Intent{Mode: settings.Never, Auto: true, Quiet: quiet}},
		"WorkloadWins":     {reason: "the workload knows best", workload: on(settings.Reload, "never"), namespace: on(settings.Reload, "auto"), defaults: settings.Defaults{Auto: true}, want: settings.Intent{Mode: settings.Never, Quiet: quiet}},
		"WorkloadWinsToo":  {reason: "also when it asks", workload: on(settings.Reload, "auto"), namespace: on(settings.Reload, "never"), want: follow},
		"ListBeatsDefault": {reason: "a list is an answer: nothing else is followed", workload: on(settings.Reload, "configmap/app"), namespace: on(settings.Reload, "auto"), defaults: settings.Defaults{Auto: true}, want: listed(app)},
		"NamespaceWins":    {reason: "the namespace beats the controller", namespace: on(settings.Reload, "never"), defaults: settings.Defaults{Auto: true}, want: settings.Intent{Mode: settings.Never, Auto: true, Quiet: quiet}},
		"ControllerAuto":   {reason: "the controller asks for everybody", defaults: settings.Defaults{Auto: true}, want: follow},
		"NamespaceList": {reason: "a list on a namespace has no meaning and is warned of", namespace: on(settings.Reload, "configmap/app"), defaults: settings.Defaults{Auto: true}, want: with(follow, func(in *settings.Intent) {
			in.Mistakes.Warnings = []settings.Problem{{Key: settings.Reload, Value: "configmap/app", Accepted: "auto or never"}}
		})},
		"Misspelt":         {reason: "what begins like ours and is none was meant for us", workload: map[string]string{settings.Reload: "auto", settings.Prefix + "relaod": "never", "example.org/relaod": ""}, want: with(follow, func(in *settings.Intent) { in.Mistakes.Unknown = []string{"lockstep.dev/relaod"} })},
		"Quiet":            {reason: "its own window", workload: map[string]string{settings.Reload: "auto", settings.Quiet: "1m30s"}, want: with(follow, func(in *settings.Intent) { in.Quiet = 90 * time.Second })},
		"QuietZero":        {reason: "no window at all", workload: map[string]string{settings.Reload: "auto", settings.Quiet: "0s"}, want: with(follow, func(in *settings.Intent) { in.Quiet = 0 })},
		"Hold":             {reason: "any text is a reason", workload: map[string]string{settings.Reload: "auto", settings.Hold: "release freeze"}, want: with(follow, func(in *settings.Intent) { in.Held, in.HeldBy = true, "release freeze" })},
		"HoldEmpty":        {reason: "also none", workload: map[string]string{settings.Reload: "auto", settings.Hold: ""}, want: with(follow, func(in *settings.Intent) { in.Held = true })},
		"Observe":          {reason: "the workload wants to be told only", workload: map[string]string{settings.Reload: "auto", settings.Observe: "true"}, want: with(follow, func(in *settings.Intent) { in.Observe = true })},
		"ObserveNamespace": {reason: "the namespace wants to be told only", workload: on(settings.Reload, "auto"), namespace: on(settings.Observe, "true"), want: with(follow, func(in *settings.Intent) { in.Observe = true })},
		"ObserveUnclear": {reason: "a namespace that says it badly wants nothing to be written", workload: on(settings.Reload, "auto"), namespace: on(settings.Observe, "yes"), want: with(follow, func(in *settings.Intent) {
			in.Observe = true
			in.Mistakes.Warnings = []settings.Problem{{Key: settings.Observe, Value: "yes", Accepted: "true or false"}}
		})},
		"ObserveIsAVow": {reason: "an observing controller writes nothing, whatever a workload says", workload: map[string]string{settings.Reload: "auto", settings.Observe: "false"}, defaults: settings.Defaults{Observe: true}, want: with(follow, func(in *settings.Intent) { in.Observe = true })},
		"Enforce":       {reason: "no digest of another writer is wanted", workload: on(settings.Enforce, " true"), want: settings.Intent{Auto: true, Quiet: quiet, Enforce: true}},
		"EnforceNot":    {reason: "as without it", workload: on(settings.Enforce, "false"), want: settings.Intent{Auto: true, Quiet: quiet}},
		"Evict":         {reason: "its own way to be moved", workload: map[string]string{settings.Reload: "auto", settings.Strategy: " evict"}, want: with(follow, func(in *settings.Intent) { in.Strategy = settings.StrategyEvict })},
		"Refresh":       {reason: "its own way to be moved", workload: map[string]string{settings.Reload: "auto", settings.Strategy: "refresh"}, want: with(follow, func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh })},
		"Release":       {reason: "up to this version", workload: map[string]string{settings.Reload: "auto", settings.Release: " 4711 "}, want: with(follow, func(in *settings.Intent) { in.Release = 4711 })},
		"Stranger":      {reason: "other tools' annotations mean nothing here", workload: on("reloader.example.com/auto", "true"), want: settings.Intent{Auto: true, Quiet: quiet}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.defaults.Quiet = quiet
			if tc.want.Strategy == "" {
				tc.want.Strategy = settings.StrategyTemplate
			}
			got := settings.ForWorkload(tc.workload, tc.namespace, tc.defaults)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryBadValueIsAProblem: what is wrong names the key, the value and what
// would be accepted, because that is all that a person sees in the event.
func TestEveryBadValueIsAProblem(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, key, value string
		accepted           []string
	}{
		"Word":             {"a word that is none of ours", settings.Reload, "yes", []string{"auto", "never", "configmap/", "secret/"}},
		"Empty":            {"an empty list is a mistake, not a wish", settings.Reload, "", []string{"auto", "never"}},
		"Commas":           {"so is a list of nothing", settings.Reload, " , ,", []string{"auto", "never"}},
		"KindOnly":         {"which one?", settings.Reload, "configmap/", []string{"configmap/"}},
		"BareName":         {"which kind?", settings.Reload, "app", []string{"configmap/", "secret/"}},
		"OtherKind":        {"not an input", settings.Reload, "deployment/web", []string{"configmap/", "secret/"}},
		"OneBadOfTwo":      {"half a list is not what was meant", settings.Reload, "configmap/app,secret", []string{"configmap/"}},
		"NeverInAList":     {"never is no element", settings.Reload, "configmap/app,never", []string{"never"}},
		"NoName":           {"a name that no object can have", settings.Reload, "configmap/App_1", []string{"configmap/"}},
		"LongName":         {"one that is too long for an object", settings.Reload, "configmap/" + strings.Repeat("a", 254), []string{"configmap/"}},
		"LongGlob":         {"a pattern that is longer than any name", settings.Reload, "configmap/" + strings.Repeat("a", 253) + "*", []string{"configmap/"}},
		"OtherGlob":        {"a star is the only character that stands for others", settings.Reload, "configmap/app-?", []string{"configmap/"}},
		"Brackets":         {"brackets do not", settings.Reload, "configmap/app-[ab]*", []string{"configmap/"}},
		"ExceptNothing":    {"which one?", settings.Reload, "auto, !", []string{"!secret/"}},
		"ExceptAuto":       {"never says that", settings.Reload, "!auto", []string{"never"}},
		"Match":            {"match is for sources", settings.Reload, "match", []string{"search"}},
		"ReleaseWord":      {"no order can be told from a word", settings.Release, "now", []string{"lockstep release"}},
		"QuietWord":        {"not a duration", settings.Quiet, "soon", []string{"10s"}},
		"QuietNumber":      {"of what?", settings.Quiet, "5", []string{"10s"}},
		"QuietNegative":    {"before the change?", settings.Quiet, "-5s", []string{"negative"}},
		"QuietEmpty":       {"not a duration", settings.Quiet, "", []string{"10s"}},
		"QuietHuge":        {"more than a duration holds", settings.Quiet, "99999999999h", []string{"10s"}},
		"ObserveWord":      {"not a truth", settings.Observe, "yes", []string{"true", "false"}},
		"ObserveEmpty":     {"not a truth", settings.Observe, "", []string{"true", "false"}},
		"EnforceWord":      {"not a truth", settings.Enforce, "maybe", []string{"true", "false"}},
		"ControlCharacter": {"hostile text is quoted", settings.Reload, "a\x1b[31m\nb", []string{"auto"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := settings.ForWorkload(on(tc.key, tc.value), nil, settings.Defaults{})
			if len(got.Mistakes.Problems) != 1 {
				t.Fatalf("%s: %s=%q gives the problems %v, want one", tc.reason, tc.key, tc.value, got.Mistakes.Problems)
			}
			p := got.Mistakes.Problems[0]
			if p.Key != tc.key || p.Value != tc.value {
				t.Errorf("%s: the problem is with %s=%q, want %s=%q", tc.reason, p.Key, p.Value, tc.key, tc.value)
			}
			for _, word := range append(tc.accepted, tc.key) {
				if !strings.Contains(p.String(), word) {
					t.Errorf("%s: %q does not name %q", tc.reason, p, word)
				}
			}
			if strings.ContainsAny(p.String(), "\n\x1b") {
				t.Errorf("%q carries control characters into the event", p)
			}
		})
	}
}

// TestTooManyPatterns: what one annotation asks of others is bounded, and what is beyond
// the bound is not read.
func TestTooManyPatterns(t *testing.T) {
	t.Parallel()
	many := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	cases := map[string]struct {
		reason, value string
		listed        int
		says          string
	}{
		"Patterns":     {"as many patterns as there may be", many(64, "secret/db-*"), 64, ""},
		"OnePattern":   {"one more", many(65, "secret/db-*"), 0, "64 patterns"},
		"Names":        {"names are bounded by what a workload may follow", many(257, "configmap/app"), 257, ""},
		"Elements":     {"nobody wrote so many by hand", many(513, "configmap/app"), 0, "512 elements"},
		"Nothing":      {"also of nothing", strings.Repeat(",", 10<<10), 0, "512 elements"},
		"BeyondIsBad":  {"what is beyond the bound is not read", many(65, "secret/a*") + ",[", 0, "64 patterns"},
		"Stars":        {"as many patterns that begin with a star as there may be", many(8, "secret/*-db"), 8, ""},
		"OneStar":      {"one more", many(9, "secret/*-db"), 0, "8 patterns that begin with a star"},
		"StarsEach":    {"as many stars in a pattern as there may be", "secret/a" + strings.Repeat("*a", 8), 1, ""},
		"OneStarEach":  {"one more", "secret/a" + strings.Repeat("*a", 9), 0, "a pattern with more than 8 stars"},
		"BadIsTheEnd":  {"what cannot be understood is told first", "[," + many(65, "secret/*"), 0, ""},
		"Exceptions":   {"exceptions count", many(64, "!secret/db-*"), 0, ""},
		"OneException": {"one more", "secret/db, " + many(65, "!secret/db-*"), 0, "64 patterns"},
		"AutoAndNames": {"auto is an element like others", "auto," + many(3, "configmap/app"), 3, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := settings.ForWorkload(map[string]string{settings.Reload: tc.value, settings.Quiet: "soon"}, nil, settings.Defaults{})
			if len(got.Listed) != tc.listed || (got.Mistakes.TooMany == "") != (tc.says == "") || !strings.Contains(got.Mistakes.TooMany, tc.says) {
				t.Errorf("%s: %d sources are listed, too many is %q; want %d and %q", tc.reason, len(got.Listed), got.Mistakes.TooMany, tc.listed, tc.says)
			}
		})
	}
}

func TestProblemsAddUp(t *testing.T) {
	t.Parallel()
	in := settings.ForWorkload(map[string]string{
		settings.Reload: "what,ever", settings.Quiet: "soon", settings.Observe: "maybe",
	}, nil, settings.Defaults{})
	var keys []string
	for _, p := range in.Mistakes.Problems {
		keys = append(keys, p.Key)
	}
	want := []string{settings.Observe, settings.Quiet, settings.Reload}
	if diff := cmp.Diff(want, keys, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("each annotation is named once (-want +got)\n%s", diff)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	p := settings.Problem{Key: settings.Reload, Value: strings.Repeat("ü", 10_000), Accepted: "auto"}
	text := p.String()
	if len(text) > 300 || strings.ContainsRune(text, '�') || strings.Contains(text, `\x`) {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		pattern settings.Pattern
		source  input.ID
		glob    bool
		want    bool
	}{
		"Exact":      {"a name is itself", settings.Pattern{Kind: input.KindConfigMap, Name: "app"}, input.ConfigMap("app"), false, true},
		"OtherKind":  {"of its kind", settings.Pattern{Kind: input.KindConfigMap, Name: "app"}, input.Secret("app"), false, false},
		"Prefix":     {"not the start of a name", settings.Pattern{Kind: input.KindConfigMap, Name: "app"}, input.ConfigMap("app-2"), false, false},
		"Star":       {"any rest", settings.Pattern{Kind: input.KindSecret, Name: "db-*"}, input.Secret("db-main"), true, true},
		"Everything": {"of one kind", settings.Pattern{Kind: input.KindSecret, Name: "*"}, input.Secret("a.b"), true, true},
		"Middle":     {"what a star stands for has two ends", settings.Pattern{Kind: input.KindSecret, Name: "db-*-main"}, input.Secret("db-eu-main"), true, true},
		"Nothing":    {"a star can stand for nothing", settings.Pattern{Kind: input.KindSecret, Name: "db*"}, input.Secret("db"), true, true},
		"TooShort":   {"not for a part of what is beside it", settings.Pattern{Kind: input.KindSecret, Name: "db-*-main"}, input.Secret("db-main"), true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.pattern.Matches(tc.source); got != tc.want {
				t.Errorf("%s: Matches is %t", tc.reason, got)
			}
			if got := tc.pattern.IsGlob(); got != tc.glob {
				t.Errorf("%s: IsGlob is %t", tc.reason, got)
			}
		})
	}
}
