package testkit

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Quiet is the quiet window of the tests' workloads.
const Quiet = "200ms"

// Deployment is a followed Deployment whose pods mount a ConfigMap and read a
// Secret into their environment, each left out when its name is empty.
func Deployment(name, configMap, secret string) *appsv1.Deployment {
	none := int32(0)
	labels := map[string]string{"app": name}
	app := corev1.Container{Name: "app", Image: "app"}
	pod := corev1.PodSpec{}
	if configMap != "" {
		pod.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
		}}}
		app.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}}
	}
	if secret != "" {
		app.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}
	}
	pod.Containers = []corev1.Container{app}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{settings.Reload: "auto", settings.Quiet: Quiet}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none, // a rollout shows as a new ReplicaSet; pods would only cost time
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// Web is the Deployment that most tests are about.
const Web = "web"

// CreateApp creates the Deployment "web" with its ConfigMap "app" and its Secret "db", each
// with the value "1" under "key".
func (w *World) CreateApp(t testing.TB) {
	t.Helper()
	w.Create(t, ConfigMap("app", "key", "1"), Secret("db", "key", "1"), Deployment(Web, "app", "db"))
}

// Witness is a Deployment that shows a test how far the controller has come: the only proof
// that something did not happen is that something later did.
type Witness struct {
	world *World
	name  string
	turn  int
}

// NewWitness creates a witness. It has a ConfigMap and a Secret, because each kind of source
// has its own watch.
func (w *World) NewWitness(t testing.TB) *Witness {
	t.Helper()
	const name = "witness"
	w.Create(t, ConfigMap(name, "key", "0"), Secret(name, "key", "0"), Deployment(name, name, name))
	w.witness = &Witness{world: w, name: name}
	return w.witness
}

// Settle returns when the running controller has decided on everything that was done before. It
// uses the world's witness, and creates it if there is none.
func (w *World) Settle(t testing.TB) {
	t.Helper()
	if w.witness == nil {
		w.NewWitness(t)
	}
	w.witness.AwaitKnown(t)
	w.witness.Pass(t)
}

// CheckRevisions fails when a Deployment has another number of revisions after the controller has
// settled: a rollout too many comes after the one that a test waits for.
func (w *World) CheckRevisions(t testing.TB, deployment string, want int, why string) {
	t.Helper()
	w.Settle(t)
	if got := w.Revisions(t, deployment); got != want {
		t.Errorf("%d revisions of %s, want %d: %s", got, deployment, want, why)
	}
}

// AwaitKnown waits until the witness is on record, so the controller treats its next change
// as one.
func (i *Witness) AwaitKnown(t testing.TB) {
	t.Helper()
	i.world.AwaitRecord(t, i.name, "configmap/"+i.name, "secret/"+i.name)
}

// Pass returns when the controller has delivered a change that was made after the call. The
// controller has decided on all earlier changes by then: they were queued earlier, and their
// quiet window is not longer.
func (i *Witness) Pass(t testing.TB) {
	t.Helper()
	i.turn++
	before := i.look(t)
	i.world.SetConfig(t, i.name, "key", fmt.Sprint(i.turn))
	i.world.SetSecret(t, i.name, "key", fmt.Sprint(i.turn))
	labtest.Eventually(t, Patience, func() (bool, string) {
		now := i.look(t)
		for _, source := range []input.ID{input.ConfigMap(i.name), input.Secret(i.name)} {
			if !now.isPast(before, source) {
				return false, fmt.Sprintf("%s shows %q, not yet the newest %s", i.name, now.shown, source)
			}
		}
		return true, ""
	})
}

// sight is a witness's delivered versions, in its template and in the record.
type sight struct {
	shown    input.Shown
	recorded record.Entry
}

func (i *Witness) look(t testing.TB) sight {
	t.Helper()
	now := sight{shown: input.ParseShown(i.world.Shown(t, i.name))}
	text := i.world.Record(t, i.name)
	if text == "" { // such as a record that can't be written
		return now
	}
	var err error
	if now.recorded, err = record.Decode(text); err != nil {
		t.Fatal(err)
	}
	return now
}

// isPast reports whether a source was delivered since. On a busy machine the controller may
// see the second of two changes only after the rollout for the first. That rollout has
// loaded it, so it is only recorded. The record may be late too, and then still has the
// version that the template showed before.
func (s sight) isPast(before sight, source input.ID) bool {
	if s.shown[source] != before.shown[source] {
		return true
	}
	given, known := before.recorded.Inputs[source]
	sum := s.recorded.Inputs[source].Version.Sum
	return known && sum != given.Version.Sum &&
		(before.shown[source].Digest == "" || !strings.HasPrefix(sum, before.shown[source].Digest))
}
