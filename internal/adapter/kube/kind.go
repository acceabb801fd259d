package kube

import (
	"fmt"
	"slices"
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

// StatefulSet is the kind of StatefulSets.
func StatefulSet() Kind {
	return Kind{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "spec.template"}
}

// DaemonSet is the kind of DaemonSets.
func DaemonSet() Kind {
	return Kind{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "spec.template"}
}

// CronJob is the kind of CronJobs.
func CronJob() Kind {
	return Kind{batchv1.SchemeGroupVersion.WithKind("CronJob"), "spec.jobTemplate.spec.template"}
}

// Rollout is the kind of Argo Rollouts.
func Rollout() Kind {
	return Kind{schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, "spec.template"}
}

// Kinds are the kinds that are followed without being asked for.
func Kinds() []Kind {
	return []Kind{Deployment(), StatefulSet(), DaemonSet(), CronJob(), Rollout()}
}

// ParseKind reads "group/version/Kind=path.to.template". The core group is
// written as "v1/Kind=…".
func ParseKind(text string) (Kind, error) {
	name, path, found := strings.Cut(text, "=")
	parts := strings.Split(name, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if !found || len(parts) != 3 || parts[1] == "" || parts[2] == "" || !isPath(path) {
		return Kind{}, fmt.Errorf("parse kind %q: want group/version/Kind=path.to.template, such as example.com/v1/Worker=spec.template", text)
	}
	return Kind{schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, path}, nil
}

func isPath(path string) bool {
	for field := range strings.SplitSeq(path, ".") {
		if field == "" {
			return false
		}
	}
	return true
}

// String is what ParseKind reads.
func (k Kind) String() string {
	return fmt.Sprintf("%s/%s=%s", k.GroupVersion(), k.Kind, k.Template)
}

// Name is what people call the kind: "deployment", "statefulset.apps.kruise.io".
func (k Kind) Name() string {
	return strings.ToLower(k.Kind) + k.suffix()
}

// ResourceName is the kind's resource as people spell it: "deployments in shop",
// "statefulsets.apps.kruise.io".
func (k Kind) ResourceName(namespace string) string {
	return inNamespace(strings.ToLower(k.Kind)+"s"+k.suffix(), namespace)
}

// suffix is the group of a kind that was asked for. It may have the name of one that
// is followed anyway, and readiness, rights and metrics must tell the two apart.
func (k Kind) suffix() string {
	if k.Group == "" || slices.Contains(Kinds(), k) {
		return ""
	}
	return "." + k.Group
}

// StartsPods reports whether the kind starts new pods by itself, again and again, which read
// new content without being asked: each Job of a CronJob does.
func (k Kind) StartsPods() bool {
	return k.GroupKind() == CronJob().GroupKind()
}

// templatePath is Template as a list of fields.
func (k Kind) templatePath() []string {
	return strings.Split(k.Template, ".")
}

// NewList returns an empty list of the kind: a typed one where Go has the type,
// because those travel as protobuf, which decodes several times faster.
func (k Kind) NewList() client.ObjectList {
	switch k {
	case Deployment():
		return &appsv1.DeploymentList{}
	case StatefulSet():
		return &appsv1.StatefulSetList{}
	case DaemonSet():
		return &appsv1.DaemonSetList{}
	case CronJob():
		return &batchv1.CronJobList{}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersionKind)
	return list
}

// ResourceName is a resource as people spell it: "configmaps", "secrets in shop".
func ResourceName(kind, namespace string) string {
	return inNamespace(strings.ToLower(kind)+"s", namespace)
}

func inNamespace(name, namespace string) string {
	if namespace == "" {
		return name
	}
	return name + " in " + namespace
}
