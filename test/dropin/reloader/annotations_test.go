package reloader_test

import (
	"cmp"
	"maps"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wish is a workload with annotations, and a source whose change reloads it or not.
type wish struct {
	reason          string
	notes, template map[string]string
	// source is what changes, "configmap/c" unless it is given, and on are its annotations.
	source string
	on     map[string]string
	// pod uses the source, unless it is given.
	pod corev1.PodSpec
	// off and all are whether a change reloads the workload without and with --auto-reload-all.
	off, all bool
}

// precedence is the table of the original's precedence.
func precedence() map[string]wish {
	return map[string]wish{
		"NamedBeatsAuto":  {reason: "a named source reloads although auto is false", notes: notes(auto, "false", configMapReload, "c"), off: true, all: true},
		"SearchBeatsAuto": {reason: "so does a match", notes: notes(auto, "false", search, "true"), on: notes(match, "true"), off: true, all: true},
		"TypedBeatsAuto":  {reason: "so does auto of the type", notes: notes(auto, "false", secretAuto, "true"), source: "secret/s", off: true, all: true},
		"MetadataFirst":   {reason: "the template isn't read", notes: notes(auto, "false"), template: notes(auto, "true")},
		"OtherType": {
			reason: "a key for another type doesn't hide the template", notes: notes(secretReload, "s"), template: notes(auto, "true"), off: true, all: true,
		},
		"NamedDoesNotNarrow": {reason: "a list for other sources leaves auto-reload-all on", notes: notes(configMapReload, "other"), all: true},
		"SearchOnly":         {reason: "search without a match leaves it on", notes: notes(search, "true"), all: true},
		"OtherTypedAuto":     {reason: "auto of another type leaves it on", notes: notes(secretAuto, "true"), all: true},
		"TypedAutoFalse":     {reason: "auto of the type turns it off", notes: notes(configMapAuto, "false")},
		"TypedAutoOther":     {reason: "but for that type only", notes: notes(configMapAuto, "false"), source: "secret/s", all: true},
		"Nonsense":           {reason: "a value that isn't a boolean counts as false", notes: notes(auto, "nonsense")},
		"Excluded":           {reason: "an excluded source doesn't reload", notes: notes(auto, "true", excludeConfigMap, "a, c")},
		"ExcludedNamed":      {reason: "not even a named one", notes: notes(configMapReload, "c", excludeConfigMap, "c")},
		"Nothing":            {reason: "a workload without annotations follows what it uses with the flag only", all: true},
	}
}

// meanings is the table of keys, with what their values mean.
func meanings() map[string]wish {
	return map[string]wish{
		"AutoShort":         {reason: "Go's booleans are read", notes: notes(auto, "t"), off: true, all: true},
		"AutoCapitals":      {reason: "Go's booleans are read", notes: notes(auto, "TRUE"), off: true, all: true},
		"AutoZero":          {reason: "Go's booleans are read", notes: notes(auto, "0")},
		"AutoEmpty":         {reason: "an empty value counts as absent", notes: notes(auto, ""), all: true},
		"AutoUnused":        {reason: "auto follows only what the pods use", notes: notes(auto, "true"), pod: uses("configmap/other")},
		"AutoSecret":        {reason: "auto covers Secrets", notes: notes(auto, "true"), source: "secret/s", off: true, all: true},
		"InTemplate":        {reason: "keys are read from the template too", template: notes(configMapAuto, "true"), off: true, all: true},
		"NamedInTemplate":   {reason: "keys are read from the template too", template: notes(secretReload, "s"), source: "secret/s", off: true, all: true},
		"NamedUnused":       {reason: "a named source needn't be used", notes: notes(configMapReload, "c"), pod: uses(), off: true, all: true},
		"Blanks":            {reason: "blanks in a list don't matter", notes: notes(secretReload, " a , s "), pod: uses(), source: "secret/s", off: true, all: true},
		"Pattern":           {reason: "items are patterns", notes: notes(configMapReload, `conf-\d`), pod: uses(), source: "configmap/conf-1", off: true, all: true},
		"PatternAnchored":   {reason: "which match the whole name", notes: notes(configMapReload, "c"), pod: uses(), source: "configmap/cc"},
		"PatternUngrouped":  {reason: "but alternatives only one end of it", notes: notes(configMapReload, "x|c"), pod: uses(), source: "configmap/abc", off: true, all: true},
		"PatternBad":        {reason: "a bad pattern doesn't hide the others", notes: notes(configMapReload, "(, c"), pod: uses(), off: true, all: true},
		"SearchCapitals":    {reason: "search is exactly true", notes: notes(auto, "false", search, "True"), on: notes(match, "true")},
		"MatchCapitals":     {reason: "match is exactly true", notes: notes(auto, "false", search, "true"), on: notes(match, "True")},
		"SearchUnused":      {reason: "search follows only what the pods use", notes: notes(search, "true"), on: notes(match, "true"), pod: uses("configmap/other")},
		"Ignored":           {reason: "an ignored source doesn't reload", notes: notes(auto, "true"), on: notes(ignore, "true")},
		"IgnoredNamed":      {reason: "not even a named one", notes: notes(secretReload, "s"), source: "secret/s", on: notes(ignore, "true")},
		"IgnoreCapitals":    {reason: "ignore is exactly true", notes: notes(auto, "true"), on: notes(ignore, "True"), off: true, all: true},
		"IgnoreOnWorkload":  {reason: "ignore means nothing on a workload", notes: notes(auto, "true", ignore, "true"), off: true, all: true},
		"ExcludeExact":      {reason: "exclude has no patterns", notes: notes(auto, "true", excludeConfigMap, ".*"), off: true, all: true},
		"ExcludeOtherType":  {reason: "exclude is for one type", notes: notes(auto, "true", excludeSecret, "c"), off: true, all: true},
		"ExcludeInTemplate": {reason: "exclude isn't read from the template", template: notes(auto, "true", excludeConfigMap, "c"), off: true, all: true},
	}
}

// wishes are both tables, with and without --auto-reload-all. Workloads that follow the same source
// share a namespace.
func wishes(autoAll bool) map[string]scene {
	groups := map[string]map[string]wish{}
	all := precedence()
	maps.Copy(all, meanings())
	for name, w := range all {
		w.source = cmp.Or(w.source, "configmap/c")
		if len(w.pod.Containers) == 0 {
			w.pod = uses(w.source)
		}
		group := w.group()
		if groups[group] == nil {
			groups[group] = map[string]wish{}
		}
		groups[group][name] = w
	}
	scenes := map[string]scene{}
	for name, group := range groups {
		scenes[name] = grants(group, autoAll)
	}
	return scenes
}

// group names the source: "configmap-c-match-true".
func (w wish) group() string {
	name := strings.ReplaceAll(w.source, "/", "-")
	for key, value := range w.on {
		name += "-" + path.Base(key) + "-" + value
	}
	return name
}

// grants changes the source of wishes, and looks whom that reloads.
func grants(wishes map[string]wish, autoAll bool) scene {
	return func(t *testing.T, r *room, _ *program) {
		t.Helper()
		var source client.Object
		workloads := map[string]*unstructured.Unstructured{}
		for name, w := range wishes {
			if source == nil {
				source = r.source(t, w.source, "0", w.on)
			}
			workloads[name] = r.add(t, app{name: strings.ToLower(name), notes: w.notes, template: w.template, pod: w.pod})
		}
		f := r.fence(t)
		r.set(t, source, "1")
		f.pass(t)
		for name, w := range wishes {
			o := workloads[name]
			reloads := w.off
			if autoAll {
				reloads = w.all
			}
			if !reloads {
				r.mustBeUntouched(t, o)
			} else if r.awaitReloads(t, o, 1, mark(w.source, "1")); !writtenByReloader(o) {
				t.Errorf("the field managers of %s are %v", name, o.GetManagedFields())
			}
			if t.Failed() {
				t.Fatalf("%s: %s", name, w.reason)
			}
		}
	}
}

// TestAutoReloadAll plays the tables with the flag.
func TestAutoReloadAll(t *testing.T) {
	t.Parallel()
	newSite(t, values{}).play(t, wishes(true), "--auto-reload-all")
}
