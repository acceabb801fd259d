package reload_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const cronJob = `
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {lockstep.dev/reload: auto}}
spec:
  schedule: "0 3 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}
`

const rollout = `
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: %s, annotations: {lockstep.dev/reload: auto}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %s}}
  strategy: {canary: {}}
  %s
`

func TestEveryKind(t *testing.T) {
	t.Parallel()
	pod := uses("configmap/app")
	s := newStage(t, configMap("app", "key: one")+
		deployment("web", auto, pod)+workload("StatefulSet", "db", auto, pod)+workload("DaemonSet", "agent", auto, pod)+
		fmt.Sprintf(cronJob, pod)+
		fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+pod+"}}"),
		labtest.KWOK, labtest.ArgoRollouts)
	s.run(t)
	all := []string{web, "statefulset/db", "daemonset/agent"}
	for _, known := range []string{"Deployment.apps web", "StatefulSet.apps db", "DaemonSet.apps agent", "CronJob.batch nightly", "Rollout.argoproj.io canary"} {
		groupKind, name, _ := strings.Cut(known, " ")
		s.awaitKnown(t, groupKind, name, "configmap/app")
	}
	baseline := s.remembered(t, "CronJob.batch", "nightly")
	s.checkRollouts(t, "install", 0, append(all, "cronjob/nightly")...)

	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, ref := range all {
		s.awaitRollouts(t, ref, 1)
		s.AwaitEvent(t, strings.Split(ref, "/")[1], "Normal Reloaded", "configmap/app")
	}
	s.AwaitEvent(t, "canary", "Normal Reloaded", "configmap/app")
	s.checkRollouts(t, "one change", 1, all...)
	s.awaitReplicaSets(t, "canary", "", s.shown(t, "rollout/canary"))
	s.checkCronJobLeftAlone(t, baseline)
}

// checkCronJobLeftAlone: its next Job reads the new content by itself, so that is
// on record, and nothing is patched and no Job is started.
func (s *stage) checkCronJobLeftAlone(t *testing.T, baseline string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.remembered(t, "CronJob.batch", "nightly")
		return entry != baseline, "the CronJob's new version isn't on record: " + entry
	})
	jobs := &batchv1.JobList{}
	if err := s.Client.List(t.Context(), jobs, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	if n := s.rollouts(t, "cronjob/nightly"); n != 0 || len(jobs.Items) != 0 {
		t.Errorf("the CronJob was changed %d times and %d Jobs were started, want neither", n, len(jobs.Items))
	}
}

// awaitReplicaSets waits until Argo Rollouts has made exactly the ReplicaSets
// that show these versions. (Argo writes into a Rollout's specification itself,
// so the API server's count of changes says nothing.)
func (s *stage) awaitReplicaSets(t *testing.T, rollout string, shown ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		sets := &appsv1.ReplicaSetList{}
		if err := s.Client.List(t.Context(), sets, client.InNamespace(s.Namespace)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range sets.Items {
			owner := metav1.GetControllerOf(&sets.Items[i])
			if owner != nil && owner.Kind == "Rollout" && owner.Name == rollout {
				got = append(got, sets.Items[i].Spec.Template.Annotations[settings.Inputs])
			}
		}
		slices.Sort(got)
		return slices.Equal(got, shown), fmt.Sprintf("the ReplicaSets of %s show %q, want %q", rollout, got, shown)
	})
}

// TestRolloutWithWorkloadRef: the Rollout is the workload, and the Deployment
// only has the template.
func TestRolloutWithWorkloadRef(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+
		deployment("lender", auto, uses("configmap/app"))+
		fmt.Sprintf(rollout, "canary", "lender", "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: lender}"),
		labtest.KWOK, labtest.ArgoRollouts)
	s.annotate(t, "rollout/canary", settings.Hold, "not now")
	s.run(t)
	s.awaitKnown(t, "Rollout.argoproj.io", "canary", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.checkRollouts(t, "the Rollout is held, whatever the Deployment says", 0, "deployment/lender")
	s.AwaitEvent(t, "canary", "Held", "not now")

	s.annotate(t, "rollout/canary", settings.Hold)
	s.awaitRollouts(t, "deployment/lender", 1)
	s.AwaitEvent(t, "canary", "Normal Reloaded", "configmap/app")
	s.awaitReplicaSets(t, "canary", "", s.shown(t, "deployment/lender"))
	s.checkRollouts(t, "one change", 1, "deployment/lender")
	if text := s.shown(t, "rollout/canary"); text != "" {
		t.Errorf("the Rollout itself shows %q; its template is the Deployment's", text)
	}
	if text := s.remembered(t, deploy, "lender"); text != "" {
		t.Errorf("the Deployment is on record as a workload of its own: %s", text)
	}

	s.awaitKnown(t, "Rollout.argoproj.io", "canary", versionOf("two"))
	given := s.given(t, "Rollout.argoproj.io", "canary", input.ConfigMap("app"))
	s.delete(t, "deployment/lender")
	s.AwaitEvent(t, "canary", "Warning NoTemplate", "lender")
	s.witness.Pass(t)
	if got := s.given(t, "Rollout.argoproj.io", "canary", input.ConfigMap("app")); got != given {
		t.Errorf("without its template the Rollout was given %q, want what it was given before, %q", got, given)
	}
	s.make(t, deployment("lender", auto, uses("configmap/app"))+
		fmt.Sprintf(rollout, "second", "lender", "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: lender}"))
	s.awaitKnown(t, "Rollout.argoproj.io", "second", "configmap/app")
	s.delete(t, "rollout/canary")
	s.change(t, "configmap/app", "{data: {key: more}}")
	s.awaitRollouts(t, "deployment/lender", 1)
	s.AwaitEvent(t, "second", "Normal Reloaded", "configmap/app")

	s.delete(t, "rollout/second")
	s.awaitKnown(t, deploy, "lender", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, "deployment/lender", 2)
}

// customKind is a kind that anybody could have.
const customKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]ss, singular: %[1]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// install installs a custom kind and waits until it can be used.
func (s *stage) install(t *testing.T, group, kind string) schema.GroupVersionKind {
	t.Helper()
	s.make(t, fmt.Sprintf(customKind, strings.ToLower(kind), group, kind))
	t.Cleanup(func() {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(strings.ToLower(kind) + "s." + group)
		if err := s.Client.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Log(err)
		}
	})
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace))
		return err == nil, fmt.Sprintf("%s cannot be listed: %v", kind, err)
	})
	return gvk
}

// TestBrokenKind: a kind that cannot be listed, because its conversion webhook is
// away, holds up nobody else.
func TestBrokenKind(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	group := s.Namespace + ".example.com"
	stored := s.install(t, group, "Worker")
	s.make(t, fmt.Sprintf("{apiVersion: %s, kind: Worker, metadata: {name: queue}, spec: {size: 1}}", stored.GroupVersion()))
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("workers." + group)
	schema := `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	body := fmt.Sprintf(`{"spec":{
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":%[1]s},{"name":"v2","served":true,"storage":false,"schema":%[1]s}]}}`, schema)
	if err := s.Client.Patch(t.Context(), crd, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // or the namespace could not be emptied
		fix := `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`
		if err := s.Client.Patch(context.WithoutCancel(t.Context()), crd, client.RawPatch("application/merge-patch+json", []byte(fix))); err != nil {
			t.Log(err)
		}
	})
	v2 := &unstructured.Unstructured{}
	v2.SetAPIVersion(group + "/v2")
	v2.SetKind("Worker")
	s.AwaitServed(t, v2)

	c := inprocess.StartController(t, s.World, "--quiet", testkit.Quiet, "--kind", group+"/v2/Worker=spec.template")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, text := c.Probe(t, "/readyz?verbose")
		_, told, _ := strings.Cut(text, "[-] workers."+group+" in "+s.Namespace+": ")
		told, _, _ = strings.Cut(told, "\n")
		return told != "" && !strings.Contains(told, "not installed"), "readiness does not tell of the broken kind:\n" + text
	})
}

// TestCustomKind: a kind that is installed after the controller has started is
// picked up, and one without a pod template is told once and harms nobody.
func TestCustomKind(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one"))
	group := s.Namespace + ".example.com"
	c, metrics := s.runMeasured(t, "--kind", group+"/v1/Worker=spec.pod.template", "--kind", group+"/v1/Widget=spec.pod.template")
	if _, text := c.Probe(t, "/readyz?verbose"); !strings.Contains(text, "workers."+group+" in "+s.Namespace+": not installed") {
		t.Errorf("/readyz?verbose does not say that the kind is not installed:\n%s", text)
	}
	worker, widget := s.install(t, group, "Worker"), s.install(t, group, "Widget")
	object := func(gvk schema.GroupVersionKind, name, spec string) *unstructured.Unstructured {
		s.make(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {%s}}, spec: {%s}}", gvk.GroupVersion(), gvk.Kind, name, auto, spec))
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		o.SetName(name)
		return o
	}
	w := object(worker, "queue", "pod: {template: {spec: {"+uses("configmap/app")+"}}}")
	bare := object(widget, "bare", "pod: {size: 3}")
	flat := object(widget, "flat", "pod: {template: {"+uses("configmap/app")+"}}")

	s.awaitKnown(t, "Worker."+group, "queue", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		s.Get(t, "queue", w)
		text, _, _ := unstructured.NestedString(w.Object, "spec", "pod", "template", "metadata", "annotations", settings.Inputs)
		return strings.HasPrefix(text, "configmap/app~"), fmt.Sprintf("the custom workload shows %q", text)
	})
	if w.GetGeneration() != 2 {
		t.Errorf("the custom workload was changed %d times, want once", w.GetGeneration()-1)
	}
	for _, o := range []*unstructured.Unstructured{bare, flat} {
		s.AwaitEvent(t, o.GetName(), "Warning NoTemplate", "spec.pod.template")
		s.Patch(t, o, o.GetName(), `{"metadata":{"labels":{"touched":"true"}}}`)
	}
	s.witness.Pass(t)
	if got := metrics(`lockstep_invalid_settings_total{kind="Widget",namespace="` + s.Namespace + `",reason="NoTemplate"}`); got != 2 {
		t.Errorf("%v invalid settings of two objects, want each counted once", got)
	}
}
