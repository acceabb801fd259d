package kube

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// StartsPods reports whether the kind keeps starting new pods, which read new content without a
// rollout, as each Job of a CronJob does.
func (k Kind) StartsPods() bool {
	return k.RestartsByItself
}

// Attachable reports whether objects can be attached to the kind's revisions.
func (k Kind) Attachable() bool {
	return k.CurrentOf != nil
}

// templatePath is Template as a list of fields.
func (k Kind) templatePath() []string {
	return strings.Split(k.Template, ".")
}

// NewObject returns an empty object of the kind.
func (k Kind) NewObject() client.Object {
	if k.Typed.Object != nil {
		return k.Typed.Object()
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.GroupVersionKind)
	return o
}

// NewList returns an empty list of the kind.
func (k Kind) NewList() client.ObjectList {
	if k.Typed.List != nil {
		return k.Typed.List()
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersionKind)
	return list
}

// Read converts an object of the kind to the form that the kind's readers expect.
func (k Kind) Read(object any) (client.Object, error) {
	o, untyped := object.(*unstructured.Unstructured)
	switch {
	case untyped && k.Typed.Object != nil:
		typed := k.Typed.Object()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
			return nil, fmt.Errorf("read %s: %w", objectname.Full(k.GroupKind(), o.GetNamespace(), o.GetName()), err)
		}
		return typed, nil
	case untyped:
		return o, nil
	}
	typed, ok := object.(client.Object)
	if !ok || k.Typed.Object == nil {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return typed, nil
}

// PodTemplate returns the pod template of an object. For a kind without a Go type it follows the
// kind's template path.
func (k Kind) PodTemplate(o client.Object) (*corev1.PodTemplateSpec, error) {
	if k.Typed.Template != nil {
		return k.Typed.Template(o), nil
	}
	return k.templateAt(o.(*unstructured.Unstructured).Object)
}

func (k Kind) templateAt(object map[string]any) (*corev1.PodTemplateSpec, error) {
	fields, found, err := unstructured.NestedMap(object, k.templatePath()...)
	if err != nil {
		return nil, err
	}
	template := &corev1.PodTemplateSpec{}
	if _, borrowed := k.reference(object); borrowed && !found {
		return template, nil
	}
	// Any map decodes as an empty template. A template without a pod spec means a wrong path:
	// one field too high or too low.
	if _, isTemplate := fields["spec"].(map[string]any); !isTemplate {
		return nil, errors.New("there is nothing")
	}
	return template, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template)
}

// reference is the field that names the object whose template this one uses.
func (k Kind) reference(object map[string]any) (map[string]any, bool) {
	if k.Reference == "" {
		return nil, false
	}
	fields, found, err := unstructured.NestedMap(object, strings.Split(k.Reference, ".")...)
	return fields, found && err == nil
}

// Lender is the object whose template the workload uses, or the zero Key when it uses its own.
func (k Kind) Lender(o client.Object) Key {
	custom, ok := o.(*unstructured.Unstructured)
	if !ok {
		return Key{}
	}
	ref, found := k.reference(custom.Object)
	if !found {
		return Key{}
	}
	text := func(field string) string {
		value, _ := ref[field].(string)
		return Cut(value)
	}
	group := schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")).GroupKind()
	return Key{GroupKind: group, Namespace: o.GetNamespace(), Name: text("name")}
}

// Selector returns the selector of a workload's pods, nil for a kind without one and for an
// unreadable one: parsed leniently, it would select everything.
func (k Kind) Selector(o client.Object) *metav1.LabelSelector {
	if k.Typed.Selector != nil {
		return k.Typed.Selector(o)
	}
	return selectorAt(o.(*unstructured.Unstructured), "spec", "selector")
}

// selectorAt reads a label selector, or the plain label map that a ReplicationController or
// DeploymentConfig has instead.
func selectorAt(o *unstructured.Unstructured, path ...string) *metav1.LabelSelector {
	if plain, found, err := unstructured.NestedStringMap(o.Object, path...); err == nil && found {
		return &metav1.LabelSelector{MatchLabels: plain}
	}
	fields, found, err := unstructured.NestedMap(o.Object, path...)
	if err != nil || !found {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, selector, true) != nil {
		return nil
	}
	return selector
}

// Replicas is the workload's desired number of pods, zero when it isn't specified.
func (k Kind) Replicas(o client.Object) int {
	if k.Typed.Replicas != nil {
		return k.Typed.Replicas(o)
	}
	replicas, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec", "replicas")
	return int(replicas)
}

// Status reports the progress of the workload's controller. A custom kind's observed generation
// is read from the usual field.
func (k Kind) Status(o client.Object) Progress {
	if k.StatusOf != nil {
		return k.StatusOf(o)
	}
	fields, _, _ := unstructured.NestedMap(o.(*unstructured.Unstructured).Object, "status")
	observed, tells := generationIn(fields, "observedGeneration")
	s := Progress{Status: health.Status{Observed: !tells || observed >= o.GetGeneration()}}
	s.UpdateRevision, _ = fields["updateRevision"].(string)
	if tells { // otherwise the conditions may be about an earlier generation
		s.Ready, s.Stalled = conditionIn(fields, "Ready"), conditionIn(fields, "Stalled")
		if s.Ready == "" {
			s.Ready = conditionIn(fields, "Available")
		}
	}
	return s
}

// generationIn reads a generation from a status; some controllers store it as text.
func generationIn(status map[string]any, field string) (generation int64, tells bool) {
	switch value := status[field].(type) {
	case int64:
		return value, true
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// maxHistory is how many bytes of earlier numbers the Deployment controller keeps.
const maxHistory = 2000

// EarlierNumbers returns the numbers that a revision had before it was used again, each once. Argo
// Rollouts, and the Deployment controller of earlier Kubernetes versions, also store the number
// that a revision keeps: whenever they copy a changed annotation of the workload to it.
func (k Kind) EarlierNumbers(m metav1.Object) []int64 {
	var numbers []int64
	number := k.RevisionNumber(m)
	for _, key := range k.RevisionNumbers {
		history := m.GetAnnotations()[key+"-history"]
		if len(history) > maxHistory {
			_, history, _ = strings.Cut(history[len(history)-maxHistory:], ",")
		}
		for text := range strings.SplitSeq(history, ",") {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && n != number && !slices.Contains(numbers, n) {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

// RevisionNumber is the number that the kind's controller stores on a workload and on its
// revisions, or zero.
func (k Kind) RevisionNumber(m metav1.Object) int64 {
	for _, key := range k.RevisionNumbers {
		if number, err := strconv.ParseInt(m.GetAnnotations()[key], 10, 64); err == nil {
			return number
		}
	}
	return 0
}
