package ledger

import (
	"strings"
	"testing"
	"time"
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
