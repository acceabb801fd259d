package reloader_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// Annotations of the original.
const (
	auto             = "reloader.stakater.com/auto"
	configMapAuto    = "configmap.reloader.stakater.com/auto"
	secretAuto       = "secret.reloader.stakater.com/auto"
	configMapReload  = "configmap.reloader.stakater.com/reload"
	secretReload     = "secret.reloader.stakater.com/reload"
	search           = "reloader.stakater.com/search"
	match            = "reloader.stakater.com/match"
	ignore           = "reloader.stakater.com/ignore"
	excludeConfigMap = "configmaps.exclude.reloader.stakater.com/reload"
	excludeSecret    = "secrets.exclude.reloader.stakater.com/reload"
	rolloutStrategy  = "reloader.stakater.com/rollout-strategy"
	pausePeriod      = "deployment.reloader.stakater.com/pause-period"
	pausedAt         = "deployment.reloader.stakater.com/paused-at"
	lastReloadedFrom = "reloader.stakater.com/last-reloaded-from"
)

// room is a namespace with workloads and sources.
type room struct {
	*site
	name string
	// end is the fence, once there is one.
	end *fence
}

// notes are annotations, given as key and value in turn.
func notes(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// source makes a ConfigMap or Secret with one value, whose hash is sum of it: "configmap/c".
func (r *room) source(t *testing.T, ref, value string, annotations map[string]string) client.Object {
	t.Helper()
	of, name, _ := strings.Cut(ref, "/")
	meta := metav1.ObjectMeta{Namespace: r.name, Name: name, Annotations: annotations}
	var o client.Object = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": value}}
	if of == "secret" {
		o = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(value)}}
	}
	r.create(t, o)
	return o
}

func (r *room) configMap(t *testing.T, name, value string) client.Object {
	t.Helper()
	return r.source(t, "configmap/"+name, value, nil)
}

func (r *room) secret(t *testing.T, name, value string) client.Object {
	t.Helper()
	return r.source(t, "secret/"+name, value, nil)
}

// variable is the name of a source's variable: STAKATER_C_CONFIGMAP of configmap/c.
func variable(ref string) string {
	of, name, _ := strings.Cut(ref, "/")
	return "STAKATER_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)+"_"+of)
}

// mark is the variable that shows a source's value, at the front of container web.
func mark(ref, value string) string { return "web[0] " + variable(ref) + "=" + sum(value) }

// sum is the hash of a ConfigMap or Secret with one value.
func sum(value string) string { return hashOf("key=" + value) }

func hashOf(text string) string {
	digest := sha1.Sum([]byte(text))
	return hex.EncodeToString(digest[:])
}

// set gives a ConfigMap or Secret another value.
func (r *room) set(t *testing.T, o client.Object, value string) {
	t.Helper()
	field := "data"
	if _, ok := o.(*corev1.Secret); ok {
		field = "stringData"
	}
	r.patch(t, o, fmt.Sprintf(`{%q:{"key":%q}}`, field, value))
}

// patch applies a JSON merge patch.
func (r *room) patch(t *testing.T, o client.Object, text string) {
	t.Helper()
	if err := r.client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		t.Fatalf("patch %T %s/%s: %v", o, r.name, o.GetName(), err)
	}
}

// remove deletes an object.
func (r *room) remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.client.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
}

// app is a workload to make.
type app struct {
	// kind is Deployment and name app, unless they are given.
	kind, name string
	// notes are the annotations of the workload, and template those of its pod template.
	notes, template map[string]string
	// pod is uses("configmap/c") unless it is given.
	pod corev1.PodSpec
	// spec are further fields of the workload, of a CronJob those of its Jobs.
	spec map[string]any
}

// uses is a pod whose container web loads sources into its environment: "configmap/c", "secret/s".
func uses(sources ...string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{container("web", sources...)}}
}

// container is one that loads sources into its environment.
func container(name string, sources ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: "example.com/app:1"}
	for _, source := range sources {
		of, object, _ := strings.Cut(source, "/")
		ref := corev1.LocalObjectReference{Name: object}
		if of == "secret" {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}})
		} else {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}})
		}
	}
	return c
}

// apiVersions are those of the kinds of workloads.
func apiVersions() map[string]string {
	return map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CronJob": "batch/v1", "Job": "batch/v1",
		"Rollout": "argoproj.io/v1alpha1",
	}
}

// add makes a workload without pods.
func (r *room) add(t *testing.T, a app) *unstructured.Unstructured {
	t.Helper()
	if a.kind == "" {
		a.kind = "Deployment"
	}
	if a.name == "" {
		a.name = "app"
	}
	if len(a.pod.Containers) == 0 {
		a.pod = uses("configmap/c")
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": a.specOf(t)}}
	o.SetAPIVersion(apiVersions()[a.kind])
	o.SetKind(a.kind)
	o.SetNamespace(r.name)
	o.SetName(a.name)
	o.SetAnnotations(a.notes)
	r.create(t, o)
	return o
}

// specOf is the workload's spec, with no pods.
func (a app) specOf(t *testing.T) map[string]any {
	t.Helper()
	labels := map[string]any{"app": a.name}
	template := templateOf(t, a.pod, a.template)
	var spec map[string]any
	switch a.kind {
	case "Job", "CronJob":
		template["spec"].(map[string]any)["restartPolicy"] = "Never"
		spec = map[string]any{"parallelism": int64(0), "template": template}
	default:
		template["metadata"].(map[string]any)["labels"] = labels
		spec = map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}
	}
	switch a.kind {
	case "Deployment", "StatefulSet":
		spec["replicas"] = int64(0)
	case "Rollout":
		spec["replicas"], spec["strategy"] = int64(0), map[string]any{"canary": map[string]any{}}
	case "DaemonSet":
		template["spec"].(map[string]any)["nodeSelector"] = map[string]any{"none": "none"}
	}
	maps.Copy(spec, a.spec)
	if a.kind == "CronJob" {
		return map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{"spec": spec}}
	}
	return spec
}

func templateOf(t *testing.T, pod corev1.PodSpec, annotations map[string]string) map[string]any {
	t.Helper()
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: pod})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// blankList is an empty list of a kind.
func blankList(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	return list
}

// read reads an object again.
func (r *room) read(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatalf("get %T %s/%s: %v", o, r.name, o.GetName(), err)
	}
}

// podTemplate is the pod template of a workload.
func podTemplate(t *testing.T, o *unstructured.Unstructured) corev1.PodTemplateSpec {
	t.Helper()
	path := []string{"spec", "template"}
	if o.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	found, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &template); err != nil {
		t.Fatal(err)
	}
	return template
}

// marks are what reloads have left in a pod template: each variable as "web[0] NAME=value", and the
// annotation as it is.
func marks(template corev1.PodTemplateSpec) []string {
	var found []string
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		for i, e := range c.Env {
			if strings.HasPrefix(e.Name, "STAKATER_") {
				found = append(found, fmt.Sprintf("%s[%d] %s=%s", c.Name, i, e.Name, e.Value))
			}
		}
	}
	if last := template.Annotations[lastReloadedFrom]; last != "" {
		found = append(found, last)
	}
	return found
}

// marksOf reads a workload and its marks. A workload that is gone has none.
func (r *room) marksOf(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	err := r.client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return marks(podTemplate(t, o))
}

// awaitMarks waits until a workload has exactly these marks.
func (r *room) awaitMarks(t *testing.T, o *unstructured.Unstructured, want ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		return slices.Equal(got, want), fmt.Sprintf("%s %s/%s has the marks %q, want %q", o.GetKind(), r.name, o.GetName(), got, want)
	})
}

// awaitReloads waits until a workload has exactly these marks, after that many changes of its spec.
func (r *room) awaitReloads(t *testing.T, o *unstructured.Unstructured, times int64, want ...string) {
	t.Helper()
	r.awaitMarks(t, o, want...)
	if got := o.GetGeneration() - 1; got != times {
		t.Errorf("%s %s/%s was reloaded %d times, want %d", o.GetKind(), r.name, o.GetName(), got, times)
	}
}

// reloaded is what the annotation shows: the type and name of a source, its hash, and the container.
type reloaded struct{ of, name, hash, container string }

// awaitLast waits until the annotation of a workload shows a source and its hash, with a time from
// since on.
func (r *room) awaitLast(t *testing.T, o *unstructured.Unstructured, want reloaded, since time.Time) {
	t.Helper()
	var got string
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		all := r.marksOf(t, o)
		if len(all) != 1 {
			return false, fmt.Sprintf("%s %s/%s has the marks %q", o.GetKind(), r.name, o.GetName(), all)
		}
		got = all[0]
		return strings.Contains(got, want.hash) && strings.Contains(got, fmt.Sprintf("%q", want.name)), "the annotation is " + got
	})
	r.checkLast(t, got, want, since)
}

// checkLast compares the annotation byte by byte, but for the time.
func (r *room) checkLast(t *testing.T, got string, shows reloaded, since time.Time) {
	t.Helper()
	var shown struct {
		ObservedAt int64 `json:"observedAt"`
	}
	if err := json.Unmarshal([]byte(got), &shown); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if at := time.Unix(shown.ObservedAt, 0); at.Before(since.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("observedAt is %s, want a time since %s", at, since)
	}
	want := fmt.Sprintf(`{"type":%q,"name":%q,"namespace":%q,"hash":%q,"containerRefs":[%q],"observedAt":%d}`, shows.of, shows.name, r.name, shows.hash, shows.container, shown.ObservedAt)
	if got != want {
		t.Errorf("the annotation is\n%s, want\n%s", got, want)
	}
}

// mustBeUntouched checks that the program has never written a workload, and that it is the one that
// was made.
func (r *room) mustBeUntouched(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	uid := o.GetUID()
	r.read(t, o)
	if o.GetUID() != uid || o.GetGeneration() != 1 || writtenByReloader(o) {
		t.Errorf("%s %s/%s was written: it has the marks %q", o.GetKind(), r.name, o.GetName(), marks(podTemplate(t, o)))
	}
}

func writtenByReloader(o client.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "Reloader" })
}

// jobs are the Jobs of the room, by their name.
func (r *room) jobs(t *testing.T) []batchv1.Job {
	t.Helper()
	list := &batchv1.JobList{}
	if err := r.client.List(t.Context(), list, client.InNamespace(r.name)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitJobs waits until the room has that many Jobs.
func (r *room) awaitJobs(t *testing.T, count int) []batchv1.Job {
	t.Helper()
	var found []batchv1.Job
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		found = r.jobs(t)
		return len(found) == count, fmt.Sprintf("%s has %d Jobs, want %d", r.name, len(found), count)
	})
	return found
}

// events are the program's events about an object, each as type, reason, component and message.
func (r *room) events(t *testing.T, o client.Object) []string {
	t.Helper()
	list := &corev1.EventList{}
	if err := r.client.List(t.Context(), list, client.InNamespace(r.name)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range list.Items {
		about := e.InvolvedObject
		if about.Kind == o.GetObjectKind().GroupVersionKind().Kind && about.Name == o.GetName() && strings.HasPrefix(e.Source.Component, "reloader") {
			found = append(found, strings.Join([]string{e.Type, e.Reason, e.Source.Component, e.Message}, " "))
		}
	}
	return found
}

// awaitEvent waits for an event about an object that contains all texts.
func (r *room) awaitEvent(t *testing.T, o client.Object, texts ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		all := r.events(t, o)
		return slices.ContainsFunc(all, func(e string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e, text) })
		}), fmt.Sprintf("no event with %q among %q", texts, all)
	})
}

// fence shows that something didn't happen: it returns when the program has dealt with everything
// that happened to the room before. The kinds of sources have watches of their own, so it has a
// source of each kind, and a workload that follows it.
type fence struct {
	room      *room
	sources   []client.Object
	workloads []*unstructured.Unstructured
	turn      int
}

// fence makes the fence of a room.
func (r *room) fence(t *testing.T) *fence {
	t.Helper()
	if r.end != nil {
		return r.end
	}
	r.end = &fence{room: r, sources: []client.Object{r.configMap(t, "fence", "0"), r.secret(t, "fence", "0")}}
	for of, key := range map[string]string{"configmap": configMapReload, "secret": secretReload} {
		o := r.add(t, app{name: "fence-" + of, pod: uses(), notes: notes(key, "fence")})
		r.end.workloads = append(r.end.workloads, o)
	}
	return r.end
}

// pass waits until a change is delivered whose pass began after the pass that delivered all changes
// before.
func (f *fence) pass(t *testing.T) {
	t.Helper()
	for range 2 {
		f.turn++
		value := strconv.Itoa(f.turn)
		for _, source := range f.sources {
			f.room.set(t, source, value)
		}
		for _, o := range f.workloads {
			f.room.awaitLastHashAny(t, o, sum(value))
		}
	}
}

func metaOf(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func withName(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
