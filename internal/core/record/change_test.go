package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

func stopped() record.Change {
	at := time.Date(2026, 11, 15, 3, 4, 5, 678_000_000, time.UTC)
	return record.Change{Version: "77ab01c9de", At: at, Level: 6, Failures: []record.Failure{
		{Version: "77ab01c9de", On: []string{"Deployment.apps/shop/a", "StatefulSet.apps/blog/db"}, Since: at.Add(time.Minute)},
	}}
}

func TestEncodeChange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change record.Change
		want   string
	}{
		"Everything": {"each part is a word", stopped(), "77ab01c9de level:6 at:2026-11-15T03:04:05.678Z since:2026-11-15T03:05:05.678Z failed:Deployment.apps/shop/a,StatefulSet.apps/blog/db"},
		"Stopped":    {"zero parts are left out", record.Change{Version: "77ab01c9de", Failures: []record.Failure{{Version: "77ab01c9de", On: []string{"a"}}}}, "77ab01c9de failed:a"},
		"Several": {
			"two copies of a shared source failed",
			record.Change{Version: "77ab01c9de", Failures: []record.Failure{
				{Version: "77ab01c9de", On: []string{"a"}}, {Version: "0b1c2d3e4f", On: []string{"b", "c"}, Since: stopped().At},
			}},
			"77ab01c9de failed:a also:0b1c2d3e4f,2026-11-15T03:04:05.678Z,b,c",
		},
		"Earlier": {
			"the next version began, and the one before failed",
			record.Change{Version: "77ab01c9de", Failures: []record.Failure{{Version: "0b1c2d3e4f", On: []string{"b"}, Since: stopped().At}}},
			"77ab01c9de also:0b1c2d3e4f,2026-11-15T03:04:05.678Z,b",
		},
		"Unknown": {"no version", record.Change{Level: 5}, "- level:5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.change.Encode(); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			got, err := record.DecodeChange(tc.want)
			if diff := cmp.Diff(tc.change, got); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestDecodeChangeRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text string }{
		"Empty":       {"it has no version", ""},
		"Entry":       {"a workload's entry is something else", `{"v":2,"id":"Deployment.apps/shop/a","uid":"4711","in":{}}`},
		"Level":       {"no number", "77ab01c9de level:many"},
		"Time":        {"no time", "77ab01c9de at:noon"},
		"Year":        {"it couldn't be written again", "77ab01c9de at:9999-12-31T23:59:59-01:00"},
		"TooMany":     {"more than MaxFailed", "77ab01c9de failed:1,2,3,4,5,6,7,8,9"},
		"NameMissing": {"a workload without a name", "77ab01c9de failed:1,,3"},
		"LongName":    {"a name that isn't cut", "77ab01c9de failed:" + strings.Repeat("n", 100)},
		"AlsoSame":    {"the same version twice", "77ab01c9de also:77ab01c9de,2026-11-15T03:04:05Z,a"},
		"AlsoTwice":   {"the same version twice", "77ab01c9de also:1,2026-11-15T03:04:05Z,a also:1,2026-11-15T03:04:05Z,b"},
		"AlsoNobody":  {"no workload failed", "77ab01c9de also:1,2026-11-15T03:04:05Z"},
		"AlsoNever":   {"no time", "77ab01c9de also:1,,a"},
		"AlsoMany":    {"more than MaxFailures", "77ab01c9de failed:a also:1,2026-11-15T03:04:05Z,a also:2,2026-11-15T03:04:05Z,a also:3,2026-11-15T03:04:05Z,a also:4,2026-11-15T03:04:05Z,a"},
		"LongText":    {"more than MaxChange", "77ab01c9de " + strings.Repeat("x", record.MaxChange)},
	} {
		if got, err := record.DecodeChange(tc.text); err == nil {
			t.Errorf("%s: %s, and it is read as %+v", name, tc.reason, got)
		}
	}
	if got, err := record.DecodeChange("77ab01c9de turn:3 level:2"); err != nil || got.Level != 2 {
		t.Errorf("a newer program's word: %+v, error %v; want the others", got, err)
	}
}

func ofVersion(version string) input.Change {
	return input.Change{ID: input.ConfigMap("ca"), Version: version}
}

// TestWithFailed: each workload once, and not more than fit.
func TestWithFailed(t *testing.T) {
	t.Parallel()
	at, version := time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC), ofVersion(strings.Repeat("7", 10))
	first := record.Change{At: at, Level: 1 << 62}.WithFailed(version, "Deployment.apps/shop/a", at)
	again := first.WithFailed(version, "Deployment.apps/shop/a", at.Add(time.Hour))
	if !again.Equal(first) || first.Version != version.Version || len(again.Failure(version).On) != 1 || !again.Failure(version).Since.Equal(at) {
		t.Errorf("the same workload again: %+v", again)
	}
	two, other := first.WithFailed(version, "Deployment.apps/shop/b", at.Add(time.Hour)).Failure(version), first.WithFailed(version, "Deployment.apps/shop/c", at).Failure(version)
	if !slices.Equal(two.On, []string{"Deployment.apps/shop/a", "Deployment.apps/shop/b"}) || !two.Since.Equal(at) || other.On[1] == two.On[1] {
		t.Errorf("another workload: %+v and %+v", two, other)
	}
	long, all := strings.Repeat("n", 253), record.Change{At: at, Level: first.Level}
	for v := range record.MaxFailures {
		version := ofVersion(fmt.Sprintf("%020d", v))
		for i := range 20 {
			id := fmt.Sprintf("Deployment.apps/%s/%s%d", long[:63], long, i)
			all = all.WithFailed(version, id, at)
			if got := all.Failure(version); got.HasFailed(id) != (i < record.MaxFailed) || len(got.On) > record.MaxFailed {
				t.Errorf("workload %d: %t among %d that failed", i, got.HasFailed(id), len(got.On))
			}
		}
	}
	if text := all.Encode(); len(text) > record.MaxChange {
		t.Errorf("it takes %d bytes", len(text))
	} else if got, err := record.DecodeChange(text); err != nil || !got.Equal(all) {
		t.Errorf("it is read as %+v, error %v", got, err)
	}
}

// TestSeveralVersionsFail: copies of a shared source fail with different versions at the same time. The failure of
// one doesn't end the stop of another.
func TestSeveralVersionsFail(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC)
	known := record.Change{}
	for n := range record.MaxFailures + 1 {
		known = known.WithFailed(ofVersion(fmt.Sprint("v", n)), fmt.Sprint("Deployment.apps/shop/", n), at.Add(time.Duration(n)*time.Minute))
		if n == 1 && (len(known.Failure(ofVersion("v0")).On) != 1 || len(known.Failure(ofVersion("v1")).On) != 1) {
			t.Errorf("two versions failed: %+v", known)
		}
	}
	if len(known.Failures) != record.MaxFailures || len(known.Failure(ofVersion("v0")).On) != 0 {
		t.Errorf("the first one isn't forgotten: %+v", known)
	}
	over := known.WithoutFailures(func(f record.Failure) bool { return f.Version != "v2" })
	if len(over.Failures) != 1 || len(over.Failure(ofVersion("v2")).On) != 1 || len(known.Failures) != record.MaxFailures {
		t.Errorf("after the others are over: %+v, and before: %+v", over, known)
	}
}

// TestVersionOnRecord: the keyed digest of a shared Secret isn't published.
func TestVersionOnRecord(t *testing.T) {
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
	} {
		got := record.VersionOf(tc.change)
		if (got == tc.change.Version) != tc.same || len(got) != len(tc.change.Version) {
			t.Errorf("%s: %s: it is recorded as %s", name, tc.reason, got)
		}
		c := record.Change{Version: got}
		if len(c.Failure(tc.change).On) > 0 {
			t.Errorf("%s: no workload has failed, and one is on record", name)
		}
		c = c.WithFailed(tc.change, "Deployment.apps/shop/a", time.Time{})
		other := tc.change
		other.Version = "0b1c2d3e4f"
		if one, none := c.Failure(tc.change), c.Failure(other); len(one.On) != 1 || one.Version != got || len(none.On) != 0 {
			t.Errorf("%s: failures of the version %+v, of another one %+v", name, one, none)
		}
	}
}

// FuzzDecodeChange: nothing panics, and what is accepted survives being written and read again.
func FuzzDecodeChange(f *testing.F) {
	f.Add(stopped().Encode())
	f.Add("- level:-5 at:0001-01-01T00:00:00Z failed:a")
	f.Add("77ab01c9de also:1,2026-11-15T03:04:05Z,a,b also:2,2026-11-15T03:04:05Z,a failed:c")
	f.Add("77ab01c9de  since:2026-11-15T03:04:05.000000001+23:59 x:y ")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := record.DecodeChange(text)
		if err != nil {
			return
		}
		written := c.Encode()
		again, err := record.DecodeChange(written)
		if err != nil || !again.Equal(c) || len(written) > record.MaxChange {
			t.Errorf("%q is written as %q, which reads otherwise: %v\n%s", text, written, err, cmp.Diff(c, again))
		}
	})
}

// TestLists: a failure is raised once, and not again when the record has no room for its name.
func TestLists(t *testing.T) {
	t.Parallel()
	version := input.Change{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}
	known := record.Change{Version: version.Version}
	for i := range record.MaxFailed {
		id := fmt.Sprint("Deployment.apps/shop/", i)
		if known.Lists(version, id) {
			t.Errorf("%s is listed before it failed", id)
		}
		if known = known.WithFailed(version, id, time.Time{}); !known.Lists(version, id) {
			t.Errorf("%s isn't listed", id)
		}
	}
	if !known.Lists(version, "Deployment.apps/shop/other") {
		t.Error("one more failure would be raised again and again")
	}
	version.Version = "0b1c2d3e4f"
	if known.Lists(version, "Deployment.apps/shop/0") {
		t.Error("the failure of another version is listed")
	}
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
