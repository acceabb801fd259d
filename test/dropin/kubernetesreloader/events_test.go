package kubernetesreloader_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestEvents is the table of what follows from which event. One program serves
// all of it, as it would in a namespace with many workloads; a second one those rows
// that make several writes and want them in one rollout.
func TestEvents(t *testing.T) {
	t.Parallel()
	s, patient := newSite(t), newSite(t)
	program := s.run(t, "--alternative-configmap-annotation=configmap.reloader.stakater.com/reload",
		"--alternative-secret-annotation", "secret.reloader.stakater.com/reload")
	// The program hears of the writes of a row at once: far within this period.
	patient.run(t, "--coalesce-period=3000")
	s.fence(t)
	t.Run("group", func(t *testing.T) {
		rows := func(s *site, tests map[string]func(event)) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(event{t, s})
				})
			}
		}
		rows(patient, map[string]func(event){"Burst": burst, "OneRolloutForTwo": oneRolloutForTwo, "Containers": containers})
		rows(s, map[string]func(event){
			"Change": change, "Secret": secretChange, "Metadata": metadata, "BinaryData": binaryData,
			"Collision": collision, "Created": created, "CreatedRequired": createdRequired, "Deleted": deleted, "Recreated": recreated, "NewAnnotation": newAnnotation,
			"Reapplied": reapplied, "SpacesAndUnion": spacesAndUnion, "OwnState": ownState, "CollidingNames": collidingNames,
			"Renamed": renamed, "ValueFrom": valueFrom, "Pruned": pruned, "Undone": undone,
		})
	})
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "letmein"} {
		if strings.Contains(program.Stdout()+program.Stderr(), secret) {
			t.Errorf("the log contains %q, which is content", secret)
		}
	}
}

// event is what a row of the table works with.
type event struct {
	t    *testing.T
	site *site
}

// change: every kind of dependent is rolled, none is rolled for being found.
func change(e event) {
	t, s := e.t, e.site
	cm := s.configMap("change", "1")
	d := s.deployment("change", "change")
	ds := &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: selector("change"), Template: template("change")}}
	ss := &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{Selector: selector("change"), Template: template("change")}}
	s.create(t, cm, d, ds, ss)
	s.awaitState(t, map[string]string{"v1.ConfigMap_change": sum("1")})
	s.set(t, cm, "2")
	want := map[string]string{"main/_RELOADER_CONFIGMAP_CHANGE": sum("2")}
	s.awaitRolled(t, d, 1, want)
	s.awaitRolled(t, ds, 1, want)
	s.awaitRolled(t, ss, 1, want)
	s.awaitState(t, map[string]string{"v1.ConfigMap_change": sum("2")})
}

func secretChange(e event) {
	t, s := e.t, e.site
	secret := s.secret("tls-1", "letmein")
	d := s.deployment("tls", "")
	d.Annotations = map[string]string{secretAnnotation: "tls-1"}
	s.create(t, secret, d)
	secret.Data["key"] = []byte("hunter2")
	s.update(t, secret)
	// The original hashed the base64 text.
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_SECRET_TLS_1": sum("aHVudGVyMg==")})
	s.awaitState(t, map[string]string{"v1.Secret_tls-1": sum("aHVudGVyMg==")})
}

// metadata: a change of labels or annotations is none.
func metadata(e event) {
	t, s := e.t, e.site
	cm := s.configMap("metadata", "1")
	d := s.deployment("metadata", "metadata")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_metadata": sum("1")})
	cm.Labels, cm.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	s.update(t, cm)
	s.fence(t)
	s.mustHave(t, d, 0)
}

// binaryData: the SHA-1 does not see it, so a part of the strong digest is added.
func binaryData(e event) {
	t, s := e.t, e.site
	cm := s.configMap("binary", "1")
	d := s.deployment("binary", "binary")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_binary": sum("1")})
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_BINARY": sum("2")})
	s.awaitState(t, map[string]string{"v1.ConfigMap_binary": sum("2")})
	for i, bytes := range []string{"\xff1", "\xff2"} {
		before := s.state(t)["v1.ConfigMap_binary.sha256"]
		cm.BinaryData = map[string][]byte{"image": []byte(bytes)}
		s.update(t, cm)
		strong := s.awaitStrong(t, "v1.ConfigMap_binary", before)
		s.awaitRolled(t, d, i+2, map[string]string{"main/_RELOADER_CONFIGMAP_BINARY": sum("2") + "-" + strong})
	}
}

// collision: the two contents have one SHA-1.
func collision(e event) {
	t, s := e.t, e.site
	cm := s.configMap("collision", "")
	cm.Data = map[string]string{"a": "1", "b": "2"}
	d := s.deployment("collision", "collision")
	s.create(t, cm, d)
	const both = "10cf73d13b980e22c78ecdc13f556962f871d697"
	s.awaitState(t, map[string]string{"v1.ConfigMap_collision": both})
	before := s.state(t)["v1.ConfigMap_collision.sha256"]
	cm.Data = map[string]string{"a": "1b=2"}
	s.update(t, cm)
	s.awaitStrong(t, "v1.ConfigMap_collision", before)
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_COLLISION": both})
}

// created: a source that arrives after its dependent is a change, because the
// template does not need it and so the pods run without it.
func created(e event) {
	t, s := e.t, e.site
	d := s.deployment("created", "created")
	s.create(t, d)
	s.fence(t)
	s.create(t, s.configMap("created", "1"))
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_CREATED": sum("1")})
}

// createdRequired: pods that need the source could not start before it came.
func createdRequired(e event) {
	t, s := e.t, e.site
	d := s.deployment("required", "required")
	d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "required"},
	}}}
	s.create(t, d)
	s.fence(t)
	s.create(t, s.configMap("required", "1"))
	s.awaitState(t, map[string]string{"v1.ConfigMap_required": sum("1")})
	s.fence(t)
	s.mustHave(t, d, 0)
}

// deleted: nobody is restarted onto a missing source, also not when the deletion
// is the first that is heard of it.
func deleted(e event) {
	t, s := e.t, e.site
	cm := s.configMap("deleted", "1")
	d := s.deployment("deleted", "deleted")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_deleted": sum("1")})
	untracked, late := s.configMap("untracked", "1"), s.deployment("late", "")
	s.create(t, untracked, late)
	s.remove(t, cm)
	late.Annotations[configMapAnnotation] = "untracked"
	s.update(t, late)
	s.remove(t, untracked)
	s.fence(t)
	s.mustHave(t, d, 0)
	s.mustHave(t, late, 0)
}

// recreated: with equal content it is nothing, with other content a change.
func recreated(e event) {
	t, s := e.t, e.site
	d := s.deployment("recreated", "recreated")
	s.create(t, s.configMap("recreated", "1"), d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_recreated": sum("1")})
	s.remove(t, s.configMap("recreated", ""))
	s.create(t, s.configMap("recreated", "1"))
	s.fence(t)
	s.mustHave(t, d, 0)
	s.remove(t, s.configMap("recreated", ""))
	s.create(t, s.configMap("recreated", "2"))
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_RECREATED": sum("2")})
}

// newAnnotation: a workload that begins to name a source has it already.
func newAnnotation(e event) {
	t, s := e.t, e.site
	cm := s.configMap("named", "1")
	d := s.deployment("named", "")
	s.create(t, cm, d)
	s.fence(t)
	d.Annotations[configMapAnnotation] = "named"
	s.update(t, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_named": sum("1")})
	s.fence(t)
	s.mustHave(t, d, 0)
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_NAMED": sum("2")})
}

// reapplied: somebody took the variable out, which is a rollout of its own.
func reapplied(e event) {
	t, s := e.t, e.site
	cm := s.configMap("reapplied", "1")
	d := s.deployment("reapplied", "reapplied")
	s.create(t, cm, d)
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_REAPPLIED": sum("2")})
	d.Spec.Template.Spec.Containers[0].Env = nil
	s.update(t, d)
	s.fence(t)
	s.awaitRolled(t, d, 1, map[string]string{})
}

// undone: what a person reverted is not pushed forward again.
func undone(e event) {
	t, s := e.t, e.site
	cm := s.configMap("undone", "1")
	d := s.deployment("undone", "undone")
	s.create(t, cm, d)
	variable := map[string]string{}
	for i, value := range []string{"2", "3"} {
		s.set(t, cm, value)
		variable["main/_RELOADER_CONFIGMAP_UNDONE"] = sum(value)
		s.awaitRolled(t, d, i+1, variable)
	}
	d.Spec.Template.Spec.Containers[0].Env[0].Value = sum("2")
	s.update(t, d)
	s.fence(t)
	s.mustHave(t, d, 2)
}

// spacesAndUnion: names are trimmed, and both annotations of a kind count.
func spacesAndUnion(e event) {
	t, s := e.t, e.site
	d := s.deployment("spaces", " spaces-1 , spaces-2,,")
	d.Annotations["configmap.reloader.stakater.com/reload"] = "spaces-3,spaces-1"
	d.Annotations["secret.reloader.stakater.com/reload"] = "spaces-4"
	secret := s.secret("spaces-4", "1")
	s.create(t, secret, s.configMap("spaces-1", "1"), s.configMap("spaces-2", "1"), s.configMap("spaces-3", "1"), d)
	s.awaitState(t, map[string]string{
		"v1.ConfigMap_spaces-1": sum("1"), "v1.ConfigMap_spaces-2": sum("1"),
		"v1.ConfigMap_spaces-3": sum("1"), "v1.Secret_spaces-4": sum("MQ=="),
	})
	secret.Data["key"] = []byte("2")
	s.update(t, secret)
	want := map[string]string{"main/_RELOADER_SECRET_SPACES_4": sum("Mg==")}
	s.awaitRolled(t, d, 1, want)
	for i, name := range []string{"spaces-1", "spaces-2", "spaces-3"} {
		s.update(t, s.configMap(name, "2"))
		want["main/"+variable("CONFIGMAP", name)] = sum("2")
		s.awaitRolled(t, d, i+2, want)
	}
}

// ownState: the state is no source, though an annotation names it.
func ownState(e event) {
	t, s := e.t, e.site
	d := s.deployment("own-state", stateName+",own")
	s.create(t, s.configMap("own", "1"), d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_own": sum("1")})
	s.fence(t) // Writes the state.
	s.fence(t)
	s.mustHave(t, d, 0)
	for key := range s.state(t) {
		if strings.HasPrefix(key, "v1.ConfigMap_"+stateName) {
			t.Errorf("the state has itself as a source: %s", key)
		}
	}
}

// burst: many changes in a row are one rollout, to the last content.
func burst(e event) {
	t, s := e.t, e.site
	cm := s.configMap("burst", "0")
	d := s.deployment("burst", "burst")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_burst": sum("0")})
	s.gate.together(func() {
		for _, value := range []string{"1", "2", "3", "4", "5", "6"} {
			s.set(t, cm, value)
		}
	})
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_BURST": sum("6")})
	if n := len(d.Spec.Template.Spec.Containers[0].Env); n != 1 {
		t.Errorf("the container has %d variables, want one", n)
	}
}

// oneRolloutForTwo: changes of several sources are one patch.
func oneRolloutForTwo(e event) {
	t, s := e.t, e.site
	cm, secret := s.configMap("two", "1"), s.secret("two", "1")
	d := s.deployment("two", "two")
	d.Annotations[secretAnnotation] = "two"
	s.create(t, cm, secret, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_two": sum("1"), "v1.Secret_two": sum("MQ==")})
	cm.Data["key"], secret.Data["key"] = "2", []byte("2")
	s.gate.together(func() {
		s.update(t, cm)
		s.update(t, secret)
	})
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_TWO": sum("2"), "main/_RELOADER_SECRET_TWO": sum("Mg==")})
}

// pruned: a source that nobody names any more leaves the state, also while a
// template still mounts it.
func pruned(e event) {
	t, s := e.t, e.site
	d := s.deployment("pruned", "pruned")
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "pruned"}},
	}}}
	s.create(t, s.configMap("pruned", "1"), d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_pruned": sum("1")})
	d.Annotations = nil
	s.update(t, d)
	s.awaitNoState(t, "v1.ConfigMap_pruned")
}
