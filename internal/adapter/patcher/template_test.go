package patcher

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// podsTemplate is a template with an init container and two containers.
func podsTemplate(annotations, labels map[string]string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy:  corev1.RestartPolicyNever,
		InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
		Containers: []corev1.Container{
			{Name: "app", Image: "app:1"},
			{Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: "KEPT", Value: "1"}, {Name: "LOCKSTEP_INPUTS", Value: "old"}}},
		},
	}}
	template.Annotations, template.Labels = annotations, labels
	return template
}

// rolloutWith is a Rollout with a template. Its metadata is left out when it is empty,
// as people write it and as the API server then stores it.
func rolloutWith(t *testing.T, template corev1.PodTemplateSpec) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		t.Fatal(err)
	}
	if template.Labels == nil && template.Annotations == nil {
		delete(fields, "metadata")
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0), "template": fields, "strategy": map[string]any{"canary": map[string]any{}},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}}}
	o.SetGroupVersionKind(kube.Rollout().GroupVersionKind)
	return o
}

func cronJobWith(template corev1.PodTemplateSpec) *batchv1.CronJob {
	suspended := true
	return &batchv1.CronJob{Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
	}}
}

// TestOneDocumentOnTheServer: the API server takes a document with every change, for
// built-in and for custom kinds, with all, some or none of the template's metadata.
func TestOneDocumentOnTheServer(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorldOn(t, labtest.Shared(t, labtest.ArgoRollouts))
	// The API server lists a new kind a moment after it accepts it.
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, err := w.Client.RESTMapper().RESTMapping(kube.Rollout().GroupKind(), kube.Rollout().Version)
		return err == nil, fmt.Sprint(err)
	})
	labels := map[string]string{"app": "web"}
	annotated := map[string]string{"kept": "1", "old": "1"}
	deployment := testkit.Deployment(testkit.Web, "", "")
	deployment.Spec.Template = podsTemplate(nil, labels)
	deployment.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	more := deployment.DeepCopy()
	more.Spec.Template.Annotations = annotated
	for name, tc := range map[string]struct {
		kind   kube.Kind
		object client.Object
		has    patch.Metadata
		kept   map[string]string
	}{
		"deployment-annotated": {kube.Deployment(), more, patch.HasAnnotations, map[string]string{"kept": "1"}},
		"deployment":           {kube.Deployment(), deployment, patch.NoAnnotations, nil},
		"cronjob-annotated":    {kube.CronJob(), cronJobWith(podsTemplate(annotated, labels)), patch.HasAnnotations, map[string]string{"kept": "1"}},
		"cronjob-bare":         {kube.CronJob(), cronJobWith(podsTemplate(nil, nil)), patch.NoMetadata, nil},
		"rollout-annotated":    {kube.Rollout(), rolloutWith(t, podsTemplate(annotated, labels)), patch.HasAnnotations, map[string]string{"kept": "1"}},
		"rollout":              {kube.Rollout(), rolloutWith(t, podsTemplate(nil, labels)), patch.NoAnnotations, nil},
		"rollout-bare":         {kube.Rollout(), rolloutWith(t, podsTemplate(nil, nil)), patch.NoMetadata, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.object.SetName(name)
			w.Create(t, tc.object)
			before := asUnstructured(t, w, tc.kind, name)
			wantLabels := templateOf(t, tc.kind, before).Labels
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				err := changeAll(t, w, tc.kind, name, tc.has)
				if err != nil && !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
				return err == nil, fmt.Sprintf("every patch fails: %v", err)
			})
			got := templateOf(t, tc.kind, asUnstructured(t, w, tc.kind, name))
			want := map[string]string{settings.Inputs: "configmap/app~1", "example.com/empty": ""}
			maps.Copy(want, tc.kept)
			if diff := cmp.Diff(want, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(wantLabels, got.Labels); diff != "" {
				t.Errorf("labels (-before +after)\n%s", diff)
			}
			if init, app, side := got.Spec.InitContainers[0].Image, got.Spec.Containers[0].Image, got.Spec.Containers[1].Image; init != "init:2" || app != "app:2" || side != "side:1" {
				t.Errorf("images %s, %s, %s", init, app, side)
			}
			if diff := cmp.Diff([]corev1.EnvVar{{Name: "NEW", Value: "1"}}, got.Spec.Containers[0].Env); diff != "" {
				t.Errorf("the first container's variables (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff([]corev1.EnvVar{{Name: "KEPT", Value: "1"}, {Name: "LOCKSTEP_INPUTS", Value: "new"}}, got.Spec.Containers[1].Env); diff != "" {
				t.Errorf("the second container's variables (-want +got)\n%s", diff)
			}
		})
	}
}

// changeAll patches the object as it is now with one change of every sort.
func changeAll(t *testing.T, w *testkit.World, kind kube.Kind, name string, has patch.Metadata) error {
	t.Helper()
	o := asUnstructured(t, w, kind, name)
	workload, err := kube.SlimWorkload(kind, o, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	if workload.Metadata != has {
		t.Fatalf("the template's metadata counts as %d, want %d", workload.Metadata, has)
	}
	variable := workload.Place("LOCKSTEP_INPUTS")
	variable.Value = "new"
	fresh := workload.Place("NEW")
	fresh.Value = "1"
	changes := []patch.Change{
		patch.SetAnnotation{Key: settings.Inputs, Value: "configmap/app~1"},
		patch.SetAnnotation{Key: "example.com/empty"},
		patch.SetImage{Container: 0, Image: "app:2"},
		patch.SetImage{Init: true, Image: "init:2"},
		variable, fresh,
	}
	if has == patch.HasAnnotations {
		changes = append(changes, patch.RemoveAnnotation{Key: "old"})
	}
	doc, err := patch.Template(workload.PatchTarget(), changes)
	if err != nil {
		t.Fatal(err)
	}
	return w.Client.Patch(t.Context(), o, client.RawPatch(doc.Type, doc.Body))
}

func asUnstructured(t *testing.T, w *testkit.World, kind kube.Kind, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind.GroupVersionKind)
	w.Get(t, name, o)
	return o
}

func templateOf(t *testing.T, kind kube.Kind, o *unstructured.Unstructured) *corev1.PodTemplateSpec {
	t.Helper()
	path := []string{"spec", "template"}
	if kind.Kind == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	fields, _, err := unstructured.NestedMap(o.Object, path...)
	template := &corev1.PodTemplateSpec{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template)
	}
	if err != nil {
		t.Fatal(err)
	}
	return template
}
