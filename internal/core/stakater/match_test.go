package stakater_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// The default keys, as users write them.
const (
	auto          = "reloader.stakater.com/auto"
	configMapAuto = "configmap.reloader.stakater.com/auto"
	secretAuto    = "secret.reloader.stakater.com/auto"
	classAuto     = "secretproviderclass.reloader.stakater.com/auto"
	configMaps    = "configmap.reloader.stakater.com/reload"
	secrets       = "secret.reloader.stakater.com/reload"
	classes       = "secretproviderclass.reloader.stakater.com/reload"
	search        = "reloader.stakater.com/search"
	match         = "reloader.stakater.com/match"
	ignore        = "reloader.stakater.com/ignore"
	noConfigMaps  = "configmaps.exclude.reloader.stakater.com/reload"
	noSecrets     = "secrets.exclude.reloader.stakater.com/reload"
	noClasses     = "secretproviderclasses.exclude.reloader.stakater.com/reload"
	strategy      = "reloader.stakater.com/rollout-strategy"
	pausePeriod   = "deployment.reloader.stakater.com/pause-period"
	pausedAt      = "deployment.reloader.stakater.com/paused-at"
)

type annotations = map[string]string

func configMap(name string) stakater.Source {
	return stakater.Source{Type: stakater.ConfigMap, Name: name}
}

func secret(name string) stakater.Source {
	return stakater.Source{Type: stakater.Secret, Name: name}
}

func class(name string) stakater.Source {
	return stakater.Source{Type: stakater.SecretProviderClass, Name: name}
}

// matched is a source with match: "true".
func matched(s stakater.Source) stakater.Source {
	s.Match = true
	return s
}

// workload refers to ConfigMap c, Secret s and SecretProviderClass p.
func workload(metadata, template annotations) stakater.Workload {
	return stakater.Workload{
		Annotations: metadata,
		Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: template},
			Spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{classVolume("csi", "p")},
				Containers: []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{allOf(configMap("c")), allOf(secret("s"))}, VolumeMounts: mounts("csi")}},
			},
		},
	}
}

func words(autoAll bool) stakater.Words {
	return stakater.Words{Keys: stakater.DefaultKeys(), AutoAll: autoAll}
}

// flag is a state of --auto-reload-all in which a case holds.
type flag string

const (
	off    flag = "off"
	on     flag = "on"
	either flag = "either"
)

func (f flag) values() []bool {
	switch f {
	case off:
		return []bool{false}
	case on:
		return []bool{true}
	default:
		return []bool{false, true}
	}
}

// TestPrecedence has the rows of the contract's second table, and what surrounds them. A case
// without a template holds in both places, unless it is about excluded names.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadata, template annotations
		source             stakater.Source
		all                flag
		want               bool
	}{
		"named beats auto=false":                         {annotations{auto: "false", configMaps: "c"}, nil, configMap("c"), either, true},
		"search beats auto=false":                        {annotations{auto: "false", search: "true"}, nil, matched(configMap("c")), either, true},
		"typed auto beats auto=false":                    {annotations{auto: "false", secretAuto: "true"}, nil, secret("s"), either, true},
		"metadata hides the template":                    {annotations{auto: "false"}, annotations{auto: "true"}, configMap("c"), off, false},
		"keys of another type hide nothing":              {annotations{secrets: "s"}, annotations{auto: "true"}, configMap("c"), off, true},
		"a named list doesn't narrow all":                {annotations{configMaps: "other"}, nil, configMap("c"), on, true},
		"search doesn't narrow all":                      {annotations{search: "true"}, nil, configMap("c"), on, true},
		"auto of another type doesn't narrow all":        {annotations{secretAuto: "true"}, nil, configMap("c"), on, true},
		"typed auto=false stops all for its type":        {annotations{configMapAuto: "false"}, nil, configMap("c"), on, false},
		"typed auto=false leaves all for other types":    {annotations{configMapAuto: "false"}, nil, secret("s"), on, true},
		"auto with another text is set, and false":       {annotations{auto: "nonsense"}, nil, configMap("c"), on, false},
		"excluded beats auto":                            {annotations{auto: "true", noConfigMaps: "a, c"}, annotations{}, configMap("c"), either, false},
		"excluded beats named":                           {annotations{configMaps: "c", noConfigMaps: "c"}, annotations{}, configMap("c"), either, false},
		"excluded is read from the metadata only":        {nil, annotations{auto: "true", noConfigMaps: "c"}, configMap("c"), either, true},
		"excluded in metadata, auto in the template":     {annotations{noConfigMaps: "c"}, annotations{auto: "true"}, configMap("c"), either, false},
		"excluded names are no patterns":                 {annotations{auto: "true", noConfigMaps: ".*"}, annotations{}, configMap("c"), either, true},
		"excluded Secrets don't exclude ConfigMaps":      {annotations{auto: "true", noSecrets: "c"}, annotations{}, configMap("c"), either, true},
		"excluded Secret":                                {annotations{auto: "true", noSecrets: " s "}, annotations{}, secret("s"), either, false},
		"excluded SecretProviderClass":                   {annotations{auto: "true", noClasses: "p"}, annotations{}, class("p"), either, false},
		"nothing asked for":                              {nil, nil, configMap("c"), off, false},
		"nothing asked for, all":                         {nil, nil, configMap("c"), on, true},
		"all needs a reference":                          {nil, nil, configMap("other"), on, false},
		"auto needs a reference":                         {annotations{auto: "true"}, nil, configMap("other"), either, false},
		"search needs a reference":                       {annotations{search: "true"}, nil, matched(configMap("other")), either, false},
		"search needs match":                             {annotations{search: "true"}, nil, configMap("c"), off, false},
		"match needs search":                             {nil, nil, matched(configMap("c")), off, false},
		"named needs no reference":                       {annotations{configMaps: "other"}, nil, configMap("other"), either, true},
		"named without a hit, search with one":           {annotations{configMaps: "other", search: "true"}, nil, matched(configMap("c")), off, true},
		"named of another type":                          {annotations{secrets: "c"}, nil, configMap("c"), off, false},
		"named Secret":                                   {annotations{secrets: "x"}, nil, secret("x"), either, true},
		"named SecretProviderClass":                      {annotations{classes: "x"}, nil, class("x"), either, true},
		"auto covers SecretProviderClasses":              {annotations{auto: "true"}, nil, class("p"), either, true},
		"auto for SecretProviderClasses":                 {annotations{classAuto: "true"}, nil, class("p"), either, true},
		"auto for ConfigMaps isn't for Secrets":          {annotations{configMapAuto: "true"}, nil, secret("s"), off, false},
		"typed auto=false doesn't stop auto":             {annotations{auto: "true", configMapAuto: "false"}, nil, configMap("c"), either, true},
		"the source is ignored, though named":            {annotations{configMaps: "c"}, nil, stakater.Source{Type: stakater.ConfigMap, Name: "c", Ignore: true}, either, false},
		"ignore on the workload means nothing":           {annotations{auto: "true", ignore: "true"}, nil, configMap("c"), either, true},
		"an empty auto in the metadata hides":            {annotations{auto: ""}, annotations{auto: "true"}, configMap("c"), off, false},
		"an empty auto is unset":                         {annotations{auto: "", configMapAuto: ""}, nil, configMap("c"), on, true},
		"an empty auto in the metadata hides from all":   {annotations{auto: ""}, annotations{auto: "false"}, configMap("c"), on, true},
		"an empty list in the metadata hides":            {annotations{configMaps: ""}, annotations{configMaps: "c"}, configMap("c"), off, false},
		"a search in the metadata hides":                 {annotations{search: "false"}, annotations{auto: "true"}, configMap("c"), off, false},
		"a typed auto in the metadata hides":             {annotations{configMapAuto: "false"}, annotations{auto: "true"}, configMap("c"), off, false},
		"other annotations in the metadata hide nothing": {annotations{noSecrets: "s", pausePeriod: "1s", ignore: "true"}, annotations{auto: "true"}, configMap("c"), off, true},
	} {
		places := map[string]stakater.Workload{"metadata": workload(tc.metadata, tc.template)}
		if tc.template == nil {
			places["template"] = workload(nil, tc.metadata)
		}
		for place, in := range places {
			for _, all := range tc.all.values() {
				if _, got := words(all).Match(in, tc.source); got != tc.want {
					t.Errorf("%s: in the %s, with all=%t, it reloads: %t, want %t", name, place, all, got, tc.want)
				}
				if tc.want && !words(all).Follows(in) {
					t.Errorf("%s: in the %s, with all=%t, a source reloads it, but it follows none", name, place, all)
				}
			}
		}
	}
}

// TestValues has the rows of the contract's first table that are about values: which texts
// count, and which don't.
func TestValues(t *testing.T) {
	t.Parallel()
	booleans := map[string]bool{
		"1": true, "t": true, "T": true, "TRUE": true, "true": true, "True": true,
		"0": false, "f": false, "F": false, "FALSE": false, "false": false, "False": false,
		"yes": false, "true ,": false, "tRUE": false,
	}
	exact := map[string]bool{"true": true, "True": false, "1": false, "true ,": false, "": false}
	for _, tc := range []struct {
		key    string
		source stakater.Source
		values map[string]bool
	}{
		{auto, configMap("c"), booleans},
		{auto, secret("s"), booleans},
		{auto, class("p"), booleans},
		{configMapAuto, configMap("c"), booleans},
		{secretAuto, secret("s"), booleans},
		{classAuto, class("p"), booleans},
		{search, matched(configMap("c")), exact},
		{search, matched(secret("s")), exact},
		{search, matched(class("p")), exact},
	} {
		for value, want := range tc.values {
			for place, in := range map[string]stakater.Workload{
				"metadata": workload(annotations{tc.key: value}, nil),
				"template": workload(nil, annotations{tc.key: value}),
			} {
				if _, got := words(false).Match(in, tc.source); got != want {
					t.Errorf("%s: %q in the %s: a change of %v reloads: %t, want %t", tc.key, value, place, tc.source, got, want)
				}
				if got := words(false).Follows(in); got != want {
					t.Errorf("%s: %q in the %s: it follows a source: %t, want %t", tc.key, value, place, got, want)
				}
			}
		}
	}
	for value, want := range exact {
		if got := words(false).Source(stakater.Secret, "s", annotations{match: value}); got.Match != want || got.Ignore {
			t.Errorf("%s: %q is read as %+v", match, value, got)
		}
		if got := words(false).Source(stakater.Secret, "s", annotations{ignore: value}); got.Ignore != want || got.Match {
			t.Errorf("%s: %q is read as %+v", ignore, value, got)
		}
	}
}

// TestPatterns: an item is tested as ^item$, without grouping.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		list, source string
		want         bool
	}{
		"name":                                {"c", "c", true},
		"part of a name":                      {"c", "cc", false},
		"blanks":                              {" a ,\tc ,", "c", true},
		"expression":                          {"db-.*", "db-1", true},
		"anchored at the start":               {"db-.*", "my-db-1", false},
		"anchored at the end":                 {"db-[0-9]", "db-12", false},
		"dot is any character":                {"a.b", "a-b", true},
		"D16: alternative, starts with":       {"a|b", "anything", true},
		"D16: alternative, ends with":         {"a|b", "web", true},
		"D16: alternative, neither":           {"a|b", "xay", false},
		"grouped by the user":                 {"(a|b)", "anything", false},
		"D16: a comma splits an expression":   {"a{1,2}", "aa", false},
		"D16: its halves are items":           {"a{1,2}", "a{1", true},
		"a bad pattern is skipped":            {"(, c", "c", true},
		"a bad pattern alone":                 {"(", "(", false},
		"brackets that close what ^ began":    {"a)(c", "c", false},
		"case":                                {"C", "c", false},
		"case, on request":                    {"(?i)C", "c", true},
		"empty items":                         {",,", "", false},
		"a plain name after a heavy pattern":  {strings.Repeat("(ab){500},", 100) + "c", "c", true},
		"a pattern after too many heavy ones": {strings.Repeat("(ab){500},", 100) + "c.*", "c", false},
		"a thousand patterns":                 {strings.Repeat("my.config-map,", 1000) + "c.", "cc", true},
		"an item at the limit of the length":  {strings.Repeat("x", 64<<10-2) + ",c", "c", true},
		"an item beyond it":                   {strings.Repeat("x", 64<<10-2) + ",cc", "cc", false},
		"not even the part that would fit":    {strings.Repeat("x", 64<<10-2) + ",cc", "c", false},
		"one long name":                       {strings.Repeat("c", 64<<10+1), "c", false},
		"a long pattern":                      {strings.Repeat("c*", 600), "c", false},
	} {
		for place, in := range map[string]stakater.Workload{
			"metadata": workload(annotations{configMaps: tc.list}, nil),
			"template": workload(nil, annotations{configMaps: tc.list}),
		} {
			if _, got := words(false).Match(in, configMap(tc.source)); got != tc.want {
				t.Errorf("%s: in the %s it matches %q: %t, want %t", name, place, tc.source, got, tc.want)
			}
		}
	}
}

// TestSlowPatterns: nobody can keep the program busy with a list. Without limits each of these
// takes from ten seconds to minutes; what is behind them isn't read, and that is reported.
func TestSlowPatterns(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", 20)
	for what, list := range map[string]string{
		"repeated":  strings.Repeat("(a?|a*|.*a){500}b,", 14_000),
		"alphabets": strings.Repeat(strings.Repeat(`\pL`, 300)+",", 280),
		"invalid":   strings.Repeat(`(\pL,`, 50_000),
	} {
		in := workload(annotations{configMaps: list + "a.*"}, nil)
		if _, ok := words(false).Match(in, configMap(name)); ok {
			t.Errorf("%s: the whole list is read", what)
		}
		if len(words(false).Problems(in, "Deployment")) == 0 {
			t.Errorf("%s: nothing is reported", what)
		}
	}
}

// TestRenamedKeys: under other keys the default ones mean nothing.
func TestRenamedKeys(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	keys.Auto, keys.ConfigMap, keys.Ignore, keys.Match, keys.PausePeriod = "a", "n", "i", "m", "p"
	renamed := stakater.Words{Keys: keys}
	for key, want := range map[string]bool{"a": true, auto: false} {
		if _, got := renamed.Match(workload(annotations{key: "true"}, nil), configMap("c")); got != want {
			t.Errorf("%s: it reloads: %t", key, got)
		}
	}
	for key, want := range map[string]bool{"n": true, configMaps: false} {
		if _, got := renamed.Match(workload(annotations{key: "x"}, nil), configMap("x")); got != want {
			t.Errorf("%s: it reloads: %t", key, got)
		}
	}
	if got, want := renamed.Source(stakater.ConfigMap, "c", annotations{"m": "true", ignore: "true"}), matched(configMap("c")); got != want {
		t.Errorf("it reads %+v, want %+v", got, want)
	}
	if got := renamed.Pause(annotations{"p": "1s", pausePeriod: "1h"}); got != time.Second {
		t.Errorf("it pauses for %v", got)
	}
}

func TestDefaultKeys(t *testing.T) {
	t.Parallel()
	want := stakater.Keys{
		Auto: auto, ConfigMapAuto: configMapAuto, SecretAuto: secretAuto, ClassAuto: classAuto,
		ConfigMap: configMaps, Secret: secrets, Class: classes,
		Search: search, Match: match, Ignore: ignore,
		ExcludeConfigMaps: noConfigMaps, ExcludeSecrets: noSecrets, ExcludeClasses: noClasses,
		RolloutStrategy: strategy,
		PauseKeys:       stakater.PauseKeys{PausePeriod: pausePeriod, PausedAt: pausedAt},
	}
	if got := stakater.DefaultKeys(); got != want {
		t.Errorf("the keys are %+v, want %+v", got, want)
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"restart": true, "rollout": false, "Restart": false, "": false} {
		if got := words(false).Restarts(annotations{strategy: value}); got != want {
			t.Errorf("%q restarts: %t", value, got)
		}
	}
	if words(false).Restarts(nil) {
		t.Error("it restarts without the annotation")
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotations annotations
		period      time.Duration
		until       time.Time
		paused      bool
	}{
		"no pause":                  {nil, 0, time.Time{}, false},
		"not paused yet":            {annotations{pausePeriod: "30s"}, 30 * time.Second, time.Time{}, false},
		"paused":                    {annotations{pausePeriod: "1h30m", pausedAt: "2026-01-02T03:04:05Z"}, 90 * time.Minute, start.Add(90 * time.Minute), true},
		"paused in another zone":    {annotations{pausePeriod: "5s", pausedAt: "2026-01-02T05:04:05+02:00"}, 5 * time.Second, start.Add(5 * time.Second), true},
		"the period is gone":        {annotations{pausedAt: "2026-01-02T03:04:05Z"}, 0, start, true},
		"the period is bad":         {annotations{pausePeriod: "5 minutes", pausedAt: "2026-01-02T03:04:05Z"}, 0, start, true},
		"the time is unreadable":    {annotations{pausePeriod: "5m", pausedAt: "yesterday"}, 5 * time.Minute, time.Time{}, true},
		"the time is empty":         {annotations{pausePeriod: "5m", pausedAt: ""}, 5 * time.Minute, time.Time{}, true},
		"D12: zero is no period":    {annotations{pausePeriod: "0s"}, 0, time.Time{}, false},
		"D12: nor is less":          {annotations{pausePeriod: "-5m"}, 0, time.Time{}, false},
		"a number without a unit":   {annotations{pausePeriod: "30"}, 0, time.Time{}, false},
		"more than a duration fits": {annotations{pausePeriod: "9999999h"}, 0, time.Time{}, false},
	} {
		if got := words(false).Pause(tc.annotations); got != tc.period {
			t.Errorf("%s: the period is %v, want %v", name, got, tc.period)
		}
		if until, paused := words(false).PausedUntil(tc.annotations); paused != tc.paused || !until.Equal(tc.until) {
			t.Errorf("%s: paused %t until %v, want %t until %v", name, paused, until, tc.paused, tc.until)
		}
	}
}

// TestFollows: without a regular container, or anything that is asked for, no source is tried.
func TestFollows(t *testing.T) {
	t.Parallel()
	asks := annotations{auto: "true", configMaps: "c"}
	onlyInit := workload(asks, nil)
	onlyInit.Template.Spec.InitContainers = onlyInit.Template.Spec.Containers
	onlyInit.Template.Spec.Containers = nil
	for name, tc := range map[string]struct {
		in   stakater.Workload
		all  bool
		want bool
	}{
		"nothing asked for":                {workload(nil, nil), false, false},
		"all":                              {workload(nil, nil), true, true},
		"auto=false, all":                  {workload(annotations{auto: "false"}, nil), true, false},
		"auto=false and a list":            {workload(annotations{auto: "false", secrets: "s"}, nil), false, true},
		"one type without auto, all":       {workload(annotations{secretAuto: "false"}, nil), true, true},
		"other annotations":                {workload(annotations{pausePeriod: "1s", noSecrets: "s"}, annotations{match: "true"}), false, false},
		"no pod template":                  {stakater.Workload{Annotations: asks}, true, false},
		"no regular container":             {onlyInit, true, false},
		"the keys of a type are hidden":    {workload(annotations{auto: "false"}, asks), false, false},
		"the keys of a type are elsewhere": {workload(annotations{secretAuto: "false"}, annotations{configMapAuto: "true"}), false, true},
	} {
		before := maps.Clone(tc.in.Annotations)
		if got := words(tc.all).Follows(tc.in); got != tc.want {
			t.Errorf("%s: it follows a source: %t, want %t", name, got, tc.want)
		}
		if _, ok := words(tc.all).Match(tc.in, configMap("c")); ok && !tc.want {
			t.Errorf("%s: a ConfigMap reloads it", name)
		}
		if !maps.Equal(before, tc.in.Annotations) {
			t.Errorf("%s: the annotations were changed", name)
		}
	}
}

// TestReadsPatternsOnce: a namespace may have thousands of sources, and a list thousands of
// expressions.
func TestReadsPatternsOnce(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	in := workload(annotations{configMaps: strings.Repeat("app-.*x,", 1000)}, nil)
	once := testing.AllocsPerRun(1, func() { words(false).Read(in).Match(configMap("app-1")) })
	reading := words(false).Read(in)
	reading.Match(configMap("app-1"))
	if again := testing.AllocsPerRun(10, func() { reading.Match(configMap("app-2")) }); again > once/10 {
		t.Errorf("%.0f allocations for another source, %.0f with the reading: the expressions are compiled again", again, once)
	}
}
