package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

const sum = "0123456789abcdef0123456789abcdef"

func version(sum string) fingerprint.Version {
	return fingerprint.Version{Basis: "1:*", Sum: sum}
}

func full() record.Entry {
	return record.Entry{
		ID: "Deployment.apps/shop/web", UID: "4711",
		Inputs: map[input.ID]record.Delivered{
			input.ConfigMap("app"): {Version: version(sum), Shown: input.Tracked(sum[:10]), From: "6", Due: "77ab01c9de", RevertedTo: "web-5f8c", Awaits: true, Sealed: true},
			input.Secret("db"):     {Version: version("absent")},
			input.Image("web"): {
				Version: fingerprint.Version{Basis: "sha256", Sum: sum + sum}, Shown: input.Mark{Digest: "sha256:" + sum + sum, Pinned: true},
				Trial: "3fa9c1d2", Mixed: true, Memo: "spec=1;bad=2",
			},
		},
		Pending: record.Pending{
			PendingSince: time.Date(2026, 11, 15, 3, 4, 5, 678, time.UTC),
			DelaySince:   time.Date(2026, 11, 15, 3, 4, 6, 0, time.UTC),
		},
		Coverage: record.Coverage{
			RolledOutAt: time.Date(2026, 11, 15, 3, 4, 0, 0, time.UTC),
			AsOf:        time.Date(2026, 11, 15, 3, 4, 2, 0, time.UTC),
			Accounted:   8,
			Template:    record.Template{Generation: 9, Sum: "3fa9c1d2"},
		},
		Released: 4711,
		Hold:     record.Hold{On: true, By: "incident 42", Undone: true},
		Searched: []string{"3fa9c1d2", "77ab01c9"},
		Presence: record.Presence{
			GoneAt:    time.Date(2026, 11, 15, 3, 5, 0, 0, time.UTC),
			Left:      true,
			Inherited: "3fa9c1d2",
		},
		Decision: record.Decision{
			Reason: input.Held, Message: `held by annotation lockstep.dev/hold ("release freeze")`,
			Since: time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC), Next: time.Date(2026, 11, 15, 3, 5, 5, 0, time.UTC),
		},
		Eviction: record.Eviction{Pods: 3},
	}
}

func TestEncodeDecode(t *testing.T) {
	t.Parallel()
	elsewhere := full()
	elsewhere.PendingSince = elsewhere.PendingSince.In(time.FixedZone("east", 3*3600))
	cases := map[string]struct {
		reason string
		entry  record.Entry
	}{
		"Full":      {"everything that is remembered survives", full()},
		"NoTimes":   {"zero times stay zero", record.Entry{ID: "a", UID: "b", Inputs: full().Inputs}},
		"NoReason":  {"a hold needs no text", record.Entry{ID: "a", UID: "b", Hold: record.NewHold("")}},
		"NoInputs":  {"a workload that follows nothing yet", record.Entry{ID: "a", UID: "b"}},
		"Elsewhere": {"a time is the same time in any zone", elsewhere},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := tc.entry.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.Decode(text)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !got.Equal(tc.entry) {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, cmp.Diff(tc.entry, got))
			}
		})
	}
}

// TestStoredForm pins the written form: state outlives the program that wrote it.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	const want = `{"v":2,"id":"Deployment.apps/shop/web","uid":"4711",` +
		`"in":{"configmap/app":"1:*:` + sum + ` 0123456789 from:6 due:77ab01c9de back:web-5f8c awaits sealed","image/web":"sha256:` + sum + sum + ` =sha256:` + sum + sum + ` trial:3fa9c1d2 mixed memo:spec=1;bad=2","secret/db":"1:*:absent"},` +
		`"pending":"2026-11-15T03:04:05.000000678Z","delay":"2026-11-15T03:04:06Z","moved":"2026-11-15T03:04:00Z","asOf":"2026-11-15T03:04:02Z","accounted":8,"template":"9:~0:3fa9c1d2","released":4711,"hold":{"by":"incident 42","undone":true},` +
		`"searched":["3fa9c1d2","77ab01c9"],"gone":"2026-11-15T03:05:00Z","left":true,"inherited":"3fa9c1d2",` +
		`"decision":{"reason":"Held","message":"held by annotation lockstep.dev/hold (\"release freeze\")","since":"2026-11-15T03:04:05Z","next":"2026-11-15T03:05:05Z"},"evictPods":3}`
	got, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the stored form changed (-want +got); raise the format if older programs would misread it\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		says   string
	}{
		"Empty":       {"nothing is no entry", "", "decode entry"},
		"Garbage":     {"not even JSON", "\x00\xff{", "decode entry"},
		"NotAnObject": {"JSON of another shape", `[1,2]`, "decode entry"},
		"NoFormat":    {"an entry of nobody knows which program", `{"id":"a"}`, "format 0"},
		"Older":       {"an entry in the format of an earlier program", `{"v":1,"id":"a"}`, "format 1"},
		"Newer":       {"a newer program's entry must not be misread", `{"v":3,"id":"a"}`, "format 3"},
		"BadInputs":   {"inputs of another shape", `{"v":2,"id":"a","in":[]}`, "decode entry"},
		"BadTime":     {"a time that is none", `{"v":2,"id":"a","pending":"yesterday"}`, "decode entry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.Decode(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%s: Decode gives %+v, error %v; want one that says %q", tc.reason, got, err, tc.says)
			}
			if !got.Equal(record.Entry{}) {
				t.Errorf("a refused text gives %+v", got)
			}
		})
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	e := full()
	c := e.Clone()
	c.Inputs[input.ConfigMap("app")] = record.Delivered{}
	if !e.Equal(full()) {
		t.Errorf("a change of the clone reached the entry: %+v", e)
	}
	empty := record.Entry{}.Clone()
	empty.Inputs[input.ConfigMap("app")] = record.Delivered{} // must not panic
}

func TestEqual(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*record.Entry)
		want   bool
	}{
		"Same":    {"nothing changed", func(*record.Entry) {}, true},
		"ID":      {"another workload", func(e *record.Entry) { e.ID = "x" }, false},
		"UID":     {"another workload of the same name", func(e *record.Entry) { e.UID = "x" }, false},
		"Version": {"another version", func(e *record.Entry) { e.Inputs[input.Secret("db")] = record.Delivered{Version: version(sum)} }, false},
		"Shown": {"another digest in the template", func(e *record.Entry) {
			e.Inputs[input.Secret("db")] = record.Delivered{Version: version("absent"), Shown: input.Tracked("x")}
		}, false},
		"Dropped": {"an input less", func(e *record.Entry) { delete(e.Inputs, input.Secret("db")) }, false},
		"Pending": {"a pending change", func(e *record.Entry) { e.PendingSince = time.Time{} }, false},
		"Hold":    {"a hold with the same text that has its annotation", func(e *record.Entry) { e.Hold.Undone = false }, false},
		"Pods":    {"another number of pods", func(e *record.Entry) { e.Eviction.Pods++ }, false},
		"From":    {"another revision before it", func(e *record.Entry) { e.Accounted++ }, false},
		"Moved":   {"a move", func(e *record.Entry) { e.RolledOutAt = e.RolledOutAt.Add(time.Second) }, false},
		"Foreign": {"a part of a newer program", func(e *record.Entry) { e.Foreign.Fields = map[string]json.RawMessage{"x": json.RawMessage("1")} }, false},
		"AsOf":    {"somebody's write", func(e *record.Entry) { e.AsOf = e.AsOf.Add(time.Second) }, false},
		"Zone":    {"the same moment", func(e *record.Entry) { e.RolledOutAt = e.RolledOutAt.In(time.FixedZone("west", -3600)) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := full().Clone()
			tc.change(&other)
			if got := full().Equal(other); got != tc.want {
				t.Errorf("%s: Equal is %t", tc.reason, got)
			}
		})
	}
}

// TestForeignPartsStay: a program that was rolled back must not take away what the
// newer one remembered, nor lose the rest of the entry over it.
func TestForeignPartsStay(t *testing.T) {
	t.Parallel()
	const known = `"1:*:` + sum + ` 0123456789"`
	cases := map[string]struct {
		reason string
		text   string
		parts  []string
	}{
		"Input":   {"an input of an unknown kind", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":` + known + `,"volume/data":{ "at" : "<1>" }}}`, []string{`"volume/data":{ "at" : "<1>" }`, `"configmap/app":` + known}},
		"Field":   {"an unknown field", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":` + known + `},"stops":[1,  "&"]}`, []string{`"stops":[1,  "&"]`, `"configmap/app":` + known}},
		"Word":    {"a further word of a version", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":"1:*:absent 12 from:7 x"}}`, []string{`"configmap/app":"1:*:absent 12 from:7 x"`}},
		"NoShown": {"a further word where the template shows nothing", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":"1:*:absent ~ from:7"}}`, []string{`"configmap/app":"1:*:absent ~ from:7"`}},
		"Shape":   {"an input of a known kind in another shape", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":` + known + `,"secret/db":{"sum": 1}}}`, []string{`"secret/db":{"sum": 1}`, `"configmap/app":` + known}},
		"Version": {"a version of another algorithm", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":` + known + `,"image/web":"sha512:ab"}}`, []string{`"image/web":"sha512:ab"`, `"configmap/app":` + known}},
		"Case":    {"a field that differs by case only", `{"v":2,"id":"a","uid":"b","in":{"configmap/app":` + known + `},"Moved":"yesterday"}`, []string{`"Moved":"yesterday"`}},
		"Image":   {"a pinned version has a mark", `{"v":2,"id":"a","uid":"b","in":{"image/web":"sha256:` + sum + sum + ` =sha256:01"}}`, []string{`"image/web":"sha256:` + sum + sum + ` =sha256:01"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := record.Decode(tc.text)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			changed := e.Clone()
			changed.PendingSince = time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC)
			changed.Inputs[input.Secret("new")] = record.Delivered{Version: version("absent")}
			for _, entry := range []record.Entry{e, changed} {
				text, err := entry.Encode()
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range tc.parts {
					if !strings.Contains(text, part) {
						t.Errorf("%s: %s is written as %s, without %s", tc.reason, tc.text, text, part)
					}
				}
			}
		})
	}
}

// TestOursReplacesForeign: a baseline stands in the place of what could not be read.
func TestOursReplacesForeign(t *testing.T) {
	t.Parallel()
	e, err := record.Decode(`{"v":2,"id":"a","uid":"b","in":{"configmap/app":"9:new:form"}}`)
	if err != nil || len(e.Inputs) != 0 || !e.IsKnown() {
		t.Fatalf("read as %+v, %v", e, err)
	}
	e.Inputs[input.ConfigMap("app")] = record.Delivered{Version: version("absent")}
	if text, err := e.Encode(); err != nil || text != `{"v":2,"id":"a","uid":"b","in":{"configmap/app":"1:*:absent"}}` {
		t.Errorf("written as %s, %v", text, err)
	}
}

// TestTakeEndsNotes: what was noted of one version says nothing of the next.
func TestTakeEndsNotes(t *testing.T) {
	t.Parallel()
	g := record.Delivered{Version: version("absent"), Rest: "from:7"}
	if g.Take(version("absent")); g.Rest != "from:7" {
		t.Errorf("the same version has %q", g.Rest)
	}
	if g.Take(version(sum)); g.Rest != "" || g.Version != version(sum) {
		t.Errorf("another version is %+v", g)
	}
}

// TestTooNew: such an entry is told from one that nobody can read, because it must not be
// replaced.
func TestTooNew(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"v":3,"id":"a"}`: true, `{"v":3,"in":["another","shape"]}`: true, `{"v":3,"pending":{"since":1}}`: true, `{"id":{"name":"a"},"v":3}`: true, `{"id":["a"],"v":4}`: true,
		`{"v":2,"id":"a"}`: false, `{"id":"a"}`: false, `{"v":"3"}`: false, `{"id":"a","v":2,"V":3}`: false, "2026-11-15T03:04:05Z": false,
	} {
		if got := record.IsTooNew(text); got != want {
			t.Errorf("%s is too new: %t", text, got)
		}
		if e, err := record.Decode(text); want && (err == nil || !e.Equal(record.Entry{})) {
			t.Errorf("the newer entry %s is read as %+v", text, e)
		}
	}
}

// FuzzDecode: nothing panics, and what is accepted survives being written and
// read again.
func FuzzDecode(f *testing.F) {
	text, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"v":2,"in":{"secret/a":"1:*:absent   x"}}`)
	f.Add(`{"v":2,"in":{"volume/a":{"x": "<"},"image/a":"sha256:absent =1 2 3"},"new":[1 , 2]}`)
	f.Add(`{"v":2,"pending":"0001-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := record.Decode(text)
		if err != nil {
			return
		}
		written, err := e.Encode()
		if err != nil {
			t.Fatalf("%q is read and cannot be written: %v", text, err)
		}
		again, err := record.Decode(written)
		if err != nil || !again.Equal(e) {
			t.Errorf("%q is written as %q, which reads otherwise: %v\n%s", text, written, err, cmp.Diff(e, again))
		}
	})
}
