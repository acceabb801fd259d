package kube

import (
	"crypto/sha256"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// steady is how long a workload has to be done so losing a pod counts as new work for its
// controller. Pods that crash soon after they become available don't last that long.
const steady = time.Minute

// reach is how far a rollout has come at best. A pod that becomes available and crashes again
// and again doesn't take it further.
type reach struct {
	known                     bool
	older, updated, available int32
}

// Stalled is how long ago the rollout of the last Lockstep patch began or last progressed, zero
// when another writer made the template.
func (w *Workload) Stalled(now time.Time) time.Duration {
	switch {
	case w.RolledOutAt.IsZero():
		return 0
	case w.ProgressedAt.After(w.RolledOutAt):
		return now.Sub(w.ProgressedAt)
	}
	return now.Sub(w.RolledOutAt)
}

// Progress is how the workload stands, for the judgement of a rollout. The template is the
// workload's own even while a Rollout is aborted: the abort ends the rollout as failed.
func (w *Workload) Progress(now time.Time) spread.Progress {
	return spread.Progress{
		Template: sumName(w.templateSum), Health: health.Of(w.TemplateStatus(), w.Stalled(now)).State, HasPods: !w.Status.Counted || w.Status.Counts.Wanted > 0,
		StateSince: w.StateSince, ProgressedAt: w.ProgressedAt, Now: now,
	}
}

// SameHealth reports whether the state of health is the same, for the same template as far as
// its controller has seen it, and with the same deadline.
func (w *Workload) SameHealth(old *Workload) bool {
	if before, now := old.Status.Deadline, w.Status.Deadline; before > 0 && now > 0 && before != now {
		return false
	}
	return w.Status.BorrowedGeneration == old.Status.BorrowedGeneration &&
		health.Of(w.TemplateStatus(), 0).State == health.Of(old.TemplateStatus(), 0).State
}

// TemplateStatus is the status of the pod template's rollout. A controller that has acted on the
// template still has to see every other change, such as one of an annotation, which doesn't make
// the pods less healthy.
func (w *Workload) TemplateStatus() health.Status {
	s := w.Status.Status
	s.Observed = s.Observed || w.reached.known
	return s
}

// abort is the abort of a template, and what its controller calls that template.
type abort struct {
	sum  [sha256.Size]byte
	hash string
}

// leaveAbort makes a status count as one about an earlier template while it still shows the abort of
// that. Argo Rollouts reports that it has seen a new template before it begins with it.
func (w *Workload) leaveAbort(old *Workload) {
	if old.Status.Aborted && w.templateSum != old.templateSum {
		w.left = &abort{old.templateSum, old.Status.PodHash}
	}
	switch {
	case w.left == nil:
	case w.Status.PodHash == w.left.hash && w.templateSum != w.left.sum:
		w.Status.Observed, w.Status.Aborted = false, false
	default:
		w.left = nil
	}
}

// firstProgress sets the times for a copy without an earlier one. The rollout can't have
// progressed since the last write of its status.
func (w *Workload) firstProgress(how mirror.Arrival) {
	w.StateSince, w.ProgressedAt = how.At, how.At
	if w.WrittenAt.Before(how.At) {
		w.ProgressedAt = w.WrittenAt
	}
	// A status that nobody has written since is the same. The time is a second coarse.
	if at := w.WrittenAt.Add(time.Second); !w.WrittenAt.IsZero() && at.Before(how.At) {
		w.StateSince = at
	}
	w.reached, _ = w.reached.by(w.Status.Status)
}

// followProgress compares the status with the earlier copy's.
func (w *Workload) followProgress(old *Workload, how mirror.Arrival) {
	if w.isAnotherTemplate(old) {
		w.StateSince, w.ProgressedAt, w.reached = how.At, how.At, reach{}
	}
	if w.Status != old.Status {
		before := health.Of(old.TemplateStatus(), 0).State
		if health.Of(w.TemplateStatus(), 0).State != before {
			if before == health.Done && how.At.Sub(w.StateSince) >= steady {
				w.reached = reach{}
			}
			w.StateSince = how.At
		}
	}
	var farther bool
	if w.reached, farther = w.reached.by(w.Status.Status); farther {
		w.ProgressedAt = how.At
	}
}

// isAnotherTemplate reports whether the pod template is another one than the earlier copy's. A
// workload with a borrowed template shows it by its status only.
func (w *Workload) isAnotherTemplate(old *Workload) bool {
	return w.templateSum != old.templateSum || w.Borrows != old.Borrows || w.Status.PodHash != old.Status.PodHash || w.Status.BorrowedGeneration != old.Status.BorrowedGeneration
}

// by adds a status, and reports whether it shows more progress than any before: more pods of the
// template, as many with more that are available, or fewer of an older one. Until the controller
// has acted, the numbers are those of an earlier template.
func (r reach) by(s health.Status) (reach, bool) {
	if !s.Observed || !s.Counted {
		return r, false
	}
	now := reach{true, int32(max(0, s.Counts.Existing-s.Counts.Updated)), int32(s.Counts.Updated), int32(s.Counts.Available)} //nolint:gosec // The API server's numbers have 32 bits.
	if !r.known {
		return now, true
	}
	newer := now.updated > r.updated || now.updated == r.updated && now.available > r.available
	if newer {
		r.updated, r.available = now.updated, now.available
	}
	if now.older < r.older {
		r.older, newer = now.older, true
	}
	return r, newer
}
