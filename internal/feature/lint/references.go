package lint

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// shelf contains the objects of the manifests.
type shelf struct {
	sources    []source
	namespaces map[string]map[string]string
}

type source struct {
	input.ID
	namespace string
}

func shelfOf(objects []manifest.Object) shelf {
	s := shelf{namespaces: map[string]map[string]string{}}
	for _, o := range objects {
		if o.GroupVersionKind().Group != corev1.GroupName {
			continue
		}
		switch o.GetKind() {
		case "ConfigMap":
			s.sources = append(s.sources, source{input.ConfigMap(cmp.Or(o.GetName(), o.GetGenerateName())), o.GetNamespace()})
		case "Secret":
			s.sources = append(s.sources, source{input.Secret(cmp.Or(o.GetName(), o.GetGenerateName())), o.GetNamespace()})
		case "Namespace":
			s.namespaces[o.GetName()] = o.GetAnnotations()
		}
	}
	return s
}

// namespace returns a namespace's annotations, if the manifests contain it.
func (s shelf) namespace(name string) map[string]string { return s.namespaces[name] }

// rootCertificates is the ConfigMap that Kubernetes creates in every namespace.
func rootCertificates() input.ID { return input.ConfigMap("kube-root-ca.crt") }

// has reports whether the manifests contain a wanted source. One without a namespace may
// be applied to any.
func (s shelf) has(namespace string, wanted func(input.ID) bool) bool {
	return wanted(rootCertificates()) || slices.ContainsFunc(s.sources, func(known source) bool {
		return wanted(known.ID) && (known.namespace == namespace || known.namespace == "" || namespace == "")
	})
}

// absent is how bad it is that an object is in none of the files, and how that is said.
func (c *checking) absent() (review.Severity, string) {
	if c.Complete {
		return review.Error, "isn't in the files"
	}
	return review.Warning, "isn't in the files, so it must exist in the cluster"
}

// references finds the sources that a workload needs and the manifests don't contain.
func (c *checking) references(o manifest.Object, w review.Workload) {
	severity, ending := c.absent()
	add := func(line int, what string) {
		c.result.Findings = append(c.result.Findings, Mistake{
			File: o.File, Line: line, Severity: severity, Rule: review.MissingReference, Object: o.Called(), Namespace: o.GetNamespace(), Message: what + " " + ending,
		})
	}
	var missing []input.ID
	for _, ref := range w.Refs {
		if !ref.Optional && !c.all.has(o.GetNamespace(), func(id input.ID) bool { return id == ref.Source }) {
			missing = append(missing, ref.Source)
			add(lineOf(o, ref.Source), ref.Source.String()+", which the pod template uses,")
		}
	}
	for _, listed := range w.Intent().Listed {
		if !slices.ContainsFunc(missing, listed.Matches) && !c.all.has(o.GetNamespace(), listed.Matches) {
			add(o.LineOf("metadata", "annotations", settings.Reload), input.ID(listed).String()+", which the annotation lists,")
		}
	}
}

// lineOf is where the object names a source.
func lineOf(o manifest.Object, id input.ID) int {
	named := []string{"configMap", "configMapRef", "configMapKeyRef"}
	if id.Kind == input.KindSecret {
		named = []string{"secret", "secretRef", "secretKeyRef"}
	}
	return o.LineWhere(func(path []string, value string) bool {
		last := len(path) - 1
		return value == id.Name && last > 0 && (path[last] == "name" || path[last] == "secretName") && slices.Contains(named, path[last-1])
	})
}
