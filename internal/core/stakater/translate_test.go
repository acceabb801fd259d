package stakater_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func translator(autoAll bool) stakater.Translator {
	return stakater.Translator{Words: stakater.Words{Keys: stakater.DefaultKeys(), AutoAll: autoAll}}
}

func TestTranslateWorkload(t *testing.T) {
	t.Parallel()
	const domain = "reloader.stakater.com"
	for name, tc := range map[string]struct {
		reason        string
		kind          string
		own, template map[string]string
		want          string
		lost          string
	}{
		"Nothing":        {reason: "most workloads say nothing", own: map[string]string{"other.example/auto": "true"}},
		"Auto":           {reason: "the usual case", own: map[string]string{domain + "/auto": "true"}, want: "auto"},
		"False":          {reason: "off", own: map[string]string{domain + "/auto": "false"}, want: "never"},
		"Nonsense":       {reason: "anything else is off too", own: map[string]string{domain + "/auto": "yes"}, want: "never"},
		"Empty":          {reason: "as if it weren't there", own: map[string]string{domain + "/auto": ""}},
		"FalseAndNamed":  {reason: "false doesn't stop a list", own: map[string]string{domain + "/auto": "false", "configmap." + domain + "/reload": "c"}, want: "configmap/c"},
		"FalseAndSearch": {reason: "nor a search", own: map[string]string{domain + "/auto": "false", domain + "/search": "true"}, want: "search"},
		"Lists":          {reason: "of both kinds", own: map[string]string{"configmap." + domain + "/reload": "a, b,,", "secret." + domain + "/reload": "db-.*"}, want: "configmap/a, configmap/b, secret/db-*"},
		"AutoAndList":    {reason: "a list doesn't narrow auto", own: map[string]string{domain + "/auto": "true", "secret." + domain + "/reload": "x"}, want: "auto, secret/x"},
		"OneKind":        {reason: "auto for one kind", own: map[string]string{"secret." + domain + "/auto": "true"}, want: "auto, !configmap/*"},
		"OneKindOff":     {reason: "the other kind is as the controller says", own: map[string]string{"secret." + domain + "/auto": "false"}, want: "!secret/*"},
		"KindAndGlob":    {reason: "the list comes after the exception", own: map[string]string{"configmap." + domain + "/auto": "true", "secret." + domain + "/reload": "db-.*"}, want: "auto, !secret/*, secret/db-*"},
		"Excluded":       {reason: "exceptions come last", own: map[string]string{domain + "/auto": "true", "configmap." + domain + "/reload": "a", "configmaps.exclude." + domain + "/reload": "a, c, Not_A_Name"}, want: "auto, configmap/a, !configmap/a, !configmap/c"},
		"ExcludedOnly":   {reason: "for a controller that follows every workload", own: map[string]string{"secrets.exclude." + domain + "/reload": "a"}, want: "!secret/a"},
		"ExcludedNever":  {reason: "nothing is left to exclude", own: map[string]string{domain + "/auto": "false", "secrets.exclude." + domain + "/reload": "a"}, want: "never"},
		"Template":       {reason: "read where the metadata has none", template: map[string]string{domain + "/auto": "true"}, want: "auto"},
		"TemplateOther":  {reason: "never mixed for one kind", own: map[string]string{"secret." + domain + "/reload": "s"}, template: map[string]string{domain + "/auto": "true"}, want: "auto, !secret/*, secret/s"},
		"TemplateHidden": {reason: "the metadata wins", own: map[string]string{domain + "/auto": "false"}, template: map[string]string{domain + "/auto": "true"}, want: "never"},
		"TemplateExclude": {
			reason: "not read there", template: map[string]string{domain + "/auto": "true", "secrets.exclude." + domain + "/reload": "a", stakater.LastReloadedFrom: "{}"}, want: "auto",
			lost: "secrets.exclude." + domain + "/reload: Reloader doesn't read it on a pod template",
		},
		"Anchors":     {reason: "the original adds them itself", own: map[string]string{"secret." + domain + "/reload": `^tls\.web$,db-.+`}, want: "secret/tls.web, secret/db-*"},
		"Expressions": {reason: "a pattern has stars only", own: map[string]string{"secret." + domain + "/reload": `a|b, db-[0-9], app.+, App, -x, ok`}, want: "secret/ok", lost: `secret.` + domain + `/reload: "a|b", "db-[0-9]", "app.+", "App", "-x" can't be written`},
		"OnlyExpressions": {
			reason: "nothing is left to follow", own: map[string]string{"secret." + domain + "/reload": "(a|b)"},
			lost: `secret.` + domain + `/reload: "(a|b)" can't be written`,
		},
		"SearchBesideKind": {reason: "one exception can't be for auto alone", own: map[string]string{"secret." + domain + "/auto": "true", domain + "/search": "true"}, want: "auto, !configmap/*", lost: domain + "/search: Lockstep can't combine search"},
		"Class":            {reason: "CSI isn't followed", own: map[string]string{domain + "/auto": "true", "secretproviderclass." + domain + "/auto": "true"}, want: "auto", lost: "secretproviderclass." + domain + "/auto: Lockstep doesn't follow"},
		"ClassOff":         {reason: "nothing is lost", own: map[string]string{domain + "/auto": "true", "secretproviderclass." + domain + "/auto": "false"}, want: "auto"},
		"Pause":            {reason: "of Deployments", own: map[string]string{domain + "/auto": "true", "deployment." + domain + "/pause-period": "5m"}, want: "auto", lost: "deployment." + domain + "/pause-period: Lockstep doesn't pause"},
		"PauseElsewhere":   {reason: "the original only warns", kind: "StatefulSet", own: map[string]string{"deployment." + domain + "/pause-period": "5m"}, lost: "deployment." + domain + "/pause-period: Reloader doesn't read it on a StatefulSet"},
		"Paused":           {reason: "nobody else resumes it", own: map[string]string{domain + "/auto": "true", "deployment." + domain + "/paused-at": "2026-01-01T00:00:00Z"}, want: "auto", lost: "deployment." + domain + "/paused-at: Lockstep doesn't resume"},
		"Restart":          {reason: "of Rollouts", kind: "Rollout", own: map[string]string{domain + "/auto": "true", domain + "/rollout-strategy": "restart"}, want: "auto", lost: domain + "/rollout-strategy: Lockstep changes the pod template"},
		"RolloutDefault":   {reason: "nothing is lost", kind: "Rollout", own: map[string]string{domain + "/auto": "true", domain + "/rollout-strategy": "rollout"}, want: "auto"},
		"Job":              {reason: "never again", kind: "Job", own: map[string]string{domain + "/auto": "true"}, lost: domain + "/auto: Lockstep doesn't run a Job again"},
		"CronJob":          {reason: "not before its time", kind: "CronJob", template: map[string]string{domain + "/auto": "true"}, lost: domain + "/auto: Lockstep doesn't start a Job"},
		"Misspelt":         {reason: "it never had an effect", own: map[string]string{domain + "/autos": "true", domain + "/ignore": "true"}, lost: domain + "/autos: Reloader doesn't read it on a Deployment\n" + domain + "/ignore: Reloader doesn't"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := tc.kind
			if kind == "" {
				kind = "Deployment"
			}
			got := translator(false).Workload(kind, tc.own, tc.template)
			if got.Annotations[settings.Reload] != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got.Annotations[settings.Reload], tc.want)
			}
			wanted := strings.Split(tc.lost, "\n")
			if tc.lost == "" {
				wanted = nil
			}
			lost := slices.Sorted(maps.Keys(got.Lost))
			if len(lost) != len(wanted) {
				t.Fatalf("%s: lost are %v, want %q", tc.reason, got.Lost, wanted)
			}
			for i, key := range lost {
				if text := key + ": " + got.Lost[key]; !strings.HasPrefix(text, wanted[i]) {
					t.Errorf("%s: lost is %q, want %q", tc.reason, text, wanted[i])
				}
			}
		})
	}
}

func TestTranslateSource(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	for name, tc := range map[string]struct {
		own  map[string]string
		want settings.Translation
	}{
		"Nothing": {nil, settings.Translation{}},
		"Ignore":  {map[string]string{keys.Ignore: "true", keys.Match: "true"}, settings.Translation{Annotations: map[string]string{settings.Reload: "never"}, Lost: map[string]string{keys.Ignore: "a workload that lists the source by its exact name still follows it"}}},
		"Match":   {map[string]string{keys.Match: "true"}, settings.Translation{Annotations: map[string]string{settings.Reload: "match"}}},
		"Other":   {map[string]string{keys.Match: "True", keys.Ignore: "1"}, settings.Translation{}},
		"Unread":  {map[string]string{keys.Auto: "true"}, settings.Translation{Lost: map[string]string{keys.Auto: "Reloader doesn't read it on a ConfigMap"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := translator(false).Source("ConfigMap", tc.own)
			if !maps.Equal(tc.want.Annotations, got.Annotations) || !maps.Equal(tc.want.Lost, got.Lost) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

// TestTranslationFollowsTheSameSources compares both programs for every combination of some
// annotations in both places, with every source, unless something is lost.
func TestTranslationFollowsTheSameSources(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	choices := []choice{
		{keys.Auto, []string{"true", "false", ""}},
		{keys.ConfigMapAuto, []string{"true", "false"}},
		{keys.Search, []string{"true"}},
		{keys.ConfigMap, []string{"c-.*", "c-1"}},
		{keys.Secret, []string{"s-1,other"}},
	}
	excludes := []choice{{keys.ExcludeConfigMaps, []string{"c-1"}}}
	compared := 0
	for _, autoAll := range []bool{false, true} {
		words := translator(autoAll)
		for _, own := range combined(append(slices.Clone(choices), excludes...)) {
			for _, template := range combined(choices[:2]) {
				compared += compare(t, words, own, template)
			}
		}
	}
	if compared < 10000 {
		t.Errorf("only %d cases were compared", compared)
	}
}

// choice is an annotation and its values; it may be absent.
type choice struct {
	key    string
	values []string
}

func combined(choices []choice) []map[string]string {
	if len(choices) == 0 {
		return []map[string]string{{}}
	}
	var all []map[string]string
	for _, rest := range combined(choices[1:]) {
		all = append(all, rest)
		for _, value := range choices[0].values {
			with := maps.Clone(rest)
			with[choices[0].key] = value
			all = append(all, with)
		}
	}
	return all
}

// compare compares what a workload with these annotations follows.
func compare(t *testing.T, words stakater.Translator, own, template map[string]string) (compared int) {
	t.Helper()
	tr := words.Workload("Deployment", own, template)
	if len(tr.Lost) > 0 {
		return 0
	}
	native := settings.ForWorkload(tr.Annotations, nil, settings.Defaults{Auto: words.Words.AutoAll})
	if len(native.Mistakes.Problems) > 0 {
		t.Fatalf("%v in %v is translated to %v: %v", own, template, tr.Annotations, native.Mistakes.Problems)
	}
	for _, id := range []input.ID{input.ConfigMap("c-1"), input.ConfigMap("c-2"), input.Secret("s-1"), input.Secret("s-2")} {
		for _, about := range []map[string]string{nil, {words.Words.Keys.Match: "true"}, {words.Words.Keys.Ignore: "true"}} {
			for _, referenced := range []bool{true, false} {
				source := words.Words.Source(stakater.Type(strings.ToUpper(string(id.Kind))), id.Name, about)
				if source.Ignore && slices.Contains(native.Listed, settings.Pattern(id)) {
					continue // The difference that the translation of the source reports.
				}
				_, want := words.Words.Match(stakater.Workload{Annotations: own, Template: podWith(id, referenced, template)}, source)
				got := native.Follows(id, referenced, settings.ForSource(words.Source(string(id.Kind), about).Annotations))
				if got != want {
					t.Fatalf("metadata %v, template %v, all %t: %s with %v, referenced %t: Reloader says %t, and %v says %t",
						own, template, words.Words.AutoAll, id, about, referenced, want, tr.Annotations, got)
				}
				compared++
			}
		}
	}
	return compared
}

func podWith(id input.ID, referenced bool, annotations map[string]string) *corev1.PodTemplateSpec {
	pod := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	pod.Annotations = annotations
	if !referenced {
		return pod
	}
	from := corev1.EnvFromSource{}
	if id.Kind == input.KindSecret {
		from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: id.Name}}
	} else {
		from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: id.Name}}
	}
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{from}
	return pod
}

// FuzzTranslate: whatever a workload says, the translation is understood.
func FuzzTranslate(f *testing.F) {
	f.Add("true", "a.*, b|c", "x", "true")
	f.Add("", `^\.$`, "*", "")
	f.Fuzz(func(t *testing.T, auto, named, exclude, search string) {
		keys := stakater.DefaultKeys()
		own := map[string]string{keys.Auto: auto, keys.Secret: named, keys.ExcludeSecrets: exclude, keys.Search: search}
		tr := translator(false).Workload("Deployment", own, nil)
		if in := settings.ForWorkload(tr.Annotations, nil, settings.Defaults{}); len(in.Mistakes.Problems) > 0 {
			t.Error(fmt.Sprint(own, " is translated to ", tr.Annotations, ": ", in.Mistakes.Problems))
		}
	})
}
