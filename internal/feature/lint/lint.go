package lint

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Options set how manifests are checked.
type Options struct {
	// Kinds are the kinds of workloads.
	Kinds []kube.Kind
	// Words parse the annotations.
	Words settings.Vocabulary
	// Complete is true when the manifests are complete: an object that they don't contain
	// doesn't exist.
	Complete bool
	// Nearest finds the words that a misspelt one may stand for.
	Nearest review.Nearest
}

// Mistake is a mistake, and where it is.
type Mistake struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Severity is "error" or "warning".
	Severity review.Severity `json:"severity"`
	// Rule is the name of the rule.
	Rule review.Rule `json:"rule"`
	// Object is the object with the mistake, such as "deployment/web".
	Object string `json:"object"`
	// Namespace is that of the object, omitted if the file doesn't name one.
	Namespace string `json:"namespace,omitempty"`
	// Message is the explanation.
	Message string `json:"message"`
}

// Result is the result of a check.
type Result struct {
	Findings []Mistake `json:"findings"`
	// Workloads is the number of checked workloads.
	Workloads int `json:"workloads"`
	// Sources is the number of checked ConfigMaps and Secrets.
	Sources int `json:"sources"`
	// Namespaces is the number of checked namespaces.
	Namespaces int `json:"namespaces"`
	// Others are the numbers of objects of other kinds. Lockstep checks only the keys of their
	// metadata.
	Others map[string]int `json:"others,omitempty"`
}

// Count is how many findings have a severity.
func (r Result) Count(severity review.Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}

// Check checks objects, all together.
func Check(objects []manifest.Object, o Options) Result {
	c := checking{Options: o, result: Result{Findings: []Mistake{}, Others: map[string]int{}}, all: shelfOf(objects)}
	for _, object := range objects {
		c.check(object)
	}
	c.order(c.workloads)
	sorting.By(c.result.Findings, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return c.result
}

// checking is one run.
type checking struct {
	Options
	result    Result
	all       shelf
	workloads []manifest.Object
}

func (c *checking) check(o manifest.Object) {
	kind := slices.IndexFunc(c.Kinds, func(k kube.Kind) bool { return k.GroupKind() == o.GroupVersionKind().GroupKind() })
	paths := [][]string{nil}
	if kind >= 0 {
		paths = append(paths, strings.Split(c.Kinds[kind].Template, "."))
	}
	o = c.strict(o, paths...)
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	switch core := o.GroupVersionKind().Group == corev1.GroupName; {
	case kind >= 0:
		c.result.Workloads++
		c.workloads = append(c.workloads, o)
		c.workload(o, c.Kinds[kind])
	case core && isSource(o):
		c.result.Sources++
		c.add(o, review.OfSource(o.GetKind(), annotations, labels, c.Nearest))
	case core && o.GetKind() == "Namespace":
		c.result.Namespaces++
		c.add(o, review.OfNamespace(annotations, labels, c.Nearest))
	default:
		c.result.Others[o.GetKind()]++
		c.add(o, review.OfOther(o.GetKind(), annotations, labels, c.Nearest))
	}
}

func (c *checking) workload(o manifest.Object, kind kube.Kind) {
	w := review.Workload{
		Kind: o.GetKind(), Annotations: o.GetAnnotations(), Labels: o.GetLabels(),
		Words: c.Words, Namespace: c.all.namespace(o.GetNamespace()),
	}
	read, err := kind.Read(o.Unstructured)
	if err != nil {
		// The cause may quote a value of the file.
		c.note(o, o.Line, review.WrongType, "the object cannot be read as a "+o.GetKind()+": a field has a value of the wrong type")
		w.Partial = true
	} else {
		w.NoTemplate, w.Partial = c.template(&w, kind, read)
	}
	c.addAt(o, review.OfWorkload(w, c.Nearest), strings.Split(kind.Template, "."))
	if err == nil && w.NoTemplate == "" {
		c.references(o, w)
	}
}

// template reads the pod template into w.
func (c *checking) template(w *review.Workload, kind kube.Kind, object client.Object) (problem string, partial bool) {
	template, err := kind.PodTemplate(object)
	if err != nil {
		return kind.Template + " isn't a pod template", false
	}
	w.TemplateAnnotations, w.TemplateLabels = template.Annotations, template.Labels
	w.Refs = podrefs.Extract(&template.Spec)
	for _, container := range slices.Concat(template.Spec.Containers, template.Spec.InitContainers) {
		w.Containers = append(w.Containers, container.Name)
	}
	return "", len(w.Containers) == 0 || kind.Lender(object) != kube.Key{}
}

func (c *checking) add(o manifest.Object, found []review.Mistake) { c.addAt(o, found, nil) }

// addAt adds findings about an object whose pod template is at that path.
func (c *checking) addAt(o manifest.Object, found []review.Mistake, template []string) {
	for _, f := range found {
		c.result.Findings = append(c.result.Findings, Mistake{
			File: o.File, Line: o.LineOf(place(f, template)...), Severity: f.Severity, Rule: f.Rule, Object: o.Called(), Namespace: o.GetNamespace(), Message: f.Message,
		})
	}
}

// place is the path that a finding is about.
func place(f review.Mistake, template []string) []string {
	switch f.At {
	case review.Annotations, review.Labels:
		return []string{"metadata", string(f.At), f.Key}
	case review.TemplateAnnotations:
		return slices.Concat(template, []string{"metadata", "annotations", f.Key})
	case review.TemplateLabels:
		return slices.Concat(template, []string{"metadata", "labels", f.Key})
	}
	return nil
}

func isSource(o manifest.Object) bool { return o.GetKind() == "ConfigMap" || o.GetKind() == "Secret" }
