package stakater_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadata, template annotations
		kind               string
		want               []string
	}{
		"none": {
			annotations{auto: "True", configMapAuto: "0", secretAuto: "", configMaps: "a.*, b,,c", search: "true", pausePeriod: "1h30m"}, nil, "Deployment", nil,
		},
		"no annotations": {nil, nil, "Deployment", nil},
		"auto once, though for all types": {
			annotations{auto: "nonsense"},
			nil, "Deployment",
			[]string{auto + `: "nonsense" is neither true nor false`},
		},
		"auto of each type": {
			annotations{configMapAuto: "yes", secretAuto: " true", classAuto: "on"},
			nil, "Deployment",
			[]string{
				configMapAuto + `: "yes" is neither true nor false`,
				secretAuto + `: " true" is neither true nor false`,
				classAuto + `: "on" is neither true nor false`,
			},
		},
		"patterns": {
			annotations{configMaps: "a, b(, c", secrets: "[", classes: "x**"},
			nil, "StatefulSet",
			[]string{
				configMaps + `: the pattern "b(" is invalid: missing closing )`,
				secrets + `: the pattern "[" is invalid: missing closing ]`,
				classes + `: the pattern "x**" is invalid: invalid nested repetition operator`,
			},
		},
		"in the template": {
			nil,
			annotations{auto: "nonsense", secrets: "("},
			"Deployment",
			[]string{auto + `: "nonsense" is neither true nor false`, secrets + `: the pattern "(" is invalid: missing closing )`},
		},
		"in a template that the metadata hides": {annotations{auto: "true"}, annotations{secrets: "("}, "Deployment", nil},
		"words that only look like an answer": {
			annotations{search: "True", "reloader.stakater.com/rollout-strategy": "Restart"},
			nil, "Rollout",
			[]string{search + `: "True" isn't true, the only value with an effect`, `reloader.stakater.com/rollout-strategy: "Restart" is neither rollout nor restart`},
		},
		"a strategy of another kind": {annotations{search: "false", "reloader.stakater.com/rollout-strategy": "Restart"}, nil, "Deployment", nil},
		"a period that isn't one": {
			annotations{pausePeriod: "5 minutes"},
			nil, "Deployment",
			[]string{pausePeriod + `: "5 minutes" isn't a positive duration such as 30s`},
		},
		"a period of nothing": {
			annotations{pausePeriod: "0s"},
			nil, "Deployment",
			[]string{pausePeriod + `: "0s" isn't a positive duration such as 30s`},
		},
		"a period before now": {
			annotations{pausePeriod: "-1s"},
			nil, "Deployment",
			[]string{pausePeriod + `: "-1s" isn't a positive duration such as 30s`},
		},
		"an empty period": {
			annotations{pausePeriod: ""},
			nil, "Deployment",
			[]string{pausePeriod + `: "" isn't a positive duration such as 30s`},
		},
		"a period of another kind": {
			annotations{pausePeriod: "30s"},
			nil, "StatefulSet",
			[]string{pausePeriod + `: Reloader pauses only Deployments`},
		},
		"a period in the template": {nil, annotations{pausePeriod: "x"}, "Deployment", nil},
		"a heavy pattern": {
			annotations{secrets: "(aaaa){1000}(bbbb){1000}(cccc){1000}(dddd){1000}(eeee){1000}(ffff){1000},a"},
			nil, "Deployment",
			[]string{secrets + `: the pattern "(aaaa){1000}(bbbb){1000}(cccc){1000}(dddd){1000}(eeee){1000}…" is too complex`},
		},
		"a pattern after a heavy one": {
			annotations{secrets: "(aaaaaaaaaaaaaaaaaaaa){1000}(bbbbbbbbbbbbbb){1000},plain,a.*"},
			nil, "Deployment",
			[]string{
				secrets + `: the pattern "(aaaaaaaaaaaaaaaaaaaa){1000}(bbbbbbbbbbbbbb){1000}" is too complex`,
				secrets + `: the pattern "a.*" is too long, or the list before it too complex`,
			},
		},
		"a long pattern": {
			annotations{secrets: strings.Repeat("a*", 600)},
			nil, "Deployment",
			[]string{secrets + `: the pattern "` + strings.Repeat("a*", 30) + `…" is too long, or the list before it too complex`},
		},
		"a long list": {
			annotations{secrets: strings.Repeat("name,", 20_000)},
			nil, "Deployment",
			[]string{secrets + ": the list is longer than 65536 bytes; the rest is skipped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := words(false).Problems(workload(tc.metadata, tc.template), tc.kind)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := words(false).Problems(stakater.Workload{}, "Rollout"); got != nil {
		t.Errorf("a workload without a template: %q", got)
	}
}

// TestProblemsAreBounded: whatever is in the annotations, an event has room for the problems.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&list, "%d(,", i)
	}
	long := strings.Repeat("ü\x00", 100_000)
	got := words(false).Problems(workload(annotations{auto: long, configMaps: list.String(), secrets: list.String(), classes: "(" + long}, nil), "Deployment")
	if len(got) != 10 {
		t.Errorf("%d problems", len(got))
	}
	for _, problem := range got {
		if len(problem) > 500 || !utf8.ValidString(problem) || strings.ContainsRune(problem, 0) {
			t.Errorf("%d bytes: %q", len(problem), problem)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a, b.*,(", "true", "b-1")
	f.Add("a{1000}{1000},a|b", "nonsense", "ab")
	f.Add(`\pL{500},(?i)X$|^`, "", "x")
	f.Fuzz(func(t *testing.T, list, value, name string) {
		in := workload(annotations{configMaps: list, auto: value, pausePeriod: value}, nil)
		container, ok := words(false).Match(in, configMap(name))
		if ok && (container != 0 || !words(false).Follows(in)) {
			t.Errorf("container %d of a workload that follows a source: %t", container, words(false).Follows(in))
		}
		for _, problem := range words(false).Problems(in, "Deployment") {
			if len(problem) > 500 {
				t.Errorf("a problem of %d bytes", len(problem))
			}
		}
	})
}
