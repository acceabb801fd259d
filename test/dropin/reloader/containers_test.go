package reloader_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// volume is a volume of a source: "configmap/c", "secret/s", and "projected/configmap/c".
func volume(name, of, object string) corev1.Volume {
	ref := corev1.LocalObjectReference{Name: object}
	v := corev1.Volume{Name: name}
	switch of {
	case "configmap":
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}
	case "secret":
		v.Secret = &corev1.SecretVolumeSource{SecretName: object}
	case "projected-configmap":
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}}}}
	case "projected-secret":
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: ref}}}}
	}
	return v
}

// mounts lets a container mount volumes.
func mounts(c corev1.Container, volumes ...string) corev1.Container {
	for i, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v, MountPath: fmt.Sprintf("/mnt/%d", i)})
	}
	return c
}

// keyOf lets a container load one key of a source.
func keyOf(c corev1.Container, of, object string) corev1.Container {
	ref, e := corev1.LocalObjectReference{Name: object}, corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{}}
	if of == "secret" {
		e.ValueFrom.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "key"}
	} else {
		e.ValueFrom.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "key"}
	}
	c.Env = append(c.Env, e)
	return c
}

// podWish is a pod, and the container of it that shows a change, empty for no reload.
type podWish struct {
	reason    string
	pod       corev1.PodSpec
	secret    bool
	container string
}

// podWishes are the contract's ways to find a source.
func podWishes() map[string]podWish {
	web, log, migrate := container("web"), container("log"), container("migrate")
	config := []corev1.Volume{volume("v", "configmap", "c")}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := migrate
	sidecar.RestartPolicy = &always
	return map[string]podWish{
		"Volume": {
			"the first container that mounts it", corev1.PodSpec{Volumes: config, Containers: []corev1.Container{web, mounts(log, "v")}}, false, "log",
		},
		"SecretVolume": {
			"the same for a Secret",
			corev1.PodSpec{Volumes: []corev1.Volume{volume("v", "secret", "c")}, Containers: []corev1.Container{web, mounts(log, "v")}},
			true, "log",
		},
		"Projected": {
			"a projected volume counts",
			corev1.PodSpec{Volumes: []corev1.Volume{volume("v", "projected-configmap", "c")}, Containers: []corev1.Container{web, mounts(log, "v")}},
			false, "log",
		},
		"ProjectedSecret": {
			"a projected volume counts",
			corev1.PodSpec{Volumes: []corev1.Volume{volume("v", "projected-secret", "c")}, Containers: []corev1.Container{web, mounts(log, "v")}},
			true, "log",
		},
		"VolumeOfInit": {
			"an init container's volume is shown by the first container",
			corev1.PodSpec{Volumes: config, InitContainers: []corev1.Container{mounts(migrate, "v")}, Containers: []corev1.Container{web, log}},
			false, "web",
		},
		"Sidecar": {
			"a sidecar is an init container",
			corev1.PodSpec{Volumes: config, InitContainers: []corev1.Container{mounts(sidecar, "v")}, Containers: []corev1.Container{web, log}},
			false, "web",
		},
		"VolumeBeforeEnv": {
			"a mount comes before a variable, even of an earlier container",
			corev1.PodSpec{Volumes: config, Containers: []corev1.Container{container("web", "configmap/c"), mounts(log, "v")}},
			false, "log",
		},
		"Env":       {"envFrom", corev1.PodSpec{Containers: []corev1.Container{web, container("log", "configmap/c")}}, false, "log"},
		"EnvKey":    {"one key", corev1.PodSpec{Containers: []corev1.Container{web, keyOf(log, "configmap", "c")}}, false, "log"},
		"EnvSecret": {"one key of a Secret", corev1.PodSpec{Containers: []corev1.Container{web, keyOf(log, "secret", "c")}}, true, "log"},
		"EnvOfInit": {"an init container's variable is shown by the first container", corev1.PodSpec{InitContainers: []corev1.Container{container("migrate", "configmap/c")}, Containers: []corev1.Container{web, log}}, false, "web"},
		"EnvUnmounted": {
			"a volume that isn't mounted doesn't hide the variable",
			corev1.PodSpec{Volumes: config, Containers: []corev1.Container{web, container("log", "configmap/c")}},
			false, "log",
		},
		"Unmounted": {"a volume that no container mounts", corev1.PodSpec{Volumes: config, Containers: []corev1.Container{web}}, false, ""},
		"SecondVolume": {
			"the second volume isn't looked at",
			corev1.PodSpec{Volumes: []corev1.Volume{volume("v", "configmap", "c"), volume("w", "configmap", "c")}, Containers: []corev1.Container{mounts(web, "w")}},
			false, "",
		},
		"OtherType": {"a Secret of the same name", corev1.PodSpec{Containers: []corev1.Container{container("web", "secret/c")}}, false, ""},
		"PullSecret": {
			"a secret for images", corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "c"}}, Containers: []corev1.Container{web}}, true, "",
		},
	}
}

// containers changes configmap/c or secret/c, and looks which container of each pod shows it.
func containers(secret bool) scene {
	return func(t *testing.T, r *room, _ *program) {
		t.Helper()
		ref := "configmap/c"
		if secret {
			ref = "secret/c"
		}
		source, workloads := r.source(t, ref, "0", nil), map[string]*unstructured.Unstructured{}
		all := podWishes()
		maps.DeleteFunc(all, func(_ string, w podWish) bool { return w.secret != secret })
		for name, w := range all {
			workloads[name] = r.add(t, app{name: strings.ToLower(name), notes: notes(auto, "true"), pod: w.pod})
		}
		f := r.fence(t)
		r.set(t, source, "1")
		f.pass(t)
		for name, w := range all {
			if w.container == "" {
				r.mustBeUntouched(t, workloads[name])
			} else {
				r.awaitReloads(t, workloads[name], 1, w.container+"[0] "+variable(ref)+"="+sum("1"))
			}
			if t.Failed() {
				t.Fatalf("%s: %s", name, w.reason)
			}
		}
	}
}
