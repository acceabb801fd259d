package kube

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of workload: what the API calls it and where its pod template is.
type Kind struct {
	schema.GroupVersionKind
	// Template is the path of the pod template, for example "spec.template".
	Template string
}

// Deployment is the kind of Deployments.
func Deployment() Kind {
	return Kind{appsv1.SchemeGroupVersion.WithKind("Deployment"), "spec.template"}
}

// templatePath is Template as a list of fields.
func (k Kind) templatePath() []string {
	return strings.Split(k.Template, ".")
}

// newList returns an empty list of the kind: a typed one where Go has the type,
// because those travel as protobuf, which decodes several times faster.
func (k Kind) newList() client.ObjectList {
	switch k.GroupVersionKind {
	case appsv1.SchemeGroupVersion.WithKind("Deployment"):
		return &appsv1.DeploymentList{}
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		return &appsv1.StatefulSetList{}
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet"):
		return &appsv1.DaemonSetList{}
	case batchv1.SchemeGroupVersion.WithKind("CronJob"):
		return &batchv1.CronJobList{}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersionKind)
	return list
}

// Key names one workload of the cluster.
type Key struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// String is how people name it: "Deployment/shop/web".
func (k Key) String() string {
	return fmt.Sprintf("%s/%s/%s", k.Kind, k.Namespace, k.Name)
}

// ID names the workload in the record: "Deployment.apps/shop/web".
func (k Key) ID() string {
	return fmt.Sprintf("%s/%s/%s", k.GroupKind, k.Namespace, k.Name)
}

// ParseID reads what ID wrote.
func ParseID(id string) (Key, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return Key{}, fmt.Errorf("parse workload %q: want Kind.group/namespace/name", id)
	}
	return Key{GroupKind: schema.ParseGroupKind(parts[0]), Namespace: parts[1], Name: parts[2]}, nil
}

// ReadsByItself reports whether the kind's next pods read new content without
// being asked: each Job of a CronJob starts new ones.
func (k Kind) ReadsByItself() bool {
	return k.GroupKind() == schema.GroupKind{Group: "batch", Kind: "CronJob"}
}
