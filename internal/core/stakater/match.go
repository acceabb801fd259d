package stakater

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Workload is the part of a workload that decides which sources reload it.
type Workload struct {
	// Annotations are those of the workload's metadata.
	Annotations map[string]string
	// Template is the pod template; of a CronJob, the one in its Job template.
	Template *corev1.PodTemplateSpec
}

// Match reports whether a change of the source reloads the workload, and which regular
// container shows it.
func (w Words) Match(on Workload, s Source) (container int, ok bool) {
	return w.Read(on).Match(s)
}

// Reading is what a workload asks for, to be compared with many sources. It isn't for several
// goroutines.
type Reading struct {
	words Words
	on    Workload
	asked map[Type]asked
}

// Read reads what the workload asks for.
func (w Words) Read(on Workload) *Reading { return &Reading{words: w, on: on, asked: map[Type]asked{}} }

// Match is that of Words.
func (r *Reading) Match(s Source) (container int, ok bool) {
	if s.Name == "" || s.Ignore || !r.on.runs() || lists(r.on.Annotations[r.words.Keys.of(s.Type).exclude], s.Name) {
		return 0, false
	}
	asked := r.about(s.Type)
	named := slices.ContainsFunc(asked.patterns, func(p pattern) bool { return p.matches(s.Name) })
	found := asked.search && s.Match
	if !named && !found && !asked.auto {
		return 0, false
	}
	container, referenced := containerOf(&r.on.Template.Spec, s)
	return container, referenced || named
}

// about reads the annotations about sources of a type at the first call.
func (r *Reading) about(t Type) asked {
	known, ok := r.asked[t]
	if !ok {
		known = r.words.read(r.on, t)
		known.patterns = usable(known.named)
		r.asked[t] = known
	}
	return known
}

// Lists reports whether the workload names sources of the type by patterns.
func (w Words) Lists(on Workload, t Type) bool { return w.read(on, t).named != "" }

// Follows reports whether any source can reload the workload, without a look at the sources.
func (w Words) Follows(on Workload) bool {
	return on.runs() && slices.ContainsFunc(types(), func(t Type) bool {
		asked := w.read(on, t)
		return asked.named != "" || asked.search || asked.auto
	})
}

// runs reports whether there is a regular container, without which no change can be shown.
func (on Workload) runs() bool {
	return on.Template != nil && len(on.Template.Spec.Containers) > 0
}

func types() []Type {
	return []Type{ConfigMap, Secret, SecretProviderClass}
}

// asked is what a workload asks for about sources of one type.
type asked struct {
	// named is the list of patterns, which reload without a reference.
	named    string
	patterns []pattern
	// search asks for referenced sources that carry the match annotation, auto for all
	// referenced sources.
	search, auto bool
}

func (w Words) read(on Workload, t Type) asked {
	place, keys := w.place(on, t), w.Keys.of(t)
	both, typed := place[w.Keys.Auto], place[keys.auto]
	return asked{
		named:  place[keys.named],
		search: place[w.Keys.Search] == "true",
		auto:   isTrue(both) || isTrue(typed) || w.AutoAll && both == "" && typed == "",
	}
}

// place is where the annotations about sources of a type are read: the metadata if it contains
// one of their keys, even with an empty value, and otherwise the pod template. The two are
// never mixed.
func (w Words) place(on Workload, t Type) map[string]string {
	keys := w.Keys.of(t)
	for _, key := range []string{keys.named, w.Keys.Auto, keys.auto, w.Keys.Search} {
		if _, ok := on.Annotations[key]; ok {
			return on.Annotations
		}
	}
	if on.Template == nil {
		return nil
	}
	return on.Template.Annotations
}

func isTrue(value string) bool {
	yes, err := strconv.ParseBool(value)
	return err == nil && yes
}

// lists reports whether a list contains a name, exactly.
func lists(list, name string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == name {
			return true
		}
	}
	return false
}
