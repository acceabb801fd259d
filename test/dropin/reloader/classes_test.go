package reloader_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

//go:embed testdata/csi.yaml
var driver string

const (
	classAuto   = "secretproviderclass.reloader.stakater.com/auto"
	classReload = "secretproviderclass.reloader.stakater.com/reload"
	classes     = "secrets-store.csi.x-k8s.io/v1"
)

// installDriver installs the kinds of the Secrets Store CSI driver, if they aren't.
func (s *site) installDriver(t *testing.T) {
	t.Helper()
	for text := range strings.SplitSeq(driver, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"SecretProviderClass", "SecretProviderClassPodStatus"} {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			err := s.client.List(t.Context(), blankList(classes, kind))
			return err == nil, fmt.Sprint(err)
		})
	}
}

// class makes a SecretProviderClass.
func (r *room) class(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provider": "vault"}}}
	o.SetAPIVersion(classes)
	o.SetKind("SecretProviderClass")
	o.SetNamespace(r.name)
	o.SetName(name)
	o.SetAnnotations(annotations)
	r.create(t, o)
}

// driverLabel is the only label of a status.
const driverLabel = "internal.secrets-store.csi.k8s.io/node-name"

// status makes the status of a pod with a class, which has one object.
func (r *room) status(t *testing.T, pod, class, version string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"secretProviderClassName": class, "podName": pod, "mounted": true,
		"objects": []any{map[string]any{"id": "password", "version": version}},
	}}}
	o.SetAPIVersion(classes)
	o.SetKind("SecretProviderClassPodStatus")
	o.SetNamespace(r.name)
	o.SetName(pod + "-" + r.name + "-" + class)
	o.SetLabels(map[string]string{driverLabel: "node"})
	r.create(t, o)
	return o
}

// rotate gives a pod another version.
func (r *room) rotate(t *testing.T, status *unstructured.Unstructured, version string) {
	t.Helper()
	r.patch(t, status, fmt.Sprintf(`{"status":{"objects":[{"id":"password","version":%q}]}}`, version))
}

// classSum is the hash of a class at a version.
func classSum(class, version string) string {
	return hashOf("SecretProviderClassName=" + class + ";password=" + version)
}

// mountsClass is a pod that mounts class db.
func mountsClass() corev1.PodSpec {
	return corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "db"},
		}}}},
		Containers: []corev1.Container{container("log"), mounts(container("web"), "v")},
	}
}

// TestRotation: a rotation that reaches one pod after the other is one rollout, however much else
// happens in between and however often the program starts.
func TestRotation(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"Variables": "--reload-strategy=env-vars", "Annotations": "--reload-strategy=annotations"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, values{enableCSI: true})
			s.installDriver(t)
			r := s.namespace(t, "rotation")
			r.class(t, "db", nil)
			other := r.configMap(t, "c", "0")
			var pods []*unstructured.Unstructured
			for _, pod := range []string{"a", "b", "c"} {
				pods = append(pods, r.status(t, pod, "db", "1"))
			}
			o := r.add(t, app{notes: notes(classAuto, "true", configMapReload, "c"), pod: mountsClass()})
			// The label selector is for sources that users label, not for these.
			flags := []string{flag, "--enable-csi-integration", "--resource-label-selector=!" + driverLabel}
			p := r.run(t, flags...)
			r.rotate(t, pods[0], "2")
			r.awaitLastHash(t, o, 1, classSum("db", "2"))
			if name == "Variables" {
				r.awaitMarks(t, o, "web[0] STAKATER_DB_SECRETPROVIDERCLASS="+classSum("db", "2"))
			}
			r.set(t, other, "1")
			r.awaitLastHash(t, o, 2, sum("1"))
			r.rotate(t, pods[1], "2")
			f := r.fence(t)
			f.pass(t)
			p.stop(t)
			r.rotate(t, pods[2], "2")
			r.mustStay(t, map[string]*unstructured.Unstructured{"app": o}, func() { r.run(t, flags...) })
			begun := time.Now()
			late := r.status(t, "late", "db", "2")
			r.rotate(t, late, "3")
			r.awaitLastHash(t, o, 3, classSum("db", "3"))
			if name == "Annotations" {
				r.awaitLast(t, o, reloaded{"SECRETPROVIDERCLASS", "db", classSum("db", "3"), "web"}, begun)
			}
			r.awaitEvent(t, o, "Normal Reloaded reloader-secretproviderclasspodstatuses ", "'db'", "SECRETPROVIDERCLASS")
		})
	}
}

// awaitLastHash waits until a workload shows a hash, after that many reloads.
func (r *room) awaitLastHash(t *testing.T, o *unstructured.Unstructured, times int64, hash string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		return strings.Contains(strings.Join(got, " "), hash), fmt.Sprintf("%s/%s shows %q, want %s", r.name, o.GetName(), got, hash)
	})
	if got := o.GetGeneration() - 1; got != times {
		t.Errorf("%s/%s was reloaded %d times, want %d", r.name, o.GetName(), got, times)
	}
}

// TestClassAnnotations: a class is ignored, matched, excluded and named like the other sources.
func TestClassAnnotations(t *testing.T) {
	t.Parallel()
	scenes := map[string]scene{
		"Plain": rotates(nil, map[string]classWish{
			"Auto":     {notes(auto, "true"), true},
			"Typed":    {notes(auto, "false", classAuto, "true"), true},
			"Named":    {notes(classReload, "x, d."), true},
			"NoMatch":  {notes(search, "true"), false},
			"Excluded": {notes(auto, "true", "secretproviderclasses.exclude.reloader.stakater.com/reload", "db"), false},
		}),
		"Matched": rotates(notes(match, "true"), map[string]classWish{"Search": {notes(search, "true"), true}}),
		"Ignored": rotates(notes(ignore, "true"), map[string]classWish{"Auto": {notes(auto, "true"), false}}),
	}
	s := newSite(t, values{enableCSI: true})
	s.installDriver(t)
	s.play(t, scenes, "--enable-csi-integration")
}

// classWish is a workload, and whether a rotation of class db reloads it.
type classWish struct {
	notes   map[string]string
	reloads bool
}

// rotates is the rotation of a class with annotations.
func rotates(on map[string]string, wishes map[string]classWish) scene {
	return func(t *testing.T, r *room, _ *program) {
		t.Helper()
		r.class(t, "db", on)
		r.class(t, "fence", nil)
		pod, workloads := r.status(t, "a", "db", "1"), map[string]*unstructured.Unstructured{}
		for name, w := range wishes {
			workloads[name] = r.add(t, app{name: strings.ToLower(name), notes: w.notes, pod: mountsClass()})
		}
		// A workload that follows the class is the fence: each type has its own watch.
		status, follows := r.status(t, "fence", "fence", "1"), r.add(t, app{name: "follows", notes: notes(classReload, "fence"), pod: uses()})
		r.rotate(t, pod, "2")
		for _, version := range []string{"2", "3"} {
			r.rotate(t, status, version)
			r.awaitMarks(t, follows, "web[0] STAKATER_FENCE_SECRETPROVIDERCLASS="+classSum("fence", version))
		}
		for name, w := range wishes {
			if w.reloads {
				r.awaitReloads(t, workloads[name], 1, "web[0] STAKATER_DB_SECRETPROVIDERCLASS="+classSum("db", "2"))
			} else {
				r.mustBeUntouched(t, workloads[name])
			}
		}
	}
}

// classesAreOptional: without the flag the kinds aren't even listed.
func classesAreOptional(t *testing.T, r *room, p *program) {
	t.Helper()
	r.class(t, "db", nil)
	pod, o, f := r.status(t, "a", "db", "1"), r.add(t, app{notes: notes(auto, "true"), pod: mountsClass()}), r.fence(t)
	if text, _ := p.get(t, "/readyz?verbose"); strings.Contains(text, "secretproviderclass") {
		t.Errorf("classes are followed:\n%s", text)
	}
	r.rotate(t, pod, "2")
	f.pass(t)
	r.mustBeUntouched(t, o)
}

// driverLater: kinds that are installed after the start are followed then.
func driverLater(t *testing.T, r *room, p *program) {
	t.Helper()
	p.awaitReady(t, "secretproviderclasspodstatuses")
	r.installDriver(t)
	p.awaitReady(t, "[+] secretproviderclasspodstatuses: followed")
	r.class(t, "db", nil)
	pod, o := r.status(t, "a", "db", "1"), r.add(t, app{name: "class", notes: notes(classAuto, "true"), pod: mountsClass()})
	r.rotate(t, pod, "2")
	r.awaitReloads(t, o, 1, "web[0] STAKATER_DB_SECRETPROVIDERCLASS="+classSum("db", "2"))
}
