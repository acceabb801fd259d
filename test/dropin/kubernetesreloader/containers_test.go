package kubernetesreloader_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// containers: the variable goes to the first container that has it, else to the
// first; init containers do not count. New variables come first.
func containers(e event) {
	t, s := e.t, e.site
	cm := s.configMap("containers", "1")
	other := s.configMap("containers-2", "1")
	d := s.deployment("containers", "containers,containers-2")
	spec := &d.Spec.Template.Spec
	marker := corev1.EnvVar{Name: "_RELOADER_CONFIGMAP_CONTAINERS", Value: "old"}
	spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.com/app:1", Env: []corev1.EnvVar{marker}}}
	spec.Containers = []corev1.Container{
		{Name: "first", Image: "example.com/app:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}},
		{Name: "second", Image: "example.com/app:1", Env: []corev1.EnvVar{{Name: "B", Value: "1"}, marker}},
		{Name: "third", Image: "example.com/app:1", Env: []corev1.EnvVar{marker}},
	}
	s.create(t, cm, other, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_containers": sum("1"), "v1.ConfigMap_containers-2": sum("1")})
	cm.Data["key"], other.Data["key"] = "2", "2"
	s.gate.together(func() {
		s.update(t, cm)
		s.update(t, other)
	})
	s.awaitRolled(t, d, 1, map[string]string{
		"init/_RELOADER_CONFIGMAP_CONTAINERS": "old", "third/_RELOADER_CONFIGMAP_CONTAINERS": "old",
		"second/_RELOADER_CONFIGMAP_CONTAINERS": sum("2"), "first/_RELOADER_CONFIGMAP_CONTAINERS_2": sum("2"),
	})
	if first := d.Spec.Template.Spec.Containers[0].Env[0].Name; first != "_RELOADER_CONFIGMAP_CONTAINERS_2" {
		t.Errorf("the first variable is %s; a new one goes to the front", first)
	}
}

// collidingNames: two sources whose plain variables are one get one each.
func collidingNames(e event) {
	t, s := e.t, e.site
	dash, dot := s.configMap("colliding-name", "1"), s.configMap("colliding.name", "1")
	d := s.deployment("colliding", "colliding-name,colliding.name")
	s.create(t, dash, dot, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_colliding-name": sum("1"), "v1.ConfigMap_colliding.name": sum("1")})
	s.set(t, dash, "2")
	s.awaitVariables(t, d, 1)
	s.set(t, dot, "2") // The same value as the other one shows.
	s.awaitVariables(t, d, 2)
	for name := range variables(d.Spec.Template.Spec) {
		if !strings.HasPrefix(name, "main/_RELOADER_CONFIGMAP_COLLIDING_NAME_") {
			t.Errorf("variable %s is not set apart", name)
		}
	}
}

// renamed: the template is patched as it is when the time has come.
func renamed(e event) {
	t, s := e.t, e.site
	cm := s.configMap("renamed", "1")
	d := s.deployment("renamed", "renamed")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_renamed": sum("1")})
	d.Spec.Template.Spec.Containers[0].Name = "new"
	s.update(t, d)
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 1, map[string]string{"new/_RELOADER_CONFIGMAP_RENAMED": sum("2")})
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Errorf("the template has %d containers, want 1", n)
	}
}

// valueFrom: a variable that takes its value from somewhere is not ours.
func valueFrom(e event) {
	t, s := e.t, e.site
	cm := s.configMap("from", "1")
	d := s.deployment("from", "from")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name:      "_RELOADER_CONFIGMAP_FROM",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}}
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_from": sum("1")})
	s.set(t, cm, "2")
	s.awaitVariables(t, d, 1)
	for name, value := range variables(d.Spec.Template.Spec) {
		if !strings.HasPrefix(name, "main/_RELOADER_CONFIGMAP_FROM_") || value != sum("2") {
			t.Errorf("variable %s=%s, want one of another name with %s", name, value, sum("2"))
		}
	}
	if env := d.Spec.Template.Spec.Containers[0].Env; len(env) != 2 || env[1].ValueFrom == nil {
		t.Errorf("the user's variable was touched: %v", env)
	}
}
