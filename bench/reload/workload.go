package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// The kinds of workloads.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindCronJob     = "CronJob"
)

// workload is an object with a pod template that uses sources.
type workload struct {
	kind, name string
	sources    []*source
	replicas   int

	// As shown by the watch; guarded by the world.
	template [sha256.Size]byte
	// written is the resource version of the last write of the pod template.
	written  uint64
	rollouts int
	shown    string
	gone     bool
	// rolling is true until all pods are available and have the template.
	rolling bool
}

// readsByItself: each Job of a CronJob reads the current contents when it starts.
func (w *workload) readsByItself() bool { return w.kind == kindCronJob }

// annotations request the same from every known reloader, each with its own annotations.
func (w *workload) annotations() map[string]string {
	names := map[input.Kind][]string{}
	for _, s := range w.sources {
		names[s.id.Kind] = append(names[s.id.Kind], s.id.Name)
	}
	all := map[string]string{
		"lockstep.dev/reload":                     "auto",
		"reloader.stakater.com/auto":              "true",
		"wave.pusher.com/update-on-config-change": "true",
	}
	if list := names[input.KindConfigMap]; len(list) > 0 {
		all["reloader.k8s.collaborne.com/configmap"] = strings.Join(list, ",")
	}
	if list := names[input.KindSecret]; len(list) > 0 {
		all["reloader.k8s.collaborne.com/secret"] = strings.Join(list, ",")
	}
	return all
}

func (w *workload) podTemplate() corev1.PodTemplateSpec {
	container := corev1.Container{Name: "app", Image: "example.com/app:1"}
	for _, s := range w.sources {
		name := corev1.LocalObjectReference{Name: s.id.Name}
		from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name}}
		if s.id.Kind == input.KindSecret {
			from = corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name}}
		}
		container.EnvFrom = append(container.EnvFrom, from)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
	}
}

func (w *workload) labels() map[string]string { return map[string]string{"app": w.name} }

func (w *workload) create(ctx context.Context, c kubernetes.Interface) error {
	about := metav1.ObjectMeta{Name: w.name, Annotations: w.annotations()}
	selector := &metav1.LabelSelector{MatchLabels: w.labels()}
	replicas := new(int32(w.replicas))
	template := w.podTemplate()
	options := metav1.CreateOptions{}
	var err error
	switch w.kind {
	case kindDeployment:
		_, err = c.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: about, Spec: appsv1.DeploymentSpec{Replicas: replicas, Selector: selector, Template: template},
		}, options)
	case kindStatefulSet:
		_, err = c.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: about, Spec: appsv1.StatefulSetSpec{Replicas: replicas, Selector: selector, Template: template},
		}, options)
	case kindDaemonSet:
		_, err = c.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: about, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
		}, options)
	case kindCronJob:
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err = c.BatchV1().CronJobs(namespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: about, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: template},
			}},
		}, options)
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", w.kind, w.name, err)
	}
	return nil
}

func (w *workload) remove(ctx context.Context, c kubernetes.Interface) error {
	return c.AppsV1().Deployments(namespace).Delete(ctx, w.name, metav1.DeleteOptions{})
}

// roll patches the pod template, as a reloader does.
func (w *workload) roll(ctx context.Context, c kubernetes.Interface) error {
	body := []byte(`{"spec":{"template":{"metadata":{"annotations":{"bench.example.com/rolled":"true"}}}}}`)
	_, err := c.AppsV1().Deployments(namespace).Patch(ctx, w.name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// observe updates the workload from a watch event.
func (w *workload) observe(object runtime.Object) error {
	about, template, err := templateOf(object)
	if err != nil {
		return err
	}
	text, err := json.Marshal(template)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if sum == w.template {
		return nil
	}
	if w.written != 0 {
		w.rollouts++
	}
	w.template, w.shown = sum, template.Annotations["lockstep.dev/inputs"]
	w.written, err = strconv.ParseUint(about.GetResourceVersion(), 10, 64)
	return err
}

func templateOf(object runtime.Object) (metav1.Object, *corev1.PodTemplateSpec, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o, &o.Spec.Template, nil
	case *appsv1.StatefulSet:
		return o, &o.Spec.Template, nil
	case *appsv1.DaemonSet:
		return o, &o.Spec.Template, nil
	case *batchv1.CronJob:
		return o, &o.Spec.JobTemplate.Spec.Template, nil
	}
	return nil, nil, fmt.Errorf("unexpected type %T", object)
}

func kindOf(object runtime.Object) string {
	switch object.(type) {
	case *appsv1.StatefulSet:
		return kindStatefulSet
	case *appsv1.DaemonSet:
		return kindDaemonSet
	case *batchv1.CronJob:
		return kindCronJob
	}
	return kindDeployment
}
