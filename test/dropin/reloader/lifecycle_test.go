package reloader_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const deletedHash = "aae45badef99284e4dae01d6046154ea9d99532f"

// TestCreateAndDelete: with the flags, a source that is created sets the variable, and one that is
// deleted removes it where it is.
func TestCreateAndDelete(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "create")
	r.run(t, "--reload-on-create=true", "--reload-on-delete=true")
	seen := r.add(t, app{notes: notes(auto, "true"), pod: settled(corev1.EnvVar{Name: "OTHER", Value: "x"})})
	source := r.configMap(t, "c", "1")
	r.awaitReloads(t, seen, 1, mark("configmap/c", "1"))
	never := r.add(t, app{name: "never", notes: notes(auto, "true")})
	r.remove(t, source)
	r.awaitReloads(t, seen, 2)
	if env := podTemplate(t, seen).Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "OTHER" {
		t.Errorf("the variables are %v", env)
	}
	f := r.fence(t)
	f.pass(t)
	r.mustBeUntouched(t, never)
}

// TestCreateAndDeleteWithAnnotations: a delete restarts all that match, with a hash of its own.
func TestCreateAndDeleteWithAnnotations(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "create")
	r.run(t, "--reload-on-create=true", "--reload-on-delete=true", "--reload-strategy=annotations")
	o, begun := r.add(t, app{notes: notes(auto, "true"), pod: uses("secret/s")}), time.Now()
	source := r.secret(t, "s", "1")
	r.awaitLast(t, o, reloaded{"SECRET", "s", sum("1"), "web"}, begun)
	r.set(t, source, "2")
	r.awaitLast(t, o, reloaded{"SECRET", "s", sum("2"), "web"}, begun)
	late := r.add(t, app{name: "late", notes: notes(auto, "true"), pod: uses("secret/s")})
	r.remove(t, source)
	r.awaitLast(t, o, reloaded{"SECRET", "s", deletedHash, "web"}, begun)
	r.awaitLast(t, late, reloaded{"SECRET", "s", deletedHash, "web"}, begun)
	if got := o.GetGeneration() - 1; got != 3 {
		t.Errorf("it was reloaded %d times, want 3", got)
	}
}

// noCreateOrDelete: without the flags, neither reloads anything, nor do labels, annotations and
// other fields of a source.
func noCreateOrDelete(t *testing.T, r *room, _ *program) {
	t.Helper()
	o, f := r.add(t, app{notes: notes(auto, "true"), pod: uses("configmap/c", "secret/s")}), r.fence(t)
	config, secret := r.configMap(t, "c", "1"), r.secret(t, "s", "1")
	r.patch(t, config, `{"metadata":{"labels":{"a":"b"},"annotations":{"reloader.stakater.com/match":"true"}}}`)
	r.patch(t, secret, `{"immutable":true}`)
	r.patch(t, o, `{"metadata":{"annotations":{"reloader.stakater.com/search":"true"}}}`)
	f.pass(t)
	r.remove(t, config)
	r.remove(t, secret)
	f.pass(t)
	r.read(t, o)
	if got := marks(podTemplate(t, o)); len(got) > 0 {
		t.Errorf("the workload has the marks %q", got)
	}
}

// annotationStrategy: the last source has the only slot, and an update writes even a hash that
// is already there.
func annotationStrategy(t *testing.T, r *room, _ *program) {
	t.Helper()
	config, secret := r.configMap(t, "c", "0"), r.secret(t, "s", "0")
	pod := corev1.PodSpec{Containers: []corev1.Container{container("web", "configmap/c"), container("log", "secret/s")}}
	o, cron, job := r.add(t, app{notes: notes(auto, "true"), pod: pod}), app{kind: "CronJob", notes: notes(configMapAuto, "true")}, app{kind: "Job", name: "job", notes: notes(configMapAuto, "true")}
	r.add(t, cron)
	replaced, begun := r.add(t, job), time.Now()
	r.set(t, config, "1")
	r.awaitLast(t, o, reloaded{"CONFIGMAP", "c", sum("1"), "web"}, begun)
	r.awaitLast(t, replaced, reloaded{"CONFIGMAP", "c", sum("1"), "web"}, begun)
	r.awaitJobs(t, 2)
	for _, made := range r.jobs(t) {
		if made.Name != "job" {
			r.checkLast(t, made.Spec.Template.Annotations[lastReloadedFrom], reloaded{"CONFIGMAP", "c", sum("1"), "web"}, begun)
		}
	}
	r.set(t, secret, "1")
	r.awaitLast(t, o, reloaded{"SECRET", "s", sum("1"), "log"}, begun)
	if env := podTemplate(t, o).Spec.Containers[0].Env; len(env) > 0 {
		t.Errorf("the variables are %v", env)
	}
	r.awaitEvent(t, o, "Normal Reloaded reloader-secrets ", "'s'", "SECRET")
}

// TestConcurrentEdit: a variable is removed by its position, which another writer may change just
// before. The variable of that writer stays.
func TestConcurrentEdit(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "edit")
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{notes: notes(auto, "true"), pod: settled(corev1.EnvVar{Name: variable("configmap/c"), Value: sum("0")}, corev1.EnvVar{Name: "OTHER", Value: "x"})})
	theirs := o.DeepCopy()
	s.interrupt(t, func(q *http.Request) bool {
		return q.Method == http.MethodPatch && strings.HasSuffix(q.URL.Path, "/deployments/app")
	}, func() {
		body := `[{"op":"add","path":"/spec/template/spec/containers/0/env/0","value":{"name":"THEIRS","value":"y"}}]`
		if err := r.client.Patch(t.Context(), theirs, client.RawPatch(types.JSONPatchType, []byte(body))); err != nil {
			t.Error(err)
		}
	})
	r.run(t, "--reload-on-delete=true")
	r.remove(t, source)
	r.awaitMarks(t, o)
	env := podTemplate(t, o).Spec.Containers[0].Env
	if len(env) != 2 || env[0].Name != "THEIRS" || env[1].Name != "OTHER" || o.GetGeneration() != 3 {
		t.Errorf("the variables are %v after %d writes", env, o.GetGeneration()-1)
	}
}

// TestResourceSelector: only sources with the label are followed; one that gains it counts as
// created, and one that loses it as deleted.
func TestResourceSelector(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "labels")
	r.run(t, "--resource-label-selector=team:a,tier=*", "--reload-on-create=true", "--reload-on-delete=true")
	with, without := r.add(t, app{notes: notes(auto, "true")}), r.add(t, app{name: "without", notes: notes(auto, "true"), pod: uses("configmap/d")})
	gains, lacks := r.configMap(t, "c", "1"), r.configMap(t, "d", "1")
	r.patch(t, lacks, `{"metadata":{"labels":{"team":"a"}},"data":{"key":"2"}}`)
	r.patch(t, gains, `{"metadata":{"labels":{"team":"a","tier":"any"}}}`)
	r.awaitReloads(t, with, 1, mark("configmap/c", "1"))
	r.set(t, gains, "2")
	r.awaitReloads(t, with, 2, mark("configmap/c", "2"))
	r.patch(t, gains, `{"metadata":{"labels":{"team":"b"}}}`)
	r.awaitReloads(t, with, 3)
	r.mustBeUntouched(t, without)
}

// TestNamespaces: which namespaces are watched, and that relabelling one takes effect at once.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	chosen, outside := s.namespace(t, "chosen"), s.namespaceWith(t, "outside", nil)
	ignored := s.namespace(t, "ignored")
	s.run(t, "--namespaces-to-ignore="+ignored.name)
	var sources []client.Object
	var workloads []*unstructured.Unstructured
	all := []*room{chosen, outside, ignored}
	for _, r := range all {
		sources = append(sources, r.configMap(t, "c", "0"))
		workloads = append(workloads, r.add(t, app{notes: notes(auto, "true")}))
	}
	f := chosen.fence(t)
	for i, r := range all {
		r.set(t, sources[len(all)-1-i], "1")
	}
	f.pass(t)
	chosen.awaitReloads(t, workloads[0], 1, mark("configmap/c", "1"))
	outside.mustBeUntouched(t, workloads[1])
	ignored.mustBeUntouched(t, workloads[2])
	outside.patch(t, &corev1.Namespace{ObjectMeta: metaOf(outside.name)}, `{"metadata":{"labels":{"`+watched+`":"`+s.release+`"}}}`)
	// The namespaces have a watch of their own, so a change may be a little too early.
	for i := 0; len(outside.marksOf(t, workloads[1])) == 0; i++ {
		outside.set(t, sources[1], strings.Repeat("x", i+2))
	}
}

// pause: a Deployment is paused when it is reloaded, and resumed when the period is over. One
// that a user has paused stays paused, and one that is paused already isn't paused for longer.
func pause(t *testing.T, r *room, _ *program) {
	t.Helper()
	config := r.configMap(t, "c", "0")
	short := r.add(t, app{name: "short", notes: notes(auto, "true", pausePeriod, "1s")})
	long := r.add(t, app{name: "long", notes: notes(auto, "true", pausePeriod, "1h")})
	theirs := r.add(t, app{name: "theirs", notes: notes(auto, "true", pausePeriod, "1ms"), spec: map[string]any{"paused": true}})
	begun := time.Now().Truncate(time.Second)
	r.set(t, config, "1")
	r.awaitMarks(t, long, mark("configmap/c", "1"))
	at, err := time.Parse(time.RFC3339, long.GetAnnotations()[pausedAt])
	if err != nil || at.Before(begun) || !isPaused(long) {
		t.Errorf("paused is %t since %s: %v", isPaused(long), at, err)
	}
	r.awaitMarks(t, theirs, mark("configmap/c", "1"))
	r.awaitResumed(t, short)
	r.set(t, config, "2")
	r.awaitMarks(t, long, mark("configmap/c", "2"))
	if got := long.GetAnnotations()[pausedAt]; got != at.Format(time.RFC3339) {
		t.Errorf("it was paused again at %s", got)
	}
	r.awaitMarks(t, short, mark("configmap/c", "2"))
	r.awaitResumed(t, short)
	r.read(t, theirs)
	if !isPaused(theirs) || theirs.GetAnnotations()[pausedAt] != "" {
		t.Errorf("the user's pause was ended: %v", theirs.Object)
	}
}

// TestPauseAcrossRestarts: another process ends the pause, and a Deployment that a user has resumed
// is paused and resumed by its next reload.
func TestPauseAcrossRestarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "pause")
	config := r.configMap(t, "c", "0")
	o, byHand := r.add(t, app{notes: notes(auto, "true", pausePeriod, "1h")}), r.add(t, app{name: "by-hand", notes: notes(auto, "true", pausePeriod, "1h")})
	p := r.run(t)
	r.set(t, config, "1")
	r.awaitMarks(t, o, mark("configmap/c", "1"))
	r.awaitMarks(t, byHand, mark("configmap/c", "1"))
	if !isPaused(o) || !isPaused(byHand) {
		t.Fatal("they aren't paused")
	}
	r.patch(t, byHand, `{"spec":{"paused":false},"metadata":{"annotations":{"`+pausePeriod+`":"1ms"}}}`)
	p.stop(t)
	r.patch(t, o, `{"metadata":{"annotations":{"`+pausePeriod+`":"1ms"}}}`)
	r.run(t)
	r.awaitResumed(t, o)
	r.set(t, config, "2")
	r.awaitMarks(t, byHand, mark("configmap/c", "2"))
	r.awaitResumed(t, byHand)
	// A reload that pauses, a user, another reload that pauses, and its end.
	if got := byHand.GetGeneration() - 1; got != 4 {
		t.Errorf("its spec was changed %d times, want 4", got)
	}
}

func isPaused(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return paused
}

// awaitResumed waits until the program has resumed a Deployment that it paused.
func (r *room) awaitResumed(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		r.read(t, o)
		_, marked := o.GetAnnotations()[pausedAt]
		return len(marks(podTemplate(t, o))) > 0 && !isPaused(o) && !marked, "it is paused since " + o.GetAnnotations()[pausedAt]
	})
}
