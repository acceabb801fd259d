package podrefs_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

func TestNamedAddsWhatOthersReadForThePod(t *testing.T) {
	t.Parallel()
	spec := &corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{local("registry"), local("")},
		Volumes: []corev1.Volume{
			volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("app")}}),
			volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "registry"}}),
			volume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}}),
			volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}),
		},
	}
	want := []input.ID{input.ConfigMap("app"), input.Secret("azure"), input.Secret("registry")}
	if diff := cmp.Diff(want, podrefs.Named(spec)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
}

// TestNamedKnowsEveryDriver fills each kind of volume in turn: whichever has a
// reference to a Secret must be known.
func TestNamedKnowsEveryDriver(t *testing.T) {
	t.Parallel()
	reference := reflect.TypeFor[*corev1.LocalObjectReference]()
	checked := 0
	for i := range reflect.TypeFor[corev1.VolumeSource]().NumField() {
		var v corev1.Volume
		field := reflect.ValueOf(&v.VolumeSource).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		for _, ref := range field.Elem().Fields() {
			if ref.Type() != reference {
				continue
			}
			ref.Set(reflect.ValueOf(&corev1.LocalObjectReference{Name: "secret"}))
			got := podrefs.Named(&corev1.PodSpec{Volumes: []corev1.Volume{v}})
			if diff := cmp.Diff([]input.ID{input.Secret("secret")}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", field.Type(), diff)
			}
			checked++
		}
	}
	if checked < 8 {
		t.Errorf("only %d kinds of volumes have a reference", checked)
	}
}
