package revisions

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// lookAgain is how soon a decision is made anew that depends on something which
// wakes nobody when it changes: a permission, or what is asked for in a namespace.
const lookAgain = time.Minute

// Verb is what is done about an object.
type Verb string

// The verbs.
const (
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Attach: owners are added.
	Attach Verb = "attach"
	// Observe: they would be added, and somebody asked only to be told.
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
	// Blind names the kinds of revisions that cannot be read.
	Blind []string
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
	if missing := missingOwners(in); len(missing) > 0 {
		return attach(in, missing)
	}
	if len(in.Users) > 0 {
		return Decision{Verb: Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"}
	}
	if len(in.Object.Owners) > 0 {
		return Decision{Verb: Leave, Reason: input.OwnedWithoutUse, Message: "no revision uses it; it goes when its owners go"}
	}
	return unused(in)
}

func missingOwners(in Input) []*lineage.Holder {
	var missing []*lineage.Holder
	for _, h := range in.Users {
		if !in.Object.OwnedBy(h) {
			missing = append(missing, h)
		}
	}
	return missing
}

func attach(in Input, holders []*lineage.Holder) Decision {
	d := Decision{Verb: Attach, Reason: input.Attached}
	if in.Observe {
		d.Verb, d.Reason, d.Recheck = Observe, input.WouldAttach, lookAgain
	}
	names := make([]string, len(holders))
	for i, h := range holders {
		names[i] = h.String()
		d.Owners = append(d.Owners, h.OwnerReference())
	}
	d.Message = "to " + strings.Join(names, ", ")
	return d
}

// unused decides on an object that has neither users nor owners.
func unused(in Input) Decision {
	if len(in.Blind) > 0 {
		return Decision{Verb: Leave, Reason: input.Unreadable, Recheck: lookAgain, Message: fmt.Sprintf(
			"no revision that can be read uses it, and these cannot be read here: %s", strings.Join(in.Blind, ", "))}
	}
	if left := in.Object.Created.Add(in.Grace).Sub(in.Now); left > 0 {
		return Decision{Verb: Wait, Reason: input.AwaitingRevision, Recheck: left, Message: "no revision uses it yet"}
	}
	return Decision{Verb: Report, Reason: input.Unreferenced, Message: "no revision uses it and nothing owns it; delete it if it is not needed"}
}
