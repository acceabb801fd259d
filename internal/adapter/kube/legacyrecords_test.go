package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/legacy"
)

func TestSourceOfKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"v1.ConfigMap_a.b-c":      "configmap/a.b-c",
		"v1.Secret_tls.sha256":    "secret/tls",
		"v1.ConfigMap_with_under": "configmap/with_under",
		"v1.Pod_a":                "",
		"apps_v1.Deployment_a":    "",
		"v1.ConfigMap":            "",
		"note":                    "",
	} {
		id, ok := sourceOfKey(key)
		if ok != (want != "") || ok && id.String() != want {
			t.Errorf("sourceOfKey(%q) = %s, %t, want %q", key, id, ok, want)
		}
	}
}

// TestRetrySpacesOut: a right that is missing for good is not asked for over and
// over.
func TestRetrySpacesOut(t *testing.T) {
	t.Parallel()
	var r retry
	now := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	var waits []string
	for range 8 {
		r = r.failed(now)
		waits = append(waits, r.notBefore.Sub(now).String())
	}
	if got, want := strings.Join(waits, " "), "1s 2s 4s 8s 16s 32s 1m0s 1m0s"; got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
}

// TestSourceKeepsNoContent: kubectl leaves a copy of the content in an annotation.
func TestSourceKeepsNoContent(t *testing.T) {
	t.Parallel()
	o := metav1.ObjectMeta{Namespace: "shop", Name: "a", Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"data":{"password":"hunter2"}}`,
		legacy.SecretAnnotation:            "kept",
	}}
	hashers := Hashers{Legacy: true}
	for _, object := range []any{
		&corev1.Secret{ObjectMeta: o, Data: map[string][]byte{"password": []byte("hunter2")}},
		&corev1.ConfigMap{ObjectMeta: o, Data: map[string]string{"password": "hunter2"}, BinaryData: map[string][]byte{"b": []byte("hunter2")}},
	} {
		s, err := hashers.slimSource(object, legacy.Words{})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v", *s)
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%+v", []byte("hunter2"))) {
			t.Errorf("content is kept of %T: %s", object, text)
		}
		if s.ID.Name != "a" || s.Legacy == "" || s.Annotations[legacy.SecretAnnotation] != "kept" {
			t.Errorf("what is needed is not kept of %T: %s", object, text)
		}
	}
}
