package reloader_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// stop ends a program as Kubernetes does.
func (p *program) stop(t *testing.T) {
	t.Helper()
	if code := p.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

// TestChangeWhileDown: whatever happens to sources while no process watches is delivered once after
// the next start, whether it was on record before or not.
func TestChangeWhileDown(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"Variables": "--reload-strategy=env-vars", "Annotations": "--reload-strategy=annotations"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{})
			r := s.namespace(t, "down")
			flags := []string{flag, "--reload-on-create=true", "--reload-on-delete=true"}
			refs := []string{"configmap/known", "secret/known", "configmap/fresh", "secret/fresh", "configmap/idle", "secret/idle", "configmap/gone", "secret/gone"}
			sources, workloads := map[string]client.Object{}, map[string]*unstructured.Unstructured{}
			for _, ref := range refs {
				if !strings.HasSuffix(ref, "/fresh") {
					sources[ref] = r.source(t, ref, "0", nil)
				}
				workloads[ref] = r.add(t, app{name: strings.ReplaceAll(ref, "/", "-"), notes: notes(auto, "true"), pod: uses(ref)})
			}
			p := r.run(t, flags...)
			for _, ref := range []string{"configmap/gone", "secret/gone"} {
				r.set(t, sources[ref], "1")
				r.awaitShown(t, workloads[ref], 1, sum("1"))
			}
			p.stop(t)
			for _, ref := range []string{"configmap/known", "secret/known"} {
				r.set(t, sources[ref], "1")
				r.set(t, sources[ref], "2")
			}
			r.patch(t, sources["configmap/idle"], `{"metadata":{"labels":{"a":"b"}}}`)
			for _, ref := range []string{"configmap/fresh", "secret/fresh"} {
				r.source(t, ref, "1", nil)
			}
			for _, ref := range []string{"configmap/gone", "secret/gone"} {
				r.remove(t, sources[ref])
			}
			p = r.run(t, flags...)
			for _, ref := range []string{"configmap/known", "secret/known"} {
				r.awaitShown(t, workloads[ref], 1, sum("2"))
			}
			for _, ref := range []string{"configmap/fresh", "secret/fresh"} {
				r.awaitShown(t, workloads[ref], 1, sum("1"))
			}
			for _, ref := range []string{"configmap/gone", "secret/gone"} {
				if name == "Annotations" {
					r.awaitShown(t, workloads[ref], 2, deletedHash)
				} else {
					r.awaitReloads(t, workloads[ref], 2)
				}
			}
			r.mustBeUntouched(t, workloads["configmap/idle"])
			r.mustBeUntouched(t, workloads["secret/idle"])
			p.stop(t)
			r.mustStay(t, workloads, func() { r.run(t, flags...) })
		})
	}
}

// awaitShown waits until a workload shows a hash, after that many reloads.
func (r *room) awaitShown(t *testing.T, o *unstructured.Unstructured, times int64, hash string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		return len(got) == 1 && strings.Contains(got[0], hash), fmt.Sprintf("%s/%s shows %q, want %s", r.name, o.GetName(), got, hash)
	})
	if got := o.GetGeneration() - 1; got != times {
		t.Errorf("%s/%s was reloaded %d times, want %d", r.name, o.GetName(), got, times)
	}
}

// mustStay starts a program, and checks that workloads stay as they are until it has dealt with
// everything.
func (r *room) mustStay(t *testing.T, workloads map[string]*unstructured.Unstructured, start func()) {
	t.Helper()
	before := map[string]int64{}
	for name, o := range workloads {
		r.read(t, o)
		before[name] = o.GetGeneration()
	}
	f := r.fence(t)
	start()
	f.pass(t)
	for name, o := range workloads {
		r.read(t, o)
		if o.GetGeneration() != before[name] {
			t.Errorf("%s %s was reloaded: it has the marks %q", o.GetKind(), o.GetName(), marks(podTemplate(t, o)))
		}
	}
}

// TestSyncAfterRestart: the first start delivers all sources as created, when the flags say so, and
// a later one nothing.
func TestSyncAfterRestart(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"Variables": "--reload-strategy=env-vars", "Annotations": "--reload-strategy=annotations"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{})
			r := s.namespace(t, "sync")
			r.configMap(t, "c", "1")
			r.secret(t, "s", "1")
			workloads := map[string]*unstructured.Unstructured{
				"configmap": r.add(t, app{notes: notes(auto, "true")}),
				"secret":    r.add(t, app{name: "secret", notes: notes(auto, "true"), pod: uses("secret/s")}),
			}
			r.add(t, app{kind: "CronJob", notes: notes(auto, "true")})
			flags := []string{flag, "--sync-after-restart", "--reload-on-create=true"}
			p := r.run(t, flags...)
			for _, o := range workloads {
				r.awaitShown(t, o, 1, sum("1"))
			}
			r.awaitJobs(t, 1)
			p.stop(t)
			r.mustStay(t, workloads, func() { r.run(t, flags...) })
			r.awaitJobs(t, 1)
		})
	}
}

// TestFirstStart: variables and annotations that the original left are the baseline. What they show
// to be missed is delivered only if a user asks for that.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	last := func(r *room, hash string) map[string]string {
		return notes(lastReloadedFrom, fmt.Sprintf(`{"type":"CONFIGMAP","name":"c","namespace":%q,"hash":%q,"containerRefs":["web"],"observedAt":1700000000}`, r.name, hash))
	}
	shows := func(ref, hash string) corev1.PodSpec {
		pod := uses(ref)
		pod.Containers[0].Env = []corev1.EnvVar{{Name: variable(ref), Value: hash}}
		return pod
	}
	for name, tc := range map[string]struct {
		flags   []string
		deliver bool
	}{
		"Variables":         {nil, false},
		"Annotations":       {[]string{"--reload-strategy=annotations"}, false},
		"VariablesMissed":   {[]string{"--deliver-missed"}, true},
		"AnnotationsMissed": {[]string{"--deliver-missed", "--reload-strategy=annotations"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{})
			r := s.namespace(t, "first")
			r.configMap(t, "c", "1")
			r.secret(t, "s", "1")
			var stale, same *unstructured.Unstructured
			if strings.HasPrefix(name, "Annotations") {
				stale = r.add(t, app{name: "stale", notes: notes(auto, "true"), template: last(r, sum("0"))})
				same = r.add(t, app{name: "same", notes: notes(auto, "true"), template: last(r, sum("1"))})
			} else {
				stale = r.add(t, app{name: "stale", notes: notes(auto, "true"), pod: shows("secret/s", sum("0"))})
				same = r.add(t, app{name: "same", notes: notes(auto, "true"), pod: shows("secret/s", sum("1"))})
			}
			unmarked := r.add(t, app{name: "unmarked", notes: notes(auto, "true"), pod: uses("configmap/c", "secret/s")})
			f := r.fence(t)
			p := r.run(t, tc.flags...)
			if tc.deliver {
				r.awaitShown(t, stale, 1, sum("1"))
			}
			f.pass(t)
			if !tc.deliver {
				r.awaitEvent(t, stale, "Warning", "ReloadMissed", "kubectl rollout restart")
				r.mustBeUntouched(t, stale)
			}
			r.mustBeUntouched(t, same)
			r.mustBeUntouched(t, unmarked)
			p.stop(t)
			r.mustStay(t, map[string]*unstructured.Unstructured{"stale": stale, "same": same, "unmarked": unmarked}, func() { r.run(t, tc.flags...) })
		})
	}
}

// TestKilled: a process that is killed leaves enough behind: the next one delivers what changed
// meanwhile once, and repeats nothing. It is the built program, as the image starts it.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "killed")
	config, secret := r.configMap(t, "c", "0"), r.secret(t, "s", "0")
	workloads := map[string]*unstructured.Unstructured{
		"configmap": r.add(t, app{notes: notes(auto, "true")}),
		"secret":    r.add(t, app{name: "secret", kind: "StatefulSet", notes: notes(auto, "true"), pod: uses("secret/s")}),
	}
	r.add(t, app{kind: "CronJob", notes: notes(auto, "true")})
	link := filepath.Join(t.TempDir(), "reloader")
	if err := os.Symlink(labtest.Binary(t, "./cmd/lockstep"), link); err != nil {
		t.Fatal(err)
	}
	run := func() *program {
		p := &program{port: labtest.FreePort(t)}
		p.Running = labtest.StartCommand(t, labtest.Command{
			Path: link, Env: []string{"KUBECONFIG=" + s.kubeconfig, "RELOADER_NAMESPACE=" + s.release},
			Args: []string{"--namespaces=" + r.name, quick, "--metrics-addr=127.0.0.1:" + strconv.Itoa(p.port)},
		})
		p.awaitWorking(t)
		return p
	}
	p := run()
	for turn := int64(1); turn <= 3; turn++ {
		value := strconv.FormatInt(turn, 10)
		if turn == 2 {
			p.Signal(t, syscall.SIGKILL)
			<-p.Done()
		}
		r.set(t, config, value)
		r.set(t, secret, value)
		if turn == 2 {
			p = run()
		}
		r.awaitReloads(t, workloads["configmap"], turn, mark("configmap/c", value))
		r.awaitReloads(t, workloads["secret"], turn, mark("secret/s", value))
		r.awaitJobs(t, int(turn))
	}
	p.Signal(t, syscall.SIGKILL)
	<-p.Done()
	r.mustStay(t, workloads, func() { run() })
	r.awaitJobs(t, 3)
}

// TestUndo: a user's rollback stays, also when the program starts again, until the source changes.
func TestUndo(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"Variables": "--reload-strategy=env-vars", "Annotations": "--reload-strategy=annotations"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{})
			r := s.namespace(t, "undo")
			source := r.configMap(t, "c", "0")
			o := r.add(t, app{notes: notes(auto, "true")})
			p := r.run(t, flag, "--deliver-missed")
			before := podTemplate(t, o)
			r.set(t, source, "1")
			r.awaitShown(t, o, 1, sum("1"))
			r.undo(t, o, before)
			p.stop(t)
			r.mustStay(t, map[string]*unstructured.Unstructured{"undone": o}, func() { r.run(t, flag, "--deliver-missed") })
			if got := r.marksOf(t, o); len(got) > 0 {
				t.Errorf("the undone workload has the marks %q", got)
			}
			r.set(t, source, "2")
			r.awaitShown(t, o, 3, sum("2"))
		})
	}
}

// undo puts a template back, as "kubectl rollout undo" does.
func (r *room) undo(t *testing.T, o *unstructured.Unstructured, template corev1.PodTemplateSpec) {
	t.Helper()
	body, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, body)); err != nil {
		t.Fatal(err)
	}
}

// TestTogether: a ConfigMap and a Secret that change together are one rollout, and so are edits in
// a row. Each source has its event.
func TestTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "together")
	config, secret := r.configMap(t, "c", "0"), r.secret(t, "s", "0")
	o := r.add(t, app{notes: notes(auto, "true"), pod: uses("configmap/c", "secret/s")})
	line, through := testkit.NewLine(t, s.kubeconfig, s.cluster.Server())
	s.kubeconfig = through
	r.run(t, "--quiet=2s")
	line.Freeze() // The program hears of all of them at once.
	r.set(t, config, "1")
	r.set(t, secret, "1")
	r.set(t, config, "2")
	line.Thaw()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		slices.Sort(got)
		want := []string{"web[0] " + variable("configmap/c") + "=" + sum("2"), "web[1] " + variable("secret/s") + "=" + sum("1")}
		swapped := []string{"web[0] " + variable("secret/s") + "=" + sum("1"), "web[1] " + variable("configmap/c") + "=" + sum("2")}
		return slices.Equal(got, want) || slices.Equal(got, swapped), fmt.Sprintf("the marks are %q", got)
	})
	if got := o.GetGeneration() - 1; got != 1 {
		t.Errorf("it was reloaded %d times, want once", got)
	}
	r.awaitEvent(t, o, "Normal Reloaded reloader-configmaps ")
	r.awaitEvent(t, o, "Normal Reloaded reloader-secrets ")
}

// backAndForth: a source that changes and changes back is delivered all the same, because pods
// may have seen what it was in between.
func backAndForth(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{notes: notes(auto, "true")})
	r.set(t, source, "1")
	r.awaitReloads(t, o, 1, mark("configmap/c", "1"))
	r.set(t, source, "0")
	r.awaitReloads(t, o, 2, mark("configmap/c", "0"))
}

// TestContinuousChanges: changes that never pause are delivered all the same.
func TestContinuousChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "continuous")
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{notes: notes(auto, "true")})
	r.run(t, "--quiet=500ms")
	begun := time.Now()
	for i := 1; len(r.marksOf(t, o)) == 0; i++ {
		if time.Since(begun) > testkit.Patience {
			t.Fatalf("%d changes in %s were not delivered", i, time.Since(begun))
		}
		r.set(t, source, strconv.Itoa(i))
	}
}
