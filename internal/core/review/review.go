// Package review finds mistakes in Lockstep's annotations and labels on one object: keys
// that don't exist, values that aren't understood, settings that exclude each other. It uses
// the controller's parsers, and has no rules of its own about values.
package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Mistake is one mistake.
type Mistake struct {
	Rule     Rule
	Severity Severity
	// At is the map that contains the key, and Key the key; empty when the whole object is
	// meant.
	At  Metadata
	Key string
	// Message explains what is wrong and what to do.
	Message string
}

// Metadata is one of the maps in which users write keys.
type Metadata string

// The maps.
const (
	Annotations         Metadata = "annotations"
	Labels              Metadata = "labels"
	TemplateAnnotations Metadata = "template annotations"
	TemplateLabels      Metadata = "template labels"
)

// Nearest finds the candidates that a misspelt word may stand for.
type Nearest func(word string, candidates []string) []string

// Workload is the checked part of an object with a pod template.
type Workload struct {
	// Kind is its name in messages: "Deployment".
	Kind                                string
	Annotations, Labels                 map[string]string
	TemplateAnnotations, TemplateLabels map[string]string
	// Words parse the annotations.
	Words settings.Vocabulary
	// Namespace contains its namespace's annotations, if known.
	Namespace map[string]string
	// Refs are the sources that the template names, Containers its containers.
	Refs       []podrefs.Ref
	Containers []string
	// NoTemplate explains why there is no pod template, empty when there is one. Partial is
	// true when the template isn't complete: it is another object's, or the file is a patch.
	NoTemplate string
	Partial    bool
}

// Intent is the workload's request, also in the annotations of other tools that Words read.
func (w Workload) Intent() settings.Intent {
	own := w.Annotations
	if translator, ok := w.Words.(settings.Translator); ok {
		own = translator.OfWorkload(w.Kind, maps.Clone(own), w.TemplateAnnotations)
	}
	return w.Words.Intent(own, w.Namespace)
}

// OfWorkload lists a workload's mistakes, in order of keys.
func OfWorkload(w Workload, nearest Nearest) []Mistake {
	r := report{nearest: nearest}
	r.keys(Annotations, w.Annotations, settings.ForWorkloads(), "a "+w.Kind)
	r.keys(Labels, w.Labels, nil, "a "+w.Kind)
	r.keys(TemplateAnnotations, w.TemplateAnnotations, nil, "a pod template")
	r.keys(TemplateLabels, w.TemplateLabels, nil, "a pod template")
	intent := w.Intent()
	for _, p := range slices.Concat(intent.Mistakes.Problems, intent.Mistakes.Ignored) {
		r.add(InvalidValue, Annotations, p.Key, p.String())
	}
	r.windows(intent, settings.OnWorkload)
	for _, text := range intent.Mistakes.Lost {
		r.add(NoCounterpart, Annotations, keyIn(text, w.Annotations), text)
	}
	for _, text := range intent.Mistakes.Refused {
		r.add(InvalidImage, Annotations, keyIn(text, w.Annotations), text)
	}
	if intent.Mistakes.TooMany != "" {
		r.add(TooManySources, Annotations, settings.Reload, intent.Mistakes.TooMany)
	}
	if w.NoTemplate != "" && asksForAnything(intent) {
		r.add(NoTemplate, "", "", w.NoTemplate)
	}
	if w.NoTemplate == "" && !w.Partial {
		r.containers(w, intent)
		r.nothing(w, intent)
		r.refreshes(w, intent)
	}
	r.contradictions(w.Annotations, intent)
	return r.sorted()
}

// OfNamespace lists the mistakes in a namespace's metadata.
func OfNamespace(annotations, labels map[string]string, nearest Nearest) []Mistake {
	r := report{nearest: nearest}
	r.keys(Annotations, annotations, settings.ForNamespaces(), "a Namespace")
	r.keys(Labels, labels, nil, "a Namespace")
	intent := settings.ForWorkload(nil, annotations, settings.Defaults{})
	for _, p := range intent.Mistakes.Warnings {
		r.add(InvalidValue, Annotations, p.Key, p.String())
	}
	r.windows(intent, settings.OnNamespace)
	return r.sorted()
}

// OfSource lists the mistakes in the metadata of a ConfigMap or Secret.
func OfSource(kind string, annotations, labels map[string]string, nearest Nearest) []Mistake {
	r := report{nearest: nearest}
	r.keys(Annotations, annotations, settings.ForSources(), "a "+kind)
	r.keys(Labels, labels, settings.LabelsForSources(), "a "+kind)
	for _, p := range settings.SourceProblems(annotations) {
		r.add(InvalidValue, Annotations, p.Key, p.String())
	}
	if value, set := labels[settings.Revisioned]; set && value != "true" {
		r.add(InvalidValue, Labels, settings.Revisioned, fmt.Sprintf("label %s: %q has no effect; accepted: true", settings.Revisioned, settings.Shorten(value)))
	}
	return r.sorted()
}

// OfOther lists our keys on an object that Lockstep doesn't read.
func OfOther(kind string, annotations, labels map[string]string, nearest Nearest) []Mistake {
	r := report{nearest: nearest}
	r.keys(Annotations, annotations, nil, "a "+kind)
	r.keys(Labels, labels, nil, "a "+kind)
	return r.sorted()
}

// report gathers findings.
type report struct {
	nearest Nearest
	all     []Mistake
}

func (r *report) add(rule Rule, at Metadata, key, message string) {
	r.all = append(r.all, Mistake{Rule: rule, Severity: severityOf(rule), At: at, Key: key, Message: message})
}

func (r *report) sorted() []Mistake {
	sorting.By(r.all, func(a, b Mistake) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) })
	return r.all
}

// containers checks the containers that image annotations name.
func (r *report) containers(w Workload, intent settings.Intent) {
	for _, image := range intent.Images {
		if !slices.Contains(w.Containers, image.Container) {
			r.add(UnknownContainer, Annotations, image.Key(), fmt.Sprintf("annotation %s: the pod template doesn't contain a container %q%s",
				image.Key(), image.Container, r.hint("", image.Container, w.Containers)))
		}
	}
}

// nothing finds a workload that asks to be followed but doesn't use any source.
func (r *report) nothing(w Workload, intent settings.Intent) {
	_, asks := w.Annotations[settings.Reload]
	if asks && intent.Mode == settings.Follow && intent.Auto && len(intent.Listed) == 0 && len(w.Refs) == 0 {
		r.add(NothingToFollow, Annotations, settings.Reload, fmt.Sprintf("annotation %s: the pod template doesn't use a ConfigMap or Secret, so there is nothing to follow", settings.Reload))
	}
}

// refreshes finds sources that the refresh strategy doesn't reach.
func (r *report) refreshes(w Workload, intent settings.Intent) {
	if intent.Strategy != settings.StrategyRefresh {
		return
	}
	var beyond []string
	for _, ref := range w.Refs {
		if ref.Env || ref.SubPath || !ref.Volume {
			beyond = append(beyond, ref.Source.String())
		}
	}
	if len(beyond) > 0 {
		r.add(Contradiction, Annotations, settings.Strategy, fmt.Sprintf(
			"annotation %s: a refresh does not reach %s, which is read as environment variables or by subPath; use evict or template", settings.Strategy, strings.Join(beyond, ", ")))
	}
}

// contradictions finds settings that exclude each other.
func (r *report) contradictions(annotations map[string]string, intent settings.Intent) {
	if intent.Strategy != settings.StrategyTemplate && len(intent.Images) > 0 {
		r.add(Contradiction, Annotations, settings.Strategy, fmt.Sprintf(
			"annotation %s: %s does not change the pod template, so %s has no effect; use template", settings.Strategy, intent.Strategy, intent.Images[0].Key()))
	}
	if _, set := annotations[settings.Enforce]; set && len(intent.Images)+len(intent.Mistakes.Refused) == 0 {
		r.add(Contradiction, Annotations, settings.Enforce, fmt.Sprintf("annotation %s has no effect without %sCONTAINER", settings.Enforce, settings.ImagePrefix))
	}
	if intent.Mode != settings.Never || len(intent.Images) > 0 {
		return
	}
	for _, key := range []string{settings.Quiet, settings.Strategy, settings.Release} {
		if _, set := annotations[key]; set {
			r.add(Contradiction, Annotations, key, fmt.Sprintf("annotation %s has no effect, because %s is never", key, settings.Reload))
		}
	}
}

// asksForAnything reports whether the workload asks to be followed.
func asksForAnything(intent settings.Intent) bool {
	return intent.Mode == settings.Follow || len(intent.Images) > 0
}

// keyIn is the annotation that a refusal is about.
func keyIn(text string, annotations map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(text, "annotation "+key+":") || strings.HasPrefix(text, "annotation "+key+" ") {
			return key
		}
	}
	return ""
}
