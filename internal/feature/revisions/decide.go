package revisions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// lookAgain is how soon a decision is made anew that depends on something which
// wakes no object when it changes: a permission, or what is asked for in a namespace.
const lookAgain = time.Minute

// Verb is what is done about an object.
type Verb string

// The verbs.
const (
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Attach: owners are added.
	Attach Verb = "attach"
	// Observe: they would be added, and people asked only to be told.
	Observe Verb = "observe"
	// Wait: what is missing may still come.
	Wait Verb = "wait"
	// Report: a person has to decide.
	Report Verb = "report"
)

// Input is everything that the decision on one object depends on.
type Input struct {
	Object *lineage.Owned
	// Users are the living revisions that use the object.
	Users []*lineage.Holder
	// UnreadableKinds names the kinds of revisions that cannot be read.
	UnreadableKinds []string
	// Observe asks to be told only.
	Observe bool
	// Grace is how long a young object may be without users.
	Grace time.Duration
	Now   time.Time
}

// Decision is what to do about one object.
type Decision struct {
	Verb   Verb
	Reason input.Reason
	// Message says it to a person; equal situations give equal messages.
	Message string
	// Owners are added to the object.
	Owners []metav1.OwnerReference
	// Recheck is when time alone may change the decision; zero for never.
	Recheck time.Duration
}

// Decide says what to do about an object whose name carries its content. It only
// ever adds owners, and only such as name the object: nothing is guessed.
func Decide(in Input) Decision {
	if in.Object.Deleting {
		return Decision{Verb: Leave, Reason: input.AlreadyAttached, Message: "it is being deleted"}
	}
	missing, hidden := missingOwners(in)
	if len(missing) > 0 {
		return attach(in, missing)
	}
	if len(hidden) > 0 {
		return unreadable(in, fmt.Sprintf("used by %s when that could last be read;", strings.Join(names(hidden), ", ")))
	}
	if len(in.Users) > 0 {
		return Decision{Verb: Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"}
	}
	if len(in.Object.Owners) > 0 {
		return Decision{Verb: Leave, Reason: input.OwnedWithoutUse, Message: "no revision uses it; it goes when its owners go"}
	}
	return unused(in)
}

// missingOwners are the users that own nothing yet. Those of a kind that cannot be
// read are hidden: they may be gone, and the garbage collector removes an object
// whose only owner is gone.
func missingOwners(in Input) (missing, hidden []*lineage.Holder) {
	for _, h := range in.Users {
		switch {
		case in.Object.OwnedBy(h):
		case slices.Contains(in.UnreadableKinds, h.GVK.Kind):
			hidden = append(hidden, h)
		default:
			missing = append(missing, h)
		}
	}
	return missing, hidden
}

func attach(in Input, holders []*lineage.Holder) Decision {
	d := Decision{Verb: Attach, Reason: input.Attached}
	if in.Observe {
		d.Verb, d.Reason, d.Recheck = Observe, input.WouldAttach, lookAgain
	}
	for _, h := range holders {
		d.Owners = append(d.Owners, h.OwnerReference())
	}
	d.Message = "to " + strings.Join(names(holders), ", ")
	return d
}

func names(holders []*lineage.Holder) []string {
	var all []string
	for _, h := range holders {
		all = append(all, h.String())
	}
	return all
}

func unreadable(in Input, known string) Decision {
	return Decision{Verb: Leave, Reason: input.Unreadable, Recheck: lookAgain, Message: fmt.Sprintf(
		"%s these cannot be read here: %s", known, strings.Join(in.UnreadableKinds, ", "))}
}

// unused decides on an object that has neither users nor owners.
func unused(in Input) Decision {
	if len(in.UnreadableKinds) > 0 {
		return unreadable(in, "no revision that can be read uses it, and")
	}
	if left := in.Object.Created.Add(in.Grace).Sub(in.Now); left > 0 {
		return Decision{Verb: Wait, Reason: input.AwaitingRevision, Recheck: left, Message: "no revision uses it yet"}
	}
	return Decision{Verb: Report, Reason: input.Unreferenced, Message: "no revision uses it and nothing owns it; delete it if it is not needed"}
}
