package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	r = NewLegacy(nil, nil, LegacyOptions{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(s mirror.Sync) {
		known = s.Works()
		if got := r.value(key); got != sum {
			t.Errorf("the state of %s is %q, want %q", key, got, sum)
		}
	}})
	if err := r.mirror.Replace([]any{configMap("state", map[string]string{key: sum})}, "1"); err != nil || !known {
		t.Errorf("the state counts as listed: %t, error %v", known, err)
	}
}

// restored is an API server that holds a ConfigMap of a backup and counts from there.
type restored struct {
	client.WithWatch

	data    map[string]string
	version int
	patches []string
}

func (a *restored) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	cm := o.(*corev1.ConfigMap)
	body, err := p.Data(o)
	if err != nil {
		return err
	}
	a.patches = append(a.patches, string(body))
	var change struct{ Data map[string]*string }
	if err := json.Unmarshal(body, &change); err != nil {
		return err
	}
	for key, text := range change.Data {
		if text == nil {
			delete(a.data, key)
			continue
		}
		a.data[key] = *text
	}
	a.version++
	cm.ResourceVersion, cm.Data = strconv.Itoa(a.version), maps.Clone(a.data)
	return nil
}

// TestLegacyAfterARestore: an API server that was restored from a backup counts from
// lower numbers. A write is made once and not every second for ever, and what the
// backup does not have is written again.
func TestLegacyAfterARestore(t *testing.T) {
	t.Parallel()
	const app, db, lost = "v1.ConfigMap_app", "v1.Secret_db", "v1.ConfigMap_lost"
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	server := &restored{data: map[string]string{app: one, db: one}, version: 50}
	r := NewLegacy(server, nil, LegacyOptions{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }})
	before := configMap("state", map[string]string{app: one, db: two, lost: one})
	before.ResourceVersion = "1000"
	if err := r.mirror.Replace([]any{before}, "1000"); err != nil {
		t.Fatal(err)
	}
	r.state.set(app, &two)
	watched := func() *corev1.ConfigMap {
		now := configMap("state", maps.Clone(server.data))
		now.ResourceVersion = strconv.Itoa(server.version)
		return now
	}
	for range 10 { // seconds
		r.flush(t.Context(), time.Now())
		if err := r.mirror.Update(watched()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`{"data":{"` + app + `":"` + two + `"}}`, `{"data":{"` + lost + `":"` + one + `"}}`}
	if diff := cmp.Diff(want, server.patches); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
	checkShard(t, r.state, map[string]string{app: two, db: one, lost: one}, map[string]*string{})

	// From here on the numbers are compared as ever.
	server.data[db], server.version = two, server.version+1
	if err := r.mirror.Update(watched()); err != nil || r.value(db) != two {
		t.Errorf("a later change is read as %q, error %v", r.value(db), err)
	}
}

// TestRetrySpacesOut: a permission that is missing for good is not asked for over and
// over. An API server that is away is: it will be back.
func TestRetrySpacesOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	for want, err := range map[string]error{
		"1s 2s 4s 8s 16s 32s 1m0s 1m0s": errors.New("forbidden"),
		"1s 2s 4s 4s 4s 4s 4s 4s":       context.DeadlineExceeded,
	} {
		var r retry
		var waits []string
		for range 8 {
			r = r.failed(now, err)
			waits = append(waits, r.notBefore.Sub(now).String())
		}
		if got := strings.Join(waits, " "); got != want {
			t.Errorf("%v: waits %s, want %s", err, got, want)
		}
	}
}
