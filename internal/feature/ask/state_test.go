package ask

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestOnRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		entry  record.Entry
		want   input.Reason
		since  time.Time
	}{
		"InStep":   {"nothing is decided against it", record.Entry{Coverage: record.Coverage{AsOf: at.Add(-time.Hour), RolledOutAt: at}}, input.InStep, at},
		"Decided":  {"the decision is told as it is", record.Entry{Decision: record.NewDecision(input.Held, "held", at, time.Time{})}, input.Held, at},
		"Conflict": {"the first patch met a conflict, so only that something is pending is on record", record.Entry{Pending: record.Pending{PendingSince: at}}, input.Changed, at},
		"TooNew":   {"its decision cannot be read", record.Entry{Unstored: record.Unstored{TooNew: true}}, input.RecordTooNew, time.Time{}},
		"NoTimes":  {"when is not known", record.Entry{}, input.InStep, time.Time{}},
		"Pendings": {"the decision goes before what is pending", record.Entry{Pending: record.Pending{PendingSince: at.Add(-time.Hour)}, Decision: record.NewDecision(input.Paused, "paused", at, time.Time{})}, input.Paused, at},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := onRecord(tc.entry)
			if got.Reason != string(tc.want) || got.From != FromRecord || (got.Since == nil) != tc.since.IsZero() || got.Since != nil && !got.Since.Equal(tc.since) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestControllerOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	leads := access.Leader{Name: "a", Renewed: now, Expires: now.Add(time.Minute)}
	refused := errors.New("refused")
	cases := map[string]struct {
		reason string
		heard  Heard
		state  string
		says   string // in the note, empty for no note
	}{
		"Running":      {"the lease is held", Heard{Leader: leads, Led: true, Version: "1", Program: "1"}, Running, ""},
		"Expired":      {"it was not renewed", Heard{Leader: access.Leader{Name: "a", Renewed: now.Add(-time.Hour), Expires: now.Add(-time.Minute)}, Led: true}, Down, "its last decisions"},
		"GivenUp":      {"the last one has ended", Heard{Leader: access.Leader{Renewed: now, Expires: now.Add(time.Second)}, Led: true}, Down, "its last decisions"},
		"OtherVersion": {"the two are not the same", Heard{Leader: leads, Led: true, Version: "2", Program: "1"}, Running, "version 2, and this program is 1"},
		"Never":        {"neither lease nor record", Heard{Own: Own{Namespace: "own"}}, Unknown, "no controller has run in namespace own"},
		"NoLease":      {"a record without a lease", Heard{Recorded: true, Own: Own{Namespace: "own"}}, Unknown, "without leader election"},
		"OldLease":     {"one without leader election has followed", Heard{Led: true, Leader: access.Leader{Name: "a", Renewed: now.Add(-time.Hour), Expires: now.Add(-time.Minute)}, WrittenAt: now}, Unknown, "newer than the lease"},
		"NotVisible":   {"no permission to the lease", Heard{LeaseProblem: refused}, Unknown, "not visible to you: refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ControllerOf(&tc.heard, now)
			if got.State != tc.state || (got.Note == "") != (tc.says == "") || !strings.Contains(got.Note, tc.says) || (got.Since != nil) != (tc.state == Down) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	kind := kube.Kinds()[0]
	header := func(name string) cluster.Header {
		return cluster.Header{
			Key: kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: name}, Kind: kind, UID: "uid-" + name,
			Annotations: map[string]string{settings.Reload: "auto"},
		}
	}
	web := header("web")
	told := func(reason input.Reason) map[string][]announce.Reported {
		return map[string][]announce.Reported{web.UID: {{Reason: string(reason), By: announce.Reporter}}}
	}
	entries := func(e record.Entry) map[kube.Key]record.Entry { return map[kube.Key]record.Entry{web.Key: e} }
	cases := map[string]struct {
		reason string
		known  Known
		want   string
		from   string
		needs  bool // events
	}{
		"Recorded":   {"the record tells all", Known{Entries: entries(record.Entry{UID: web.UID}), Events: told(input.Held)}, string(input.InStep), FromRecord, false},
		"Namesake":   {"an entry of an earlier one of its name says nothing", Known{Entries: entries(record.Entry{UID: "other"})}, NotOnRecord, FromEstimate, true},
		"Unreadable": {"without the record the newest event counts", Known{Events: told(input.Held)}, string(input.Held), FromEvent, true},
		"Warning":    {"without a decision among the events, a warning counts", Known{Events: map[string][]announce.Reported{web.UID: {{Reason: string(input.Unresolved), By: announce.Reporter, Action: announce.ActionWarn}}}}, string(input.Unresolved), FromEvent, true},
		"NoRoom":     {"what has no room on record is only told", Known{Entries: entries(record.Entry{UID: "other"}), Events: told(input.RecordFull)}, string(input.RecordFull), FromEvent, true},
		"ReloadOff":  {"the record is of before", Known{Entries: entries(record.Entry{UID: web.UID}), Serves: Serves{ReloadOff: true}}, string(input.ReloadOff), FromFlags, false},
		"NeverSeen":  {"it will not be looked at", Known{Entries: entries(record.Entry{}), Serves: Serves{ReloadOff: true}}, string(input.ReloadOff), FromFlags, true},
		"WasHeld":    {"nobody looks whether it still is", Known{Entries: entries(record.Entry{UID: web.UID, Decision: record.Decision{Reason: input.Held}}), Serves: Serves{ReloadOff: true}}, string(input.ReloadOff), FromFlags, false},
		"NoImage":    {"it asks for none", Known{Entries: entries(record.Entry{UID: web.UID}), Serves: Serves{ImagesOff: true}}, string(input.InStep), FromRecord, false},
		"NotWatched": {"whatever is on record", Known{Entries: entries(record.Entry{UID: web.UID, Decision: record.Decision{Reason: input.Held}}), Serves: Serves{Watches: func(ns string) bool { return ns != "shop" }}}, NotWatched, FromFlags, false},
		"KindOff":    {"whatever is on record", Known{Entries: entries(record.Entry{UID: web.UID, Decision: record.Decision{Reason: input.Held}}), Serves: Serves{Kinds: []kube.Kind{kube.CronJob()}}}, string(input.KindOff), FromFlags, false},
		"KindOn":     {"it is one of several", Known{Entries: entries(record.Entry{UID: web.UID}), Serves: Serves{Kinds: []kube.Kind{kube.CronJob(), kind}}}, string(input.InStep), FromRecord, false},
		"Watched":    {"it is another one that is not", Known{Entries: entries(record.Entry{UID: web.UID}), Serves: Serves{Watches: func(ns string) bool { return ns == "shop" }}}, string(input.InStep), FromRecord, false},
		"Old":        {"another event of what is not on record is about the past", Known{Entries: entries(record.Entry{UID: "other"}), Events: told(input.Held)}, NotOnRecord, FromEstimate, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.known.Workloads = []cluster.Header{web}
			rows := StatusOf(tc.known)
			if len(rows) != 1 || rows[0].State.Reason != tc.want || rows[0].State.From != tc.from || tc.known.NeedsEvents() != tc.needs {
				t.Errorf("%s: %+v, needs events: %t", tc.reason, rows, tc.known.NeedsEvents())
			}
		})
	}
}

// TestStatusInputs: what the controller still looks at stays in the row.
func TestStatusInputs(t *testing.T) {
	t.Parallel()
	e := record.Entry{Inputs: map[input.ID]record.Delivered{input.ConfigMap("app"): {}, input.Image("web"): {}}}
	cases := map[string]struct {
		reason input.Reason
		serves Serves
		want   []string
	}{
		"ImagesOff":  {input.ImagesOff, Serves{ImagesOff: true}, []string{"configmap/app"}},
		"ReloadOff":  {input.ReloadOff, Serves{ReloadOff: true}, []string{"image/web"}},
		"NotWatched": {NotWatched, Serves{Watches: func(string) bool { return false }}, nil},
		"KindOff":    {input.KindOff, Serves{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, i := range tc.serves.inputs(Summary{Namespace: "shop", State: Report{Reason: string(tc.reason), From: FromFlags}}, e) {
				got = append(got, i.Input)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestServes: what is on record may be about the inputs that are followed.
func TestServes(t *testing.T) {
	t.Parallel()
	held, inStep := Report{Reason: string(input.Held), From: FromRecord}, Report{Reason: string(input.InStep), From: FromRecord}
	for name, tc := range map[string]struct {
		serves          Serves
		state           Report
		sources, images bool
		want            input.Reason
	}{
		"ImagesHeld":     {Serves{ReloadOff: true}, held, true, true, input.Held},
		"ImagesInStep":   {Serves{ReloadOff: true}, inStep, true, true, input.ReloadOff},
		"SourcesHeld":    {Serves{ImagesOff: true}, held, true, true, input.Held},
		"BothOff":        {Serves{ReloadOff: true, ImagesOff: true}, held, true, true, input.ReloadOff},
		"OnlyImages":     {Serves{ReloadOff: true}, inStep, false, true, input.InStep},
		"ImagesOff":      {Serves{ImagesOff: true}, held, false, true, input.ImagesOff},
		"NothingIsKnown": {Serves{}, held, true, true, input.Held},
	} {
		if got := tc.serves.State(tc.state, kube.Key{Namespace: "shop"}, tc.sources, tc.images); got.Reason != string(tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServesPlan: what is not looked at is not moved.
func TestServesPlan(t *testing.T) {
	t.Parallel()
	elsewhere := Serves{Watches: func(string) bool { return false }}
	for name, tc := range map[string]struct {
		serves Serves
		would  Would
		want   Would
		reason input.Reason
	}{
		"NotWatched": {elsewhere, WouldRoll, WouldNothing, NotWatched},
		"Twice":      {elsewhere, WouldRollTwice, WouldRollByTemplate, NotWatched},
		"Itself":     {elsewhere, WouldRollByTemplate, WouldRollByTemplate, input.Reloaded},
		"ReloadOff":  {Serves{ReloadOff: true}, WouldEvict, WouldNothing, input.ReloadOff},
		"Watched":    {Serves{Watches: func(string) bool { return true }}, WouldRoll, WouldRoll, input.Reloaded},
		"KindOff":    {Serves{Kinds: []kube.Kind{kube.CronJob()}}, WouldRoll, WouldNothing, input.KindOff},
	} {
		if got := tc.serves.planned(PlannedWorkload{Would: tc.would, Reason: input.Reloaded}, kube.Key{GroupKind: kube.Deployment().GroupKind()}); got.Would != tc.want || got.Reason != tc.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestSettled: an event that tells of something that is over needs nobody's attention.
func TestSettled(t *testing.T) {
	t.Parallel()
	for reason, want := range map[input.Reason]bool{input.InStep: true, input.Reloaded: true, input.Following: true, input.Held: false, input.Undone: false, NotOnRecord: false} {
		if got := (Report{Reason: string(reason), Ends: input.Ends(reason)}).IsSettled(); got != want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}
