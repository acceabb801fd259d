package podrefs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

var (
	all  = fingerprint.AllKeys()
	some = fingerprint.SomeKeys
	yes  = true
	no   = false
)

func local(name string) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: name}
}

// keysByID compares sets of keys by what they hold.
func keysByID() cmp.Option {
	return cmp.Comparer(func(a, b fingerprint.Keys) bool { return a.ID() == b.ID() })
}

func check(t *testing.T, reason string, spec *corev1.PodSpec, want []podrefs.Ref) {
	t.Helper()
	got := podrefs.Extract(spec)
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got, keysByID()); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", reason, diff)
	}
}

func volume(source corev1.VolumeSource) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: source}
}

func projected(sources ...corev1.VolumeProjection) corev1.Volume {
	return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
}

func items(keys ...string) []corev1.KeyToPath {
	list := make([]corev1.KeyToPath, len(keys))
	for i, key := range keys {
		list[i] = corev1.KeyToPath{Key: key, Path: "path/of/" + key}
	}
	return list
}

func TestExtractFromVolumes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		volume corev1.Volume
		want   []podrefs.Ref
	}{
		"ConfigMap": {
			reason: "a whole ConfigMap",
			volume: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app")}}),
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: all, Volume: true}},
		},
		"ConfigMapItems": {
			reason: "only the listed keys become files",
			volume: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app"), Items: items("b", "a")}}),
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("a", "b"), Volume: true}},
		},
		"ConfigMapOptional": {
			reason: "pods start without it",
			volume: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app"), Optional: &yes}}),
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: all, Optional: true, Volume: true}},
		},
		"ConfigMapOptionalFalse": {
			reason: "optional: false is required",
			volume: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app"), Optional: &no}}),
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: all, Volume: true}},
		},
		"Secret": {
			reason: "a Secret volume names its source secretName, not name",
			volume: volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db", Items: items("password"), Optional: &yes}}),
			want:   []podrefs.Ref{{Source: input.Secret("db"), Keys: some("password"), Optional: true, Volume: true}},
		},
		"Projected": {
			reason: "one volume of many sources",
			volume: projected(
				corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("app"), Items: items("a")}},
				corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: local("db"), Optional: &yes}},
				corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
			),
			want: []podrefs.Ref{
				{Source: input.ConfigMap("app"), Keys: some("a"), Volume: true},
				{Source: input.Secret("db"), Keys: all, Optional: true, Volume: true},
			},
		},
		"DriverCredentials": {
			reason: "credentials of a storage driver are read by the node, not by the pod",
			volume: volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "csi"}}}),
		},
		"Other": {
			reason: "other volumes name no source",
			volume: volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		},
		"NoName": {
			reason: "an empty name names nothing",
			volume: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tc.reason, &corev1.PodSpec{Volumes: []corev1.Volume{tc.volume}}, tc.want)
		})
	}
}

func keyOf(kind input.Kind, name, key string, optional *bool) corev1.EnvVar {
	from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(name), Key: key, Optional: optional}}
	if kind == input.KindSecret {
		from = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(name), Key: key, Optional: optional}}
	}
	return corev1.EnvVar{Name: "V", ValueFrom: from}
}

func allOf(kind input.Kind, name string, optional *bool) corev1.EnvFromSource {
	if kind == input.KindSecret {
		return corev1.EnvFromSource{Prefix: "P_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local(name), Optional: optional}}
	}
	return corev1.EnvFromSource{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local(name), Optional: optional}}
}

// TestExtractFromEnvironments tries each way into an environment in each kind of
// container: the three lists are walked by three loops.
func TestExtractFromEnvironments(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		env    []corev1.EnvVar
		from   []corev1.EnvFromSource
		want   []podrefs.Ref
	}{
		"ConfigMapKey": {
			reason: "one key in one variable",
			env:    []corev1.EnvVar{keyOf(input.KindConfigMap, "app", "mode", nil)},
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("mode"), Env: true}},
		},
		"SecretKeyOptional": {
			reason: "an optional key of a Secret",
			env:    []corev1.EnvVar{keyOf(input.KindSecret, "db", "password", &yes)},
			want:   []podrefs.Ref{{Source: input.Secret("db"), Keys: some("password"), Optional: true, Env: true}},
		},
		"KeysOfOneSource": {
			reason: "keys add up over variables",
			env:    []corev1.EnvVar{keyOf(input.KindSecret, "db", "user", nil), keyOf(input.KindSecret, "db", "password", nil)},
			want:   []podrefs.Ref{{Source: input.Secret("db"), Keys: some("user", "password"), Env: true}},
		},
		"ConfigMapFrom": {
			reason: "envFrom takes every key",
			from:   []corev1.EnvFromSource{allOf(input.KindConfigMap, "app", nil)},
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: all, Env: true}},
		},
		"SecretFromOptional": {
			reason: "envFrom may be optional",
			from:   []corev1.EnvFromSource{allOf(input.KindSecret, "db", &yes)},
			want:   []podrefs.Ref{{Source: input.Secret("db"), Keys: all, Optional: true, Env: true}},
		},
		"KeyAndFrom": {
			reason: "a key beside everything is everything",
			env:    []corev1.EnvVar{keyOf(input.KindConfigMap, "app", "mode", nil)},
			from:   []corev1.EnvFromSource{allOf(input.KindConfigMap, "app", nil)},
			want:   []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: all, Env: true}},
		},
		"PlainValue": {
			reason: "a plain variable names no source",
			env:    []corev1.EnvVar{{Name: "A", Value: "configmap/app"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		},
	}
	for name, tc := range cases {
		specs := map[string]*corev1.PodSpec{
			"Container":          {Containers: []corev1.Container{{Env: tc.env, EnvFrom: tc.from}}},
			"InitContainer":      {InitContainers: []corev1.Container{{Env: tc.env, EnvFrom: tc.from}}},
			"EphemeralContainer": {EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: tc.env, EnvFrom: tc.from}}}},
		}
		for place, spec := range specs {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				check(t, tc.reason, spec, tc.want)
			})
		}
	}
}

func TestExtractMergesPlaces(t *testing.T) {
	t.Parallel()
	mounted := volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app"), Items: items("file"), Optional: &yes}})
	cases := map[string]struct {
		reason string
		spec   corev1.PodSpec
		want   []podrefs.Ref
	}{
		"KeysAddUp": {
			reason: "a file here and a variable there: both keys count, and one place requires the source",
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{mounted},
				Containers: []corev1.Container{{Env: []corev1.EnvVar{keyOf(input.KindConfigMap, "app", "mode", nil)}}},
			},
			want: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("file", "mode"), Mixed: true, Env: true, Volume: true}},
		},
		"OptionalEverywhere": {
			reason: "optional only when no place requires it",
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{mounted},
				Containers: []corev1.Container{{Env: []corev1.EnvVar{keyOf(input.KindConfigMap, "app", "mode", &yes)}}},
			},
			want: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("file", "mode"), Optional: true, Env: true, Volume: true}},
		},
		"SameNameOtherKind": {
			reason: "a ConfigMap and a Secret of one name are two sources, sorted",
			spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
				allOf(input.KindSecret, "app", nil), allOf(input.KindConfigMap, "app", nil),
			}}}},
			want: []podrefs.Ref{
				{Source: input.ConfigMap("app"), Keys: all, Env: true},
				{Source: input.Secret("app"), Keys: all, Env: true},
			},
		},
		"ImagePullSecrets": {
			reason: "credentials for the registry never count",
			spec:   corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{local("registry")}},
		},
		"SubPath": {
			reason: "a single mounted path is never refreshed by the kubelet",
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{mounted},
				Containers: []corev1.Container{
					{VolumeMounts: []corev1.VolumeMount{{Name: "v"}}},
					{VolumeMounts: []corev1.VolumeMount{{Name: "v", SubPath: "file"}}},
				},
			},
			want: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("file"), Optional: true, Volume: true, SubPath: true}},
		},
		"SubPathExprInInit": {
			reason: "nor one by expression, in any container",
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{mounted},
				InitContainers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "v", SubPathExpr: "$(POD)"}}}},
			},
			want: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("file"), Optional: true, Volume: true, SubPath: true}},
		},
		"SubPathOfAnother": {
			reason: "another volume's sub-path says nothing about this one",
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{mounted},
				Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "other", SubPath: "file"}}}},
			},
			want: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: some("file"), Optional: true, Volume: true}},
		},
		"Nothing": {reason: "a pod without configuration"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tc.reason, &tc.spec, tc.want)
		})
	}
}
