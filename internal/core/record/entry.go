// Package record defines what Lockstep records about one workload: the last delivered
// versions, and their written form.
package record

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Delivered is the last delivered version of one input.
type Delivered struct {
	Version fingerprint.Version
	// Shown is the mark that our patch set in the template, zero when none did.
	Shown input.Mark
	// From identifies which revisions the workload had before a rollout delivered this
	// version, empty when no rollout did, or nothing is known.
	From timeline.Origin
	// Was is the beginning of the version before this one, where From is known.
	Was string
	// Due is the beginning of the current version, while that is another one.
	Due string
	// Waits is since when the due version has waited for other workloads, for the first time: a window that
	// closed meanwhile doesn't begin the wait anew. It is zero before.
	Waits time.Time
	// RevertedTo is the revision that the workload was reverted to since, empty when it
	// wasn't.
	RevertedTo string
	// Between is true when pods started while another version was due, which they may have loaded.
	Between bool
	// Awaits is true when the template contains the version and pods of an older one are
	// left, which an operator has to delete.
	Awaits bool
	// Sealed is true when the version came from an immutable object; nodes keep a copy of
	// those.
	Sealed bool
	// Trial is the template by which our own patch delivered it, until the end of that
	// rollout is known. Mixed is true when that patch, or a later one, also delivered live
	// inputs, which may have caused a failure.
	Trial string
	Mixed bool
	// Stage is how the rollout that delivered it goes: StageRolling, StageProven, or empty
	// when no rollout of ours on trial did.
	Stage string
	// Memo is the family's own text about the input, without spaces. It outlives the
	// version.
	Memo string
	// Rest are a newer program's notes on this version, kept as they are.
	Rest string
}

// Stages of a delivered version.
const (
	// StageRolling: the rollout has a turn, and its end isn't known.
	StageRolling = "r"
	// StageProven: the workload was healthy with it.
	StageProven = "p"
)

// Mark is the mark in a template to which the version was delivered, as far as known: our own
// template shows all keys. Another writer's rollout delivers a version and may keep an older
// mark.
func (g Delivered) Mark() input.Mark {
	if g.Shown.Pinned || !g.Version.IsContentOf(fingerprint.AllKeys()) {
		return g.Shown
	}
	return input.Tracked(g.Version.Short())
}

// HadBefore reports whether pods of the current revision ran that version before this one, and
// kept running.
func (g Delivered) HadBefore(v fingerprint.Version, revisions []timeline.Revision) bool {
	return g.Was != "" && g.Was == v.Short() && slices.ContainsFunc(revisions, func(r timeline.Revision) bool { return r.Current && g.From.Is(r) })
}

// notes is the table of notes on a version, in the written order: a word and its value, or a
// word alone. A new note is one row.
func (g *Delivered) notes() [12]part {
	return [...]part{
		{"from:", (*string)(&g.From)},
		{"was:", &g.Was},
		{"due:", &g.Due},
		{"waits:", &g.Waits},
		{"back:", &g.RevertedTo},
		{"between", &g.Between},
		{"awaits", &g.Awaits},
		{"sealed", &g.Sealed},
		{"trial:", &g.Trial},
		{"mixed", &g.Mixed},
		{"stage:", &g.Stage},
		{"memo:", &g.Memo},
	}
}

// Take records the version as delivered. Notes on another version end with it.
func (g *Delivered) Take(v fingerprint.Version) {
	if g.Version != v {
		*g = Delivered{Shown: g.Shown, Memo: g.Memo}
	}
	g.Version = v
}

// Entry is the record of one workload. Entries are values: change a clone and store it.
type Entry struct {
	// ID names the workload for users and guards against a hash collision of storage
	// keys: "Deployment.apps/shop/web".
	ID string
	// UID of the workload; another UID under the same name is another workload.
	UID string
	// Inputs that were delivered.
	Inputs map[input.ID]Delivered
	Pending
	Coverage
	// Released is the resource version of the last release that was carried out, zero
	// before the first.
	Released int64
	// Hold is the hold on the workload when it was last reconciled.
	Hold Hold
	// Searched are digests of the resolved patterns. An input that matches one of them
	// and isn't on record was created since.
	Searched []string
	Presence
	// Decision is the last decision on a workload that isn't in step. If that situation
	// ended without our patch, it records since when; otherwise it is zero.
	Decision Decision
	Eviction Eviction
	Pace
	// Foreign are parts that a newer program wrote and this one doesn't understand. They
	// are written back unchanged.
	Foreign Foreign
	Unstored
}

// Pending is since when a change is due.
type Pending struct {
	// PendingSince is when the oldest change that has not been delivered was
	// first seen, zero when there is none.
	PendingSince time.Time
	// DelaySince is when the maximum delay of that change began to count: since then the
	// workload could have been rolled out. It is zero while something forbids that.
	DelaySince time.Time
}

// Coverage is up to which point the entry takes the workload's history into account.
type Coverage struct {
	// RolledOutAt is the API server's time of our last patch that the entry takes into
	// account, zero before the first.
	RolledOutAt time.Time
	// AsOf is the API server's time of the last write by any writer that it takes into
	// account, when versions were recorded as delivered without a patch; zero otherwise.
	AsOf time.Time
	// Accounted is the number of the last revision that the entry takes into account, zero
	// when its kind has none.
	Accounted int64
	// Template is the pod template that the entry takes into account, zero for a program that
	// doesn't compare templates.
	Template Template
}

// Presence is whether the workload still exists and asks to be followed, and whether it took
// over the pods of an earlier one.
type Presence struct {
	// GoneAt is when the workload was first seen to be gone, zero while it exists. Its
	// pods may have been orphaned for another workload of its name.
	GoneAt time.Time
	// Left is true when no setting asked for the workload anymore, and its namespace,
	// which may have asked, could not be read.
	Left bool
	// Inherited is the digest of the template that the workload was created with, when it
	// took over pods created from that template before, without restarting them. It is
	// empty as soon as there is another template.
	Inherited string
}

// Eviction is a running series of evictions, zero when none runs.
type Eviction struct {
	// For is the versions that the series delivers; Since is the API server's time of that
	// decision. Younger pods already run these versions.
	For   string
	Since time.Time
	// Pods is how many pods there were then, zero if the workload sets its number of
	// replicas.
	Pods int
}

// Pace is how our rollouts of the workload follow each other.
type Pace struct {
	// Turn is the rollout whose end isn't known, or the one that a pending change prepares.
	Turn spread.Turn
	// Again counts rollouts that followed each other too closely to be ordinary.
	Again int
}

// Unstored are the parts of an entry that aren't stored.
type Unstored struct {
	// TakenOver is true when the entry on record belongs to another workload, whose pods this
	// one took over.
	TakenOver bool
	// Lost is true when there was an entry that cannot be read.
	Lost bool
	// TooNew is true when the entry is in a format that this program can't read. It must
	// not be replaced.
	TooNew bool
	// WrittenAt is when the API server had stored the entry, by its clock: the last write of the record
	// that holds it, and Version its resource version then. Both are zero until then, and when that isn't known.
	WrittenAt time.Time
	Version   uint64
}

// part is a stored field of an entry, or a note on a version: its written name, and a pointer
// to its value.
type part struct {
	name string
	at   any
}

// alwaysWritten is the number of parts, from the first, that are written even when they are zero.
const alwaysWritten = 2

// parts is the table of stored fields, in the written order. A new field is one row: Encode,
// Decode, Equal and the set of known names follow from it. The compiler checks the length of the
// array, which keeps Equal free of allocations.
func (e *Entry) parts() [21]part {
	return [...]part{
		{"id", &e.ID},
		{"uid", &e.UID},
		{"in", inputs{e}},
		{"pending", &e.PendingSince},
		{"delay", &e.DelaySince},
		{"moved", &e.RolledOutAt},
		{"asOf", &e.AsOf},
		{"accounted", &e.Accounted},
		{"template", &e.Template},
		{"released", &e.Released},
		{"hold", &e.Hold},
		{"searched", &e.Searched},
		{"gone", &e.GoneAt},
		{"left", &e.Left},
		{"inherited", &e.Inherited},
		{"decision", &e.Decision},
		{"evictFor", &e.Eviction.For},
		{"evictSince", &e.Eviction.Since},
		{"evictPods", &e.Eviction.Pods},
		{"turn", &e.Turn},
		{"again", &e.Again},
	}
}

// Template names a pod template, as it was in one generation of its object.
type Template struct {
	Generation int64
	// Object is the beginning of the UID of the object that lends it, empty for the workload's own
	// template. Generations of different objects can't be compared.
	Object string
	// Sum is its digest. While pods are created from another revision, because the rollout
	// was aborted, that revision follows after Instead.
	Sum string
	// Number is its revision's, zero when unknown. A template that was replaced and
	// restored has another one.
	Number int64
	// Made is true when the workload was seen with that number. A number that the
	// controller was about to assign may have gone to another template.
	Made bool
}

// Instead separates a template's digest from the revision that pods are created from
// instead.
const Instead = "!"

// IsOlder reports whether the template certainly existed before the other one.
func (t Template) IsOlder(other Template) bool {
	return t.Object == other.Object && t.Generation < other.Generation
}

// isEarlier reports whether the other one, the workload's template now, came later. Another
// object's template replaces this one.
func (t Template) isEarlier(other Template) bool {
	return t != Template{} && (t.Object != other.Object || t.Generation < other.Generation)
}

// IsReplacedBy reports whether the other one came later: another template, or the same one
// after another, which its number shows. An abort doesn't replace a template, and neither
// does the abort's end. Templates of the same generation are the same, and so are those
// seen with the same number, even though another program may compute another digest.
func (t Template) IsReplacedBy(other Template) bool {
	isBack, stays := t.Number > 0 && other.Number > t.Number, t.Made && other.Made && t.Number == other.Number
	return t.isEarlier(other) && (t.digest() != other.digest() && !stays || isBack)
}

// MayBeReplacedBy reports whether the other one came later and is the same template, but perhaps after another one: no
// number shows that there was none. The first number shows it.
func (t Template) MayBeReplacedBy(other Template) bool {
	return t.isEarlier(other) && t.digest() == other.digest() && (t.Number == 0 && other.Number != 1 || other.Number == 0)
}

// IsOther reports whether the other one came later, and is another template.
func (t Template) IsOther(other Template) bool {
	return t.isEarlier(other) && t.digest() != other.digest()
}

// IsSame reports whether both are the same template in the same use, whatever else was
// written.
func (t Template) IsSame(other Template) bool {
	return t.Sum == other.Sum && t.Number == other.Number
}

// IsStopped reports whether the other one differs in the revision that pods are created
// from instead.
func (t Template) IsStopped(other Template) bool {
	return t != Template{} && t.instead() != other.instead()
}

func (t Template) digest() string {
	digest, _, _ := strings.Cut(t.Sum, Instead)
	return digest
}

func (t Template) instead() string {
	_, instead, _ := strings.Cut(t.Sum, Instead)
	return instead
}

// Foreign are the parts of an entry that this program does not understand: inputs of
// unknown kinds and unknown fields, as written.
type Foreign struct {
	Inputs map[string]json.RawMessage
	Fields map[string]json.RawMessage
}

// IsEmpty reports whether there is nothing foreign.
func (f Foreign) IsEmpty() bool {
	return len(f.Inputs)+len(f.Fields) == 0
}

func equalTexts(a, b map[string]json.RawMessage) bool {
	return maps.EqualFunc(a, b, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// IsKnown reports whether the workload was followed before, whether or not this program
// can read its delivered versions.
func (e Entry) IsKnown() bool {
	return len(e.Inputs) > 0 || e.Lost || e.TooNew || !e.Foreign.IsEmpty()
}

// HasTemplate reports whether the entry lists which pod template it takes into account.
func (e Entry) HasTemplate() bool { return e.Template != Template{} }

// UsesImage reports whether the workload has this version of an image, or waits for it.
func (e Entry) UsesImage(version string) bool {
	for id, given := range e.Inputs {
		if id.Kind == input.KindImage && (given.Version.Short() == version || given.Due != "" && given.Due == version) {
			return true
		}
	}
	return false
}

// Clone returns a copy that doesn't share mutable parts.
func (e Entry) Clone() Entry {
	e.Inputs = maps.Clone(e.Inputs)
	if e.Inputs == nil {
		e.Inputs = map[input.ID]Delivered{}
	}
	e.Searched = slices.Clone(e.Searched)
	e.Foreign = Foreign{Inputs: maps.Clone(e.Foreign.Inputs), Fields: maps.Clone(e.Foreign.Fields)}
	return e
}

// Equal reports whether both are equal.
func (e Entry) Equal(other Entry) bool {
	theirs := other.parts()
	for i, p := range e.parts() {
		if !same(p.at, theirs[i].at) {
			return false
		}
	}
	return e.TakenOver == other.TakenOver && equalTexts(e.Foreign.Fields, other.Foreign.Fields)
}
