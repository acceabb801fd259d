// Package health derives the state of a workload's rollout from the workload's own status
// alone:
//
//	            a new template              aborted, refused, deadline passed
//	done  --------------------->  progressing  ------------------------------>  failed
//	 ↑                              |      ↑                                    |   |
//	 +-- every pod is updated  -----+      +----------- a new template ---------+   |
//	 |   and available                                                              |
//	 +-- the same, after the deadline  ---------------------------------------------+
//
// While only pods are left that a user has to replace (OnDelete, a partition), the state is by
// hand instead of progressing. A pause that the controller has seen hides the state until a user
// resumes, except that an abort or a refused specification still shows as failed. If the status
// doesn't show the state, it is unknown, which proves nothing.
package health

import (
	"fmt"
	"strconv"
	"time"
)

// State is the state of a rollout.
type State string

// States of a rollout.
const (
	// Unknown: the status doesn't show it.
	Unknown State = "unknown"
	// Done: every pod is created from the pod template and available.
	Done State = "done"
	// Progressing: the controller of the workload is at work.
	Progressing State = "progressing"
	// Paused: the controller of the workload waits for a user.
	Paused State = "paused"
	// ByHand: pods of an older revision stay until a user deletes them, or lowers the
	// partition that keeps them.
	ByHand State = "by hand"
	// Failed: the controller of the workload has given up, or shows no progress.
	Failed State = "failed"
)

// Health is the state of a rollout, with an explanation.
type Health struct {
	State State
	// Message is for users, the same for the same situation.
	Message string
}

// Status is the rollout status that a workload reports. Fields that its kind doesn't
// report are zero.
type Status struct {
	// Observed is true when the workload's controller has acted on it as it is now.
	Observed bool
	// Paused is true when that controller must not act, Aborted when it went back to an
	// earlier revision, Invalid when it refuses the specification.
	Paused, Aborted, Invalid bool
	// OnDelete is true when a pod takes up a new template only when it is deleted, and
	// Partition how many pods keep an older one until it is lowered.
	OnDelete  bool
	Partition int
	// Counts are the pods, where the workload counts them.
	Counted bool
	Counts  Counts
	// GivenUp is why the controller of the workload has given up, empty while it has not.
	GivenUp string
	// Phase is the summary of a kind that reports one: "Healthy", "Progressing", "Paused"
	// or "Degraded".
	Phase string
	// Deadline is how long a rollout may take without progress, for a kind whose controller
	// never gives up; zero otherwise.
	Deadline time.Duration
	// Ready and Stalled are the conditions of a kind that reports only those; Ready
	// stands for Available too.
	Ready, Stalled Condition
}

// Counts are numbers of pods.
type Counts struct {
	// Wanted pods; those that exist; of these, those of the current template; and those
	// that are available.
	Wanted, Existing, Updated, Available int
}

// older is how many pods are created from an earlier template.
func (c Counts) older() int {
	return max(0, c.Existing-c.Updated)
}

// Condition is the status of a condition.
type Condition string

// Conditions as Kubernetes writes them; an empty one is missing.
const (
	True  Condition = "True"
	False Condition = "False"
)

// check is one step of the rule: it decides, or leaves the decision to the next.
type check func(Status, time.Duration) (Health, bool)

// Of is the health of a rollout that has shown no progress for that long.
func Of(s Status, stalled time.Duration) Health {
	for _, c := range []check{
		invalid,    // nothing happens before a user acts
		unobserved, // the status is about an earlier template
		aborted,
		paused,
		givenUp,
		byPhase,      // a kind that reports a summary
		keptByHand,   // pods that its controller never touches
		byCounts,     // a kind that counts its pods
		byConditions, // a kind that reports only Ready
	} {
		if h, known := c(s, stalled); known {
			return h
		}
	}
	return Health{Unknown, "its status doesn't show the rollout's progress"}
}

// HasOlderPods reports whether a pod of an earlier template may still run. Without
// numbers nothing is known, and the answer is yes.
func (s Status) HasOlderPods() bool {
	return !s.Observed || !s.Counted || s.Counts.older() > 0
}

// HasUpdatedPods reports whether a pod of the current template may run. Without numbers
// nothing is known, and the answer is yes.
func (s Status) HasUpdatedPods() bool {
	return !s.Observed || !s.Counted || s.Counts.Updated > 0
}

// StartsPods reports whether a pod may start now, as far as the numbers show: the workload's controller replaces
// pods, or one isn't available.
func (s Status) StartsPods() bool {
	replaces := s.Counts.older() > 0 && !s.RollsByHand() && !s.Paused
	return s.Observed && s.Counted && (replaces || s.Counts.Available < max(s.Counts.Wanted, s.Counts.Existing))
}

// RollsByHand reports whether a new template reaches some pods only when a user acts.
func (s Status) RollsByHand() bool {
	return s.OnDelete || s.Partition > 0
}

// Hand describes how pods take up a new template that isn't rolled out automatically, the
// same for the same specification.
func (s Status) Hand() string {
	switch {
	case !s.RollsByHand():
		return "the workload's controller replaces its pods"
	case s.OnDelete:
		return "pods load it only after they are deleted (updateStrategy OnDelete)"
	}
	return fmt.Sprintf("the updateStrategy's partition keeps %s on the earlier template until you lower it", pods(s.Partition))
}

func invalid(s Status, _ time.Duration) (Health, bool) {
	return Health{Failed, "its controller rejects its spec"}, s.Invalid
}

func unobserved(s Status, _ time.Duration) (Health, bool) {
	return Health{Progressing, "its controller has not acted on it yet"}, !s.Observed
}

func aborted(s Status, _ time.Duration) (Health, bool) {
	return Health{Failed, "the rollout was aborted"}, s.Aborted
}

func paused(s Status, _ time.Duration) (Health, bool) {
	return Health{Paused, "it is paused (spec.paused)"}, s.Paused
}

func givenUp(s Status, _ time.Duration) (Health, bool) {
	return Health{Failed, s.GivenUp}, s.GivenUp != ""
}

func byPhase(s Status, _ time.Duration) (Health, bool) {
	states := map[string]State{"Healthy": Done, "Progressing": Progressing, "Paused": Paused, "Degraded": Failed}
	state, known := states[s.Phase]
	return Health{state, "its phase is " + s.Phase}, known
}

func keptByHand(s Status, _ time.Duration) (Health, bool) {
	if !s.RollsByHand() || !s.Counted {
		return Health{}, false
	}
	older, kept := s.Counts.older(), s.Counts.Existing
	if !s.OnDelete {
		kept = s.Partition
	}
	return Health{ByHand, fmt.Sprintf("%s of an older revision left; %s", pods(older), s.Hand())}, older > 0 && older <= kept
}

// Left is how long the rollout may still go without progress before it counts as failed. Zero: it counts already,
// or the workload's controller reports the failure itself.
func (s Status) Left(stalled time.Duration) time.Duration {
	if s.Deadline == 0 {
		return 0
	}
	return max(0, s.Deadline-stalled)
}

func byCounts(s Status, stalled time.Duration) (Health, bool) {
	if !s.Counted {
		return Health{}, false
	}
	c := s.Counts
	missing := max(0, c.Wanted-c.Available)
	switch {
	case c.older() == 0 && c.Updated >= c.Wanted && missing == 0:
		return Health{Done, pods(c.Available) + " available"}, true
	case s.Deadline > 0 && stalled >= s.Deadline:
		return Health{Failed, fmt.Sprintf("no progress for %s: %s of an older revision left, %s not available", s.Deadline, pods(c.older()), pods(missing))}, true
	}
	return Health{Progressing, fmt.Sprintf("%s of an older revision left, %s not available", pods(c.older()), pods(missing))}, true
}

func byConditions(s Status, _ time.Duration) (Health, bool) {
	switch {
	case s.Stalled == True:
		return Health{Failed, "its condition Stalled is true"}, true
	case s.Ready == True:
		return Health{Done, "it is ready"}, true
	case s.Ready == False:
		return Health{Progressing, "it is not ready"}, true
	}
	return Health{}, false
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return strconv.Itoa(n) + " pods"
}
