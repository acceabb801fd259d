package configs

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Observation is everything that the verdict on one source of one workload
// depends on.
type Observation struct {
	// Given is the version on record, zero when there is none.
	Given fingerprint.Version
	// Current is the version that exists, or absent.
	Current fingerprint.Version
	// Required is true when pods cannot start without the source.
	Required bool
	// New is true when the source was made with its current content.
	New bool

	// Content bounds the source's last change; Template the workload's last
	// template; Followed the moment since which the workload asks to be followed.
	Content, Template, Followed timeline.Bounds

	// RecordedVersion and ShownVersion are the digests that our last patch put
	// into the template, and that the template shows now; CurrentShown is the one
	// that a patch would put there. Empty when there is none.
	RecordedVersion, ShownVersion, CurrentShown string
	// Unwritten is true when a patch of ours that is not on record wrote what the
	// template shows.
	Unwritten bool

	// Away is what is known of changes that nobody watched, nil when the source
	// changed before our eyes or has not changed.
	Away *Away
}

// Away is what the API server could tell of the time when nobody was watching.
type Away struct {
	// MadeMeanwhile is true for a workload that was made while nobody watched.
	MadeMeanwhile bool
	// AskedAt is when somebody asked for the workload to be followed, zero when that
	// cannot be told.
	AskedAt time.Time
	// SourceCreated and DataWrittenAt are the source's times.
	SourceCreated, DataWrittenAt time.Time
	// RevisionCreated is when the workload's newest revision was made, zero when
	// unknown.
	RevisionCreated time.Time
	// NewerRevisionShows is true when a revision that is newer than our record, or
	// a template that we wrote since, shows the current version.
	NewerRevisionShows bool
}

// Verdict is what has to happen for one source, and why.
type Verdict struct {
	Standing input.Standing
	Reason   input.Reason
}

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(Observation) (Verdict, bool)

// Decide compares what a workload was given with what exists. The first check
// that knows an answer gives it.
func Decide(o Observation) Verdict {
	for _, c := range []check{
		sourceMissing,      // nobody is restarted onto a missing source
		firstSight,         // nothing on record: take a baseline
		measuredOtherwise,  // other keys, other algorithm: take a baseline
		equal,              // given what exists
		requiredArrived,    // the pods could not have started before
		rolledOutSince,     // somebody else's rollout loaded it
		deliveredUnwritten, // we delivered it and could not write that down
	} {
		if v, known := c(o); known {
			return v
		}
	}
	return Verdict{input.Due, input.Changed}
}

// sourceMissing keeps the record as it is: a source that comes back with the
// same content is no change, one with another content is. Only a workload that
// is new to us is recorded as one that started without the source.
func sourceMissing(o Observation) (Verdict, bool) {
	if !o.Current.IsAbsent() {
		return Verdict{}, false
	}
	if o.Given.IsZero() {
		return Verdict{input.Record, input.Missing}, true
	}
	return Verdict{input.Settled, input.Missing}, true
}

// firstSight takes what exists as given, unless the source certainly changed
// after the workload took up its template and asked to be followed. A required
// source that was made after it is no change: the pods waited for it, and only we
// look at the two so late that it exists already.
func firstSight(o Observation) (Verdict, bool) {
	if !o.Given.IsZero() {
		return Verdict{}, false
	}
	later := o.Content.After(o.Template.Later(o.Followed))
	if later && o.Required && o.New {
		return Verdict{input.Record, input.Arrived}, true
	}
	if later || o.changedAfterUnseenStart() {
		return Verdict{input.Due, input.Changed}, true
	}
	return Verdict{input.Record, input.Baseline}, true
}

// changedAfterUnseenStart is for a workload that was made while nobody watched:
// its source existed when its revision was made, and was written afterwards, and
// after somebody had asked for it to be followed. In doubt nobody is restarted.
func (o Observation) changedAfterUnseenStart() bool {
	a := o.Away
	if a == nil || !a.MadeMeanwhile || a.RevisionCreated.IsZero() || a.AskedAt.IsZero() {
		return false
	}
	return a.SourceCreated.Before(a.RevisionCreated) && a.DataWrittenAt.After(a.RevisionCreated) && a.DataWrittenAt.After(a.AskedAt)
}

func measuredOtherwise(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.NewBasis}, !o.Given.Comparable(o.Current)
}

// equal, unless the pods were given something else meanwhile and the content has
// gone back since.
func equal(o Observation) (Verdict, bool) {
	if o.Given != o.Current || o.gaveAnother() {
		return Verdict{}, false
	}
	if o.undone() {
		return Verdict{input.Settled, input.Undone}, true
	}
	return Verdict{input.Settled, input.InStep}, true
}

// gaveAnother: we delivered another version and could not write that down.
func (o Observation) gaveAnother() bool {
	return o.Unwritten && o.ShownVersion != "" && o.ShownVersion != o.CurrentShown
}

// lastGiven is what the pods were given last. Of what is not on record only the
// short digest is known.
func (o Observation) lastGiven() fingerprint.Version {
	if o.gaveAnother() {
		return fingerprint.Version{Basis: o.Current.Basis, Sum: o.ShownVersion}
	}
	return o.Given
}

// undone: our patch showed one version, and the template now shows another that
// is not the current one either. A template that shows none was rewritten by a
// deployment tool, which takes nothing back.
func (o Observation) undone() bool {
	return o.RecordedVersion != "" && o.ShownVersion != "" &&
		o.ShownVersion != o.RecordedVersion && o.ShownVersion != o.CurrentShown
}

func requiredArrived(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.Arrived}, o.Given.IsAbsent() && o.Required
}

// rolledOutSince: the template was certainly written after the source, so the
// pods of that rollout read what exists. This makes a deploy of ConfigMap and
// template together one rollout.
func rolledOutSince(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredByRollout}, o.Template.After(o.Content)
}

func deliveredUnwritten(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredBefore}, o.Away != nil && o.Away.NewerRevisionShows
}
