package revisions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Observation is everything that the decision on one object depends on.
type Observation struct {
	// Deleting is true while the object is on its way out, Created is when it was made.
	Deleting bool
	Created  time.Time
	// Owners are the UIDs of its owners.
	Owners []string
	// Users are the living revisions that use the object, as owners of it.
	Users []metav1.OwnerReference
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
func Decide(in Observation) Decision {
	if in.Deleting {
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
	if len(in.Owners) > 0 {
		return Decision{Verb: Leave, Reason: input.OwnedWithoutUse, Message: "no revision uses it; it goes when its owners go"}
	}
	return unused(in)
}

// missingOwners are the users that own nothing yet. Those of a kind that cannot be
// read are hidden: they may be gone, and the garbage collector removes an object
// whose only owner is gone.
func missingOwners(in Observation) (missing, hidden []metav1.OwnerReference) {
	for _, h := range in.Users {
		switch {
		case slices.Contains(in.Owners, string(h.UID)):
		case slices.Contains(in.UnreadableKinds, h.Kind):
			hidden = append(hidden, h)
		default:
			missing = append(missing, h)
		}
	}
	return missing, hidden
}

func attach(in Observation, users []metav1.OwnerReference) Decision {
	d := Decision{Verb: Attach, Reason: input.Attached, Owners: users, Message: "to " + strings.Join(names(users), ", ")}
	if in.Observe {
		d.Verb, d.Reason, d.Recheck = Observe, input.WouldAttach, lookAgain
	}
	return d
}

// names are how people name revisions: "ReplicaSet/web-6f4d".
func names(users []metav1.OwnerReference) []string {
	var all []string
	for _, u := range users {
		all = append(all, u.Kind+"/"+u.Name)
	}
	return all
}

func unreadable(in Observation, known string) Decision {
	return Decision{Verb: Leave, Reason: input.Unreadable, Recheck: lookAgain, Message: fmt.Sprintf(
		"%s these cannot be read here: %s", known, strings.Join(in.UnreadableKinds, ", "))}
}

// unused decides on an object that has neither users nor owners.
func unused(in Observation) Decision {
	if len(in.UnreadableKinds) > 0 {
		return unreadable(in, "no revision that can be read uses it, and")
	}
	if left := in.Created.Add(in.Grace).Sub(in.Now); left > 0 {
		return Decision{Verb: Wait, Reason: input.AwaitingRevision, Recheck: left, Message: "no revision uses it yet"}
	}
	return Decision{Verb: Report, Reason: input.Unreferenced, Message: "no revision uses it and nothing owns it; delete it if it is not needed"}
}
