package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
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

// TestKnownStateIsAdopted: as soon as the state counts as listed, what it says is
// found. A decision before would take what exists for delivered.
func TestKnownStateIsAdopted(t *testing.T) {
	t.Parallel()
	const key, sum = "v1.ConfigMap_app", "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	known := false
	var r *Legacy
	r = NewLegacy(nil, nil, LegacyOptions{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(s mirror.Status) {
		known = s.Works()
		if got := r.value(key); got != sum {
			t.Errorf("the state of %s is %q, want %q", key, got, sum)
		}
	}})
	if err := r.mirror.Replace([]any{configMap("state", map[string]string{key: sum})}, "1"); err != nil || !known {
		t.Errorf("the state counts as listed: %t, error %v", known, err)
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
