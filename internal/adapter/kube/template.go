package kube

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// ShowsVariable reports whether the template shows versions in an environment variable instead
// of an annotation.
func (w *Workload) ShowsVariable() bool {
	return !w.Annotated && w.Place(settings.InputsVariable).Index >= 0
}

// PatchTarget is the object to which template patches are sent.
func (w *Workload) PatchTarget() patch.Target {
	return patch.Target{UID: w.Target.UID, ResourceVersion: w.Target.ResourceVersion, Template: w.Target.Kind.Template, Metadata: w.Metadata, Annotated: w.HasAnnotations}
}

// PatchTarget is the object to which template patches are sent, for an object that was just read.
func (k Kind) PatchTarget(o client.Object, template *corev1.PodTemplateSpec) patch.Target {
	return patch.Target{
		UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(), Template: k.Template,
		Metadata: metadataOf(k, o, template), Annotated: len(o.GetAnnotations()) > 0,
	}
}

// Place finds the position of an environment variable: in the container that already has it,
// else in the first container.
func (w *Workload) Place(name string) patch.SetVariable {
	for i, c := range w.Containers {
		if m, ok := c.Markers[name]; ok {
			return patch.SetVariable{Name: name, Container: i, Index: m.Index}
		}
	}
	return patch.SetVariable{Name: name, Index: -1, First: len(w.Containers) > 0 && w.Containers[0].EnvCount == 0}
}

// metadataOf is how much metadata a pod template has. A custom kind's metadata may contain
// fields that the Go type lacks, so its map is checked.
func metadataOf(kind Kind, object any, template *corev1.PodTemplateSpec) patch.Metadata {
	if len(template.Annotations) > 0 {
		return patch.HasAnnotations
	}
	empty := apiequality.Semantic.DeepEqual(template.ObjectMeta, metav1.ObjectMeta{})
	if o, custom := object.(*unstructured.Unstructured); custom {
		fields, _, _ := unstructured.NestedMap(o.Object, append(kind.templatePath(), "metadata")...)
		empty = len(fields) == 0
	}
	if empty {
		return patch.NoMetadata
	}
	return patch.NoAnnotations
}
