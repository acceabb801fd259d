package stakater_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func classVolume(name, class string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "any.example", VolumeAttributes: map[string]string{"secretProviderClass": class},
	}}}
}

// volume contains a ConfigMap or Secret.
func volume(name string, s stakater.Source) corev1.Volume {
	v := corev1.Volume{Name: name}
	if s.Type == stakater.ConfigMap {
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}}
	} else {
		v.Secret = &corev1.SecretVolumeSource{SecretName: s.Name}
	}
	return v
}

// projected contains several ConfigMaps or Secrets.
func projected(name string, sources ...stakater.Source) corev1.Volume {
	v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}
	for _, s := range sources {
		var p corev1.VolumeProjection
		ref := corev1.LocalObjectReference{Name: s.Name}
		if s.Type == stakater.ConfigMap {
			p.ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: ref}
		} else {
			p.Secret = &corev1.SecretProjection{LocalObjectReference: ref}
		}
		v.Projected.Sources = append(v.Projected.Sources, p)
	}
	return v
}

func mounts(names ...string) (list []corev1.VolumeMount) {
	for _, name := range names {
		list = append(list, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return list
}

// keyOf is a variable with one key of a ConfigMap or Secret.
func keyOf(s stakater.Source) corev1.EnvVar {
	ref := corev1.LocalObjectReference{Name: s.Name}
	from := &corev1.EnvVarSource{}
	if s.Type == stakater.ConfigMap {
		from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "k"}
	} else {
		from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k"}
	}
	return corev1.EnvVar{Name: "K", ValueFrom: from}
}

// allOf makes variables of a whole ConfigMap or Secret.
func allOf(s stakater.Source) corev1.EnvFromSource {
	ref := corev1.LocalObjectReference{Name: s.Name}
	if s.Type == stakater.ConfigMap {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}
	}
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}
}

func mounting(names ...string) corev1.Container {
	return corev1.Container{VolumeMounts: mounts(names...)}
}

func loading(s stakater.Source) corev1.Container {
	return corev1.Container{Env: []corev1.EnvVar{{Name: "PLAIN", Value: s.Name}, keyOf(s)}}
}

func loadingAll(s stakater.Source) corev1.Container {
	return corev1.Container{EnvFrom: []corev1.EnvFromSource{{}, allOf(s)}}
}

// TestContainer: which container shows a change. Every case is asked for with auto, and where
// it isn't referenced, by name too.
func TestContainer(t *testing.T) {
	t.Parallel()
	const none = -1
	c, s, p := configMap("c"), secret("s"), class("p")
	other := corev1.Container{Name: "other"}
	type containers = []corev1.Container
	type volumes = []corev1.Volume
	for name, tc := range map[string]struct {
		source        stakater.Source
		volumes       volumes
		init, regular containers
		want          int
	}{
		"ConfigMap volume":                             {c, volumes{volume("v", c)}, nil, containers{other, mounting("v"), mounting("v")}, 1},
		"Secret volume":                                {s, volumes{volume("v", s)}, nil, containers{other, mounting("x", "v")}, 1},
		"projected ConfigMap":                          {c, volumes{projected("v", s, configMap("x"), c)}, nil, containers{other, mounting("v")}, 1},
		"projected Secret":                             {s, volumes{projected("v", c, s)}, nil, containers{other, mounting("v")}, 1},
		"class of a CSI volume":                        {p, volumes{classVolume("v", "p")}, nil, containers{other, mounting("v")}, 1},
		"a volume comes before variables":              {c, volumes{volume("v", c)}, nil, containers{loading(c), mounting("v")}, 1},
		"an init mount comes before variables":         {c, volumes{volume("v", c)}, containers{mounting("v")}, containers{other, loading(c)}, 0},
		"an init mount shows in the first container":   {c, volumes{volume("v", c)}, containers{other, mounting("v")}, containers{other, other}, 0},
		"a regular mount comes before an init mount":   {c, volumes{volume("v", c)}, containers{mounting("v")}, containers{other, mounting("v")}, 1},
		"a volume without a mount leaves variables":    {c, volumes{volume("v", c)}, nil, containers{other, loadingAll(c)}, 1},
		"a volume without a mount":                     {c, volumes{volume("v", c)}, nil, containers{other}, none},
		"the first of two volumes":                     {c, volumes{volume("v", c), volume("w", c)}, nil, containers{mounting("w"), mounting("v")}, 1},
		"a second volume isn't looked at":              {c, volumes{volume("v", c), volume("w", c)}, nil, containers{mounting("w")}, none},
		"nor in a projection":                          {s, volumes{projected("v", s), volume("w", s)}, nil, containers{mounting("w")}, none},
		"a variable after a second volume":             {c, volumes{volume("v", c), volume("w", c)}, nil, containers{mounting("w"), loading(c)}, 1},
		"variable":                                     {c, nil, nil, containers{other, loading(c), loadingAll(c)}, 1},
		"all variables":                                {s, nil, nil, containers{other, loadingAll(s), loading(s)}, 1},
		"Secret variable":                              {s, nil, nil, containers{other, loading(s)}, 1},
		"variables of an init container":               {s, nil, containers{other, loadingAll(s)}, containers{other, other}, 0},
		"a regular variable comes before an init one":  {s, nil, containers{loading(s)}, containers{other, loading(s)}, 1},
		"a Secret of the ConfigMap's name":             {c, volumes{volume("v", secret("c")), projected("w", secret("c"))}, nil, containers{mounting("v", "w"), loading(secret("c")), loadingAll(secret("c"))}, none},
		"a ConfigMap of the Secret's name":             {s, volumes{volume("v", configMap("s")), projected("w", configMap("s"))}, nil, containers{mounting("v", "w"), loading(configMap("s")), loadingAll(configMap("s"))}, none},
		"a class isn't a Secret":                       {p, volumes{volume("v", secret("p")), projected("w", secret("p"))}, nil, containers{mounting("v", "w"), loading(secret("p")), loadingAll(secret("p"))}, none},
		"a Secret isn't a class":                       {secret("p"), volumes{classVolume("v", "p")}, nil, containers{mounting("v")}, none},
		"no reference":                                 {c, nil, nil, containers{other}, none},
		"no regular container":                         {c, volumes{volume("v", c)}, containers{mounting("v")}, nil, none},
		"a variable without a source":                  {c, nil, nil, containers{{Env: []corev1.EnvVar{{Name: "c", Value: "c"}, {Name: "f", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}}}, none},
		"other volumes":                                {c, volumes{{Name: "c"}, {Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}, nil, containers{mounting("c", "e")}, none},
		"a Secret with which CSI publishes":            {s, volumes{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}}}, nil, containers{mounting("v")}, none},
		"a class without a name, a volume without one": {class(""), volumes{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}}}, nil, containers{mounting("v")}, none},
	} {
		in := workload(annotations{auto: "true"}, nil)
		in.Template.Spec = corev1.PodSpec{Volumes: tc.volumes, InitContainers: tc.init, Containers: tc.regular}
		switch got, ok := words(false).Match(in, tc.source); {
		case ok != (tc.want != none):
			t.Errorf("%s: it reloads: %t", name, ok)
		case ok && got != tc.want:
			t.Errorf("%s: container %d, want %d", name, got, tc.want)
		}
		in.Annotations = annotations{configMaps: tc.source.Name, secrets: tc.source.Name, classes: tc.source.Name}
		switch got, ok := words(false).Match(in, tc.source); {
		case ok != (len(tc.regular) > 0 && tc.source.Name != ""):
			t.Errorf("%s: by name it reloads: %t", name, ok)
		case ok && got != max(tc.want, 0):
			t.Errorf("%s: by name, container %d, want %d", name, got, max(tc.want, 0))
		}
	}
}

// TestPullSecretsAreNoReference: nor is anything else outside of volumes and containers.
func TestPullSecretsAreNoReference(t *testing.T) {
	t.Parallel()
	in := workload(annotations{auto: "true"}, nil)
	in.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	in.Template.Spec.ServiceAccountName = "pull"
	in.Template.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(loadingAll(secret("pull")))}}
	if _, ok := words(true).Match(in, secret("pull")); ok {
		t.Error("it reloads")
	}
}
