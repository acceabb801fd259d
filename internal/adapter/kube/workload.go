package kube

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Workload is what is kept of anything that has a pod template. It is shared
// between readers and never changed after it was stored.
type Workload struct {
	Key             Key
	Kind            Kind
	UID             string
	ResourceVersion string
	Created         time.Time
	Deleting        bool
	// Annotations are the workload's own settings for Lockstep, nothing else.
	Annotations map[string]string
	// Selector finds the workload's revisions.
	Selector *metav1.LabelSelector
	// Refs are the sources that the template names.
	Refs []podrefs.Ref
	// Shown are the versions that the template shows.
	Shown input.Shown
	// TemplateWritten bounds the last change of the pod template.
	TemplateWritten Bounds
	// SettingsWritten bounds the last change of Annotations.
	SettingsWritten Bounds

	templateSum [sha256.Size]byte
}

// GetObjectMeta lets client-go's stores find the workload's name.
func (w *Workload) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: w.Key.Namespace, Name: w.Key.Name, ResourceVersion: w.ResourceVersion}
}

// follow carries over from the earlier copy what only a comparison can tell.
func (w *Workload) follow(old *Workload, arrival arrival) {
	if w.UID != old.UID {
		w.first(arrival)
		return
	}
	w.TemplateWritten = old.TemplateWritten
	if w.templateSum != old.templateSum {
		w.TemplateWritten = writtenBetween(old.ResourceVersion, w.ResourceVersion, arrival.watched)
	}
	w.SettingsWritten = old.SettingsWritten
	if !maps.Equal(w.Annotations, old.Annotations) {
		w.SettingsWritten = writtenBetween(old.ResourceVersion, w.ResourceVersion, arrival.watched)
	}
}

// first bounds what is known of an object that had no earlier copy.
func (w *Workload) first(arrival arrival) {
	written := writtenUpTo(w.ResourceVersion)
	if arrival.watched {
		written = writtenBetween("", w.ResourceVersion, true)
	}
	w.TemplateWritten, w.SettingsWritten = written, written
}

// sameAs reports whether the difference between two copies can matter to anyone.
func (w *Workload) sameAs(old *Workload) bool {
	return w.UID == old.UID && w.templateSum == old.templateSum && w.Deleting == old.Deleting &&
		maps.Equal(w.Annotations, old.Annotations)
}

// slimWorkload makes a Workload of an API object of the given kind.
func slimWorkload(kind Kind, object any) (*Workload, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	w := &Workload{
		Key:             Key{GroupKind: kind.GroupKind(), Namespace: m.GetNamespace(), Name: m.GetName()},
		Kind:            kind,
		UID:             string(m.GetUID()),
		ResourceVersion: m.GetResourceVersion(),
		Created:         m.GetCreationTimestamp().Time,
		Deleting:        m.GetDeletionTimestamp() != nil,
		Annotations:     ownSettings(m.GetAnnotations()),
	}
	template, err := podTemplate(kind, object)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", kind.Template, w.Key, err)
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("digest %s of %s: %w", kind.Template, w.Key, err)
	}
	w.templateSum = sha256.Sum256(text)
	w.Selector = selectorOf(object)
	w.Refs = podrefs.Extract(&template.Spec)
	w.Shown = input.ParseShown(template.Annotations[settings.Inputs])
	return w, nil
}

// podTemplate returns the pod template of an object. A kind that Go does not
// know is read along the kind's path.
func podTemplate(kind Kind, object any) (*corev1.PodTemplateSpec, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template, nil
	case *appsv1.StatefulSet:
		return &o.Spec.Template, nil
	case *appsv1.DaemonSet:
		return &o.Spec.Template, nil
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template, nil
	case *unstructured.Unstructured:
		return templateAt(o, kind.templatePath())
	}
	return nil, fmt.Errorf("unexpected type %T", object)
}

func templateAt(o *unstructured.Unstructured, path []string) (*corev1.PodTemplateSpec, error) {
	fields, found, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return nil, err
	}
	template := &corev1.PodTemplateSpec{}
	if !found {
		return template, nil
	}
	return template, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template)
}

// selectorOf returns the selector of kinds that have revisions.
func selectorOf(object any) *metav1.LabelSelector {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	case *appsv1.DaemonSet:
		return o.Spec.Selector
	case *unstructured.Unstructured:
		fields, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
		selector := &metav1.LabelSelector{}
		if err == nil && found && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector) == nil {
			return selector
		}
	}
	return nil
}

// ownSettings keeps the annotations that mean something to Lockstep.
func ownSettings(annotations map[string]string) map[string]string {
	var own map[string]string
	for key, value := range annotations {
		if !strings.HasPrefix(key, settings.Prefix) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[key] = value
	}
	return own
}
