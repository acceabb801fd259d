package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

func failed() record.Failure {
	at := time.Date(2026, 11, 15, 3, 4, 5, 678_000_000, time.UTC)
	return record.Failure{On: []string{"Deployment.apps/shop/a", "StatefulSet.apps/blog/db"}, Since: at}
}

func TestEncodeFailure(t *testing.T) {
	t.Parallel()
	const want = "since:2026-11-15T03:04:05.678Z failed:Deployment.apps/shop/a,StatefulSet.apps/blog/db"
	if got := failed().Encode(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got, err := record.DecodeFailure(want + " newer:word")
	if diff := cmp.Diff(failed(), got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeFailureRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text string }{
		"Empty":       {"no workload failed", ""},
		"Nobody":      {"no workload failed", "since:2026-11-15T03:04:05Z"},
		"Entry":       {"a workload's entry is something else", `{"v":2,"id":"Deployment.apps/shop/a","uid":"4711","in":{}}`},
		"Time":        {"no time", "since:noon failed:a"},
		"Year":        {"it couldn't be written again", "since:9999-12-31T23:59:59-01:00 failed:a"},
		"TooMany":     {"more than MaxFailed", "failed:1,2,3,4,5,6,7,8,9"},
		"NameMissing": {"a workload without a name", "failed:1,,3"},
		"LongName":    {"a name that isn't cut", "failed:" + strings.Repeat("n", 100)},
		"LongText":    {"more than MaxFailure", "failed:a " + strings.Repeat("x", record.MaxFailure)},
	} {
		if got, err := record.DecodeFailure(tc.text); err == nil {
			t.Errorf("%s: %s, and it is read as %+v", name, tc.reason, got)
		}
	}
}

// TestFailureWith: each workload once, and not more than fit.
func TestFailureWith(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC)
	first, added := record.Failure{}.With("Deployment.apps/shop/a", at)
	again, twice := first.With("Deployment.apps/shop/a", at.Add(time.Hour))
	if !added || twice || !cmp.Equal(again, first) || !first.Since.Equal(at) {
		t.Errorf("the same workload again: %+v, added %t, %t", again, added, twice)
	}
	two, _ := first.With("Deployment.apps/shop/b", at.Add(time.Hour))
	other, _ := first.With("Deployment.apps/shop/c", at)
	if !slices.Equal(two.On, []string{"Deployment.apps/shop/a", "Deployment.apps/shop/b"}) || !two.Since.Equal(at) || other.On[1] == two.On[1] {
		t.Errorf("another workload: %+v and %+v", two, other)
	}
	long, all := strings.Repeat("n", 253), record.Failure{}
	for i := range 20 {
		id := fmt.Sprintf("Deployment.apps/%s/%s%d", long[:63], long, i)
		if all, added = all.With(id, at); added != (i < record.MaxFailed) || all.HasFailed(id) != added || len(all.On) > record.MaxFailed {
			t.Errorf("workload %d: added %t, among %d that failed", i, added, len(all.On))
		}
	}
	text := all.Encode()
	if got, err := record.DecodeFailure(text); err != nil || !cmp.Equal(got, all) {
		t.Errorf("%d bytes are read as %+v, error %v", len(text), got, err)
	}
}

// TestPublished: the keyed digest of a shared Secret isn't published.
func TestPublished(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change input.Change
		same   bool
	}{
		"ConfigMap":       {"templates show it", input.Change{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}, true},
		"Secret":          {"templates show it", input.Change{Namespace: "shop", ID: input.Secret("db"), Version: "77ab01c9de"}, true},
		"SharedConfigMap": {"templates show it", input.Change{ID: input.ConfigMap("ca"), Version: "77ab01c9de"}, true},
		"SharedSecret":    {"nothing shows it", input.Change{ID: input.Secret("ca"), Version: "77ab01c9de"}, false},
		"NoVersion":       {"there is nothing to show", input.Change{ID: input.Secret("ca")}, true},
	} {
		got := record.Published(tc.change)
		if (got == tc.change) != tc.same || len(got.Version) != len(tc.change.Version) || got.Subject() != tc.change.Subject() {
			t.Errorf("%s: %s: it is recorded as %+v", name, tc.reason, got)
		}
	}
}

// TestSeries: a series is read as it was written.
func TestSeries(t *testing.T) {
	t.Parallel()
	series := record.Series{Version: "77ab01c9de", State: damping.State{Level: 6, Last: failed().Since}}
	const want = "level:6 at:2026-11-15T03:04:05.678Z"
	if got := series.Encode(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, err := record.DecodeSeries("77ab01c9de", want+" newer:word"); got != series || err != nil {
		t.Errorf("it is read as %+v, error %v", got, err)
	}
	for _, text := range []string{"level:many", "level:6 at:noon", "at:9999-12-31T23:59:59-01:00"} {
		if got, err := record.DecodeSeries("77ab01c9de", text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// FuzzDecodeFailure: nothing panics, and what is accepted survives being written and read again.
func FuzzDecodeFailure(f *testing.F) {
	f.Add(failed().Encode())
	f.Add("since:0001-01-01T00:00:00Z failed:a level:-5 at:0001-01-01T00:00:00Z")
	f.Add(" since:2026-11-15T03:04:05.000000001+23:59 x:y  failed:a,b")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := record.DecodeSeries("1", text); err == nil {
			again, err := record.DecodeSeries("1", s.Encode())
			if err != nil || again.Encode() != s.Encode() {
				t.Errorf("%q is written as %q, which reads otherwise: %v", text, s.Encode(), err)
			}
		}
		failure, err := record.DecodeFailure(text)
		if err != nil {
			return
		}
		written := failure.Encode()
		again, err := record.DecodeFailure(written)
		if err != nil || again.Encode() != written || len(written) > record.MaxFailure {
			t.Errorf("%q is written as %q, which reads otherwise: %v", text, written, err)
		}
	})
}

// TestUsesImage: the stop of an image matters while a workload has that version or waits for it.
func TestUsesImage(t *testing.T) {
	t.Parallel()
	has := fingerprint.Version{Basis: "image", Sum: strings.Repeat("2", 64)}
	e := record.Entry{Inputs: map[input.ID]record.Delivered{
		input.Image("web"):     {Version: has, Due: "3333333333"},
		input.ConfigMap("app"): {Version: fingerprint.Version{Basis: "x", Sum: strings.Repeat("4", 64)}},
	}}
	for version, want := range map[string]bool{has.Short(): true, "3333333333": true, "4444444444": false, "1111111111": false, "": false} {
		if got := e.UsesImage(version); got != want {
			t.Errorf("%q: %t, want %t", version, got, want)
		}
	}
}
