package images

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// An image that another writer restores this often within this time is contested.
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
	// Found is the newest wanted tag and its digest, zero when no registry has answered.
	Found Pin
	// DeliveredBefore is true when a revision shows that Found was delivered before the
	// controller stopped.
	DeliveredBefore bool
	Memo            Memo
	// Released is true when a user accepts a reverted, contested or quarantined image;
	// Reverted when the version on record was reverted.
	Released, Reverted bool
	// Observed is true when nothing is written: the version that would be delivered
	// counts as delivered. Enforced is true when another writer's digest doesn't stay.
	Observed, Enforced bool
	Trial              Trial
	Now                time.Time
}

// Template is the container in the pod template.
type Template struct {
	// Image is the text, and Has its parsed form, zero when it can't be parsed.
	Image string
	Has   tagspec.Reference
	// Shown is true when the template shows that our own patch delivered the image that was
	// found.
	Shown bool
	// Ours is true when the template shows that our own patch set its image.
	Ours bool
}

// Trial is the state of the rollout by which our own patch delivered the version on
// record.
type Trial struct {
	// On is true while the template is that patch's and the end of its rollout isn't
	// known; Mixed when a failure may have another cause.
	On, Mixed bool
	// Health is the rollout's health, and HasPods whether pods exist that prove it.
	Health  health.State
	HasPods bool
}

// Verdict is what to do for the image of one container, and why.
type Verdict struct {
	Standing input.Standing
	Reason   input.Reason
	// To is the image that the container should run.
	To Pin
	// Bar forbids the rollout, empty when nothing does.
	Bar input.Reason
	// Failed is true when the rollout of the digest on record failed.
	Failed bool
	// Proven is true when it is known how that rollout ended.
	Proven bool
	// Memo is remembered from now on, MemoIfDelivered instead when the verdict is carried
	// out.
	Memo, MemoIfDelivered Memo
}

// check is one step of the rule: it decides, or leaves the decision to the next.
type check func(Observation) (Verdict, bool)

// Decide compares the pod template with the image that the annotation requests. The first
// check that applies decides.
func Decide(o Observation) Verdict {
	o.Memo = o.memo()
	for _, c := range []check{
		failedHere,      // restore the previous digest
		unanswered,      // nothing to compare with
		inPlace,         // the template contains the digest
		accepted,        // a user wants the template as it is
		deliveredBefore, // we delivered it, and the process ended before that was on record
		tagMoved,        // another digest than the delivered one
		pinned,          // a digest that another writer chose
	} {
		if v, known := c(o); known {
			return o.complete(v)
		}
	}
	return o.complete(unpinned(o))
}

// memo is the memo before the verdict.
func (o Observation) memo() Memo {
	m := o.Memo
	if request := o.request(); m.Request != request {
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

// request names what the annotations ask for. A changed annotation is a new request.
func (o Observation) request() string {
	parts := []string{o.Request.Image.String(), o.Request.Platform}
	if o.Enforced {
		parts = append(parts, settings.Enforce)
	}
	return requestSum(parts...)
}

// complete adds the fields that every verdict includes.
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

// isHealthy: there are pods, all of them created from the template and available.
func (o Observation) isHealthy() bool { return o.Trial.Health == health.Done && o.Trial.HasPods }

// hasFailed: the rollout that delivered the digest on record failed.
func (o Observation) hasFailed() bool {
	return o.Trial.On && o.Trial.Health == health.Failed && o.Template.Has.Digest != "" && o.Template.Has.Digest == digestOf(o.Delivered)
}

// mayPutBack: Lockstep restores only a digest that was healthy here, and only when
// nothing else can have caused the failure.
func (o Observation) mayPutBack(m Memo) bool {
	return !o.Trial.Mixed && m.Healthy != (Pin{}) && m.Healthy.Digest != o.Template.Has.Digest
}

// failedHere restores the healthy digest, unless the tag has another digest to try.
func failedHere(o Observation) (Verdict, bool) {
	if !o.hasFailed() || !o.mayPutBack(o.Memo) || o.hasAnother() {
		return Verdict{}, false
	}
	return Verdict{Standing: input.Due, Reason: input.PutBack, To: o.Memo.Healthy}, true
}

// hasAnother: the tag now has a digest that wasn't tried.
func (o Observation) hasAnother() bool {
	return o.Found != (Pin{}) && !o.Memo.isBad(o.Found.Digest) && o.Found.Digest != o.Memo.Healthy.Digest
}

func unanswered(o Observation) (Verdict, bool) {
	return Verdict{Standing: input.Settled, Reason: input.Unresolved}, o.Found == (Pin{})
}

// inPlace: an unchanged digest doesn't cause a rollout, even when a newer tag has the
// same digest.
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

// isNew: it isn't known which version was delivered.
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
	return v, o.deliveredUnrecorded() || !o.isNew() && o.Delivered != versionOf(o.Found)
}

// deliveredUnrecorded: the process ended between our own patch and the record, which lists only
// that a version was due. No other writer chose the template's image.
func (o Observation) deliveredUnrecorded() bool {
	return o.Template.Ours && o.isNew() && !o.Delivered.IsZero()
}

// pinned: the tag's current digest is recorded as delivered, so the pin ends when the tag
// has another digest. An enforced image isn't left to another writer.
func pinned(o Observation) (Verdict, bool) {
	v := Verdict{Standing: input.Settled, Reason: input.Pinned, To: o.Found}
	switch {
	case o.Enforced:
		v = unpinned(o)
		v.Reason = input.Enforced
	case o.isNew():
		v.Standing = input.Record
	}
	return v, o.Template.Has.Digest != "" && o.Request.Image.Allows(o.Template.Has)
}

// unpinned: the annotation is the request. When another writer undoes the pin again and
// again, Lockstep stops, because two writers would otherwise overwrite each other without
// end.
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

// again lists when the image was pinned again, within the last hour.
func (o Observation) again() []time.Time {
	var recent []time.Time
	for _, at := range o.Memo.Again {
		if o.Now.Sub(at) < contestedWithin {
			recent = append(recent, at)
		}
	}
	return recent
}
