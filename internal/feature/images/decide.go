package images

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// An image that another writer puts back this often within this time is contested.
const (
	contestedTimes  = 3
	contestedWithin = time.Hour
)

// Observation is everything that the verdict on the image of one container depends on.
type Observation struct {
	Request  settings.ImageRequest
	Template Template
	// Delivered is the version on record, zero when there is none.
	Delivered fingerprint.Version
	// Found is the newest wanted tag and its digest, zero when no registry has said.
	Found Pin
	// DeliveredBefore is true when a revision shows that Found was given before the controller
	// stopped.
	DeliveredBefore bool
	Memo            Memo
	// Released is true when a person accepts what was reverted, contested or
	// quarantined; Reverted when the version on record was reverted.
	Released, Reverted bool
	// Observed is true when nothing is written: what would be given counts as given.
	Observed bool
	Trial    Trial
	Now      time.Time
}

// Template is what the pod template says of the container.
type Template struct {
	// Image is the text, and Has what that means, zero when it cannot be read.
	Image string
	Has   tagspec.Reference
	// Shown is true when the template shows that a patch of ours gave it the image that was
	// found.
	Shown bool
	// Ours is true when the template shows that a patch of ours gave it what it has.
	Ours bool
}

// Trial is how the rollout goes by which a patch of ours gave the version on record.
type Trial struct {
	// On is true while the template is the one of that patch and it is not known how its
	// rollout ended; Mixed when something else may be to blame for a failure.
	On, Mixed bool
	// Health is how the rollout goes, and HasPods whether there are pods that prove it.
	Health  health.State
	HasPods bool
}

// Verdict is what has to happen for the image of one container, and why.
type Verdict struct {
	Standing input.Standing
	Reason   input.Reason
	// To is what the container is to run.
	To Pin
	// Bar forbids to move it, empty when nothing does.
	Bar input.Reason
	// Failed is true when the rollout of the digest on record failed.
	Failed bool
	// Proven is true when it is known how that rollout ended.
	Proven bool
	// Memo is what is remembered from now on, MemoIfGiven instead when the verdict is
	// carried out.
	Memo, MemoIfDelivered Memo
}

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(Observation) (Verdict, bool)

// Decide compares the pod template with what the annotation stands for. The first check
// that knows an answer gives it.
func Decide(o Observation) Verdict {
	o.Memo = o.memo()
	for _, c := range []check{
		failedHere,      // put the one before back
		unanswered,      // nothing to compare with
		inPlace,         // the template has the digest
		accepted,        // a person wants the template as it is
		deliveredBefore, // we gave it, and the process ended before that was on record
		tagMoved,        // another digest than the one that was given
		pinned,          // a digest that another writer chose
	} {
		if v, known := c(o); known {
			return o.complete(v)
		}
	}
	return o.complete(unpinned(o))
}

// memo is what is remembered before the verdict.
func (o Observation) memo() Memo {
	m := o.Memo
	if request := requestSum(o.Request.Image.String(), o.Request.Platform); m.Request != request {
		m = m.renewed()
		m.Request = request
	}
	if o.Released {
		m = m.renewed()
		m.Bad, m.Accepted = nil, o.Reverted
	}
	switch {
	case o.isHealthy() && o.Template.Has.Digest != "" && o.Request.Image.Allows(o.Template.Has):
		m.Healthy = Pin{Tag: o.Template.Has.Tag, Digest: o.Template.Has.Digest}
	case o.hasFailed() && o.mayPutBack(m):
		m = m.withBad(o.Template.Has.Digest)
	}
	return m
}

// complete adds what every verdict says.
func (o Observation) complete(v Verdict) Verdict {
	v.Memo, v.Failed, v.Proven = o.Memo, o.hasFailed(), o.Trial.On && o.isHealthy()
	if v.Bar == input.Contested {
		v.Memo.Contested = true
	}
	v.MemoIfDelivered = v.Memo
	switch {
	case o.Observed:
		v.MemoIfDelivered.Accepted = true
	case versionOf(v.To) != o.Delivered:
		v.MemoIfDelivered = v.Memo.renewed()
	case v.Standing == input.Due:
		v.MemoIfDelivered.Again = append(o.again(), o.Now.Truncate(time.Second))
		v.MemoIfDelivered.Accepted = false
	}
	return v
}

// isHealthy: every pod is made from the template and available, and there is one.
func (o Observation) isHealthy() bool { return o.Trial.Health == health.Done && o.Trial.HasPods }

// hasFailed: the rollout failed that gave the digest on record.
func (o Observation) hasFailed() bool {
	return o.Trial.On && o.Trial.Health == health.Failed && o.Template.Has.Digest != "" && o.Template.Has.Digest == digestOf(o.Delivered)
}

// mayPutBack: only to what was healthy here, and only when nothing else may be to blame.
func (o Observation) mayPutBack(m Memo) bool {
	return !o.Trial.Mixed && m.Healthy != (Pin{}) && m.Healthy.Digest != o.Template.Has.Digest
}

// failedHere puts the digest back that was healthy, unless another one is there to be
// tried.
func failedHere(o Observation) (Verdict, bool) {
	if !o.hasFailed() || !o.mayPutBack(o.Memo) || o.hasAnother() {
		return Verdict{}, false
	}
	return Verdict{Standing: input.Due, Reason: input.PutBack, To: o.Memo.Healthy}, true
}

// hasAnother: the tag has a digest by now that was not tried.
func (o Observation) hasAnother() bool {
	return o.Found != (Pin{}) && !o.Memo.isBad(o.Found.Digest) && o.Found.Digest != o.Memo.Healthy.Digest
}

func unanswered(o Observation) (Verdict, bool) {
	return Verdict{Standing: input.Settled, Reason: input.Unresolved}, o.Found == (Pin{})
}

// inPlace: an unchanged digest rolls nothing, also when a newer tag has the same.
func inPlace(o Observation) (Verdict, bool) {
	v := Verdict{Standing: input.Record, Reason: input.DeliveredByRollout, To: o.Found}
	switch {
	case o.Delivered == versionOf(o.Found):
		v.Standing, v.Reason = input.Settled, input.InStep
	case o.isNew():
		v.Reason = input.Baseline
	case o.Template.Shown:
		v.Reason = input.DeliveredBefore
	}
	return v, o.Template.Has.Digest == o.Found.Digest && o.Request.Image.Allows(o.Template.Has)
}

// isNew: it is not known what was given.
func (o Observation) isNew() bool {
	return o.Delivered.IsZero() || o.Delivered == o.Delivered.Unknown()
}

func accepted(o Observation) (Verdict, bool) {
	return Verdict{Standing: input.Settled, Reason: input.Accepted, To: o.Found}, o.Memo.Accepted && o.Delivered == versionOf(o.Found)
}

func deliveredBefore(o Observation) (Verdict, bool) {
	return Verdict{Standing: input.Record, Reason: input.DeliveredBefore, To: o.Found}, o.DeliveredBefore && o.Delivered != versionOf(o.Found)
}

func tagMoved(o Observation) (Verdict, bool) {
	v := Verdict{Standing: input.Due, Reason: input.Changed, To: o.Found}
	if o.Memo.isBad(o.Found.Digest) {
		v.Bar = input.Quarantined
	}
	return v, o.gaveUnrecorded() || !o.isNew() && o.Delivered != versionOf(o.Found)
}

// gaveUnrecorded: the process ended between a patch of ours and the record, which has only
// that there was something to give. No other writer chose what the template has.
func (o Observation) gaveUnrecorded() bool {
	return o.Template.Ours && o.isNew() && !o.Delivered.IsZero()
}

// pinned: what the tag has now is taken as given, so that the pin ends when it has
// another digest.
func pinned(o Observation) (Verdict, bool) {
	v := Verdict{Standing: input.Settled, Reason: input.Pinned, To: o.Found}
	if o.isNew() {
		v.Standing = input.Record
	}
	return v, o.Template.Has.Digest != "" && o.Request.Image.Allows(o.Template.Has)
}

// unpinned: the annotation is the request. Whoever undoes that again and again has
// another opinion, and two who write in turns end nothing.
func unpinned(o Observation) Verdict {
	v := Verdict{Standing: input.Due, Reason: input.Unpinned, To: o.Found}
	switch {
	case o.Memo.isBad(o.Found.Digest):
		v.Bar = input.Quarantined
	case o.Memo.Contested, len(o.again()) >= contestedTimes-1:
		v.Bar = input.Contested
	}
	return v
}

// again is when the image was pinned once more, within the last hour.
func (o Observation) again() []time.Time {
	var recent []time.Time
	for _, at := range o.Memo.Again {
		if o.Now.Sub(at) < contestedWithin {
			recent = append(recent, at)
		}
	}
	return recent
}
