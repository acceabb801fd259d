package revisions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// lookAgain is how soon to decide again when the decision depends on something whose
// change doesn't wake an object: a permission, or a namespace setting.
const lookAgain = time.Minute

// Verb is what Lockstep does with an object.
type Verb string

// The verbs.
const (
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Attach: owners are added.
	Attach Verb = "attach"
	// Observe: they would be added, and the settings ask only for reports.
	Observe Verb = "observe"
	// Wait: the missing revision may still appear.
	Wait Verb = "wait"
	// Report: a user has to decide.
	Report Verb = "report"
)

// Observation is everything that the decision on one object depends on.
type Observation struct {
	// Deleting is true while the object is being deleted, Created is when it was created.
	Deleting bool
	Created  time.Time
	// Owners are the UIDs of its owners.
	Owners []string
	// Users are the living revisions that use the object, as owners of it.
	Users []metav1.OwnerReference
	// TooLarge are the living revisions that may use any object of the namespace.
	TooLarge []metav1.OwnerReference
	// UnreadableKinds names the kinds of revisions that cannot be read.
	UnreadableKinds []string
	// Observe asks only for reports.
	Observe bool
	// Stopped is true when an operator stopped every automatic change, for the reason
	// StoppedBy.
	Stopped   bool
	StoppedBy string
	// Grace is how long a young object may be without users.
	Grace time.Duration
	Now   time.Time
}

// Decision is what to do about one object.
type Decision struct {
	Verb   Verb
	Reason input.Reason
	// Message explains it to users; equal situations have equal messages.
	Message string
	// Owners are added to the object.
	Owners []metav1.OwnerReference
	// Recheck is when to decide again without an event; zero for never.
	Recheck time.Duration
}

// Decide returns what to do with an object whose name carries its content. It only adds
// owners, and only revisions that name the object: it never guesses.
func Decide(in Observation) Decision {
	if in.Deleting {
		return Decision{Verb: Leave, Reason: input.AlreadyAttached, Message: "it is being deleted"}
	}
	missing, hidden := missingOwners(in)
	if large := in.without(in.TooLarge); len(large) > 0 {
		return tooLarge(large, len(missing) > 0 || len(in.Owners) == 0)
	}
	if len(missing) > 0 {
		return attach(in, missing)
	}
	if len(hidden) > 0 {
		return unreadable(in, fmt.Sprintf("it was used by %s when that could last be read;", strings.Join(names(hidden), ", ")))
	}
	if len(in.Users) > 0 {
		return Decision{Verb: Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"}
	}
	if len(in.Owners) > 0 {
		return Decision{Verb: Leave, Reason: input.OwnedWithoutUse, Message: "no revision uses it; Kubernetes deletes it with its owners"}
	}
	return unused(in)
}

// without are the revisions that don't own the object.
func (in Observation) without(all []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(all), func(h metav1.OwnerReference) bool { return slices.Contains(in.Owners, string(h.UID)) })
}

// missingOwners are the users that aren't owners yet. Those of a kind that can't be read
// are hidden: they may be gone, and the garbage collector removes an object whose only
// owner is gone.
func missingOwners(in Observation) (missing, hidden []metav1.OwnerReference) {
	for _, h := range in.without(in.Users) {
		if slices.Contains(in.UnreadableKinds, h.Kind) {
			hidden = append(hidden, h)
		} else {
			missing = append(missing, h)
		}
	}
	return missing, hidden
}

// tooLarge leaves an object without further owners: a revision that isn't among its users may
// use it, and the garbage collector removes it with its last owner.
func tooLarge(large []metav1.OwnerReference, unattached bool) Decision {
	who := names(large)[0]
	if n := len(large) - 1; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	fact := "not attached, because " + who + " may use it too"
	if !unattached {
		fact = "Kubernetes deletes it with its owners, and " + who + " may use it too"
	}
	return Decision{Verb: Report, Reason: input.TooManySources, Recheck: lookAgain, Message: fmt.Sprintf(
		"%s: its pod template uses more than %d ConfigMaps and Secrets, or their names take more than %d KiB; let it use fewer",
		fact, input.MaxInputs, input.MaxNames>>10)}
}

func attach(in Observation, users []metav1.OwnerReference) Decision {
	d := Decision{Verb: Attach, Reason: input.Attached, Owners: users, Message: "to " + strings.Join(names(users), ", ")}
	switch {
	case in.Stopped:
		d.Verb, d.Reason, d.Recheck = Wait, input.Stopped, lookAgain
		d.Message = fmt.Sprintf("not attached %s: stopped by an operator (%q)", d.Message, in.StoppedBy)
	case in.Observe:
		d.Verb, d.Reason, d.Recheck = Observe, input.WouldAttach, lookAgain
	}
	return d
}

// names are the display names of revisions: "ReplicaSet/web-6f4d".
func names(users []metav1.OwnerReference) []string {
	var all []string
	for _, u := range users {
		all = append(all, u.Kind+"/"+u.Name)
	}
	return all
}

func unreadable(in Observation, known string) Decision {
	return Decision{Verb: Leave, Reason: input.Unreadable, Recheck: lookAgain, Message: fmt.Sprintf(
		"%s these kinds cannot be read: %s", known, strings.Join(in.UnreadableKinds, ", "))}
}

// unused decides on an object that has neither users nor owners.
func unused(in Observation) Decision {
	if len(in.UnreadableKinds) > 0 {
		return unreadable(in, "no revision that can be read uses it, and")
	}
	if left := in.Created.Add(in.Grace).Sub(in.Now); left > 0 {
		return Decision{Verb: Wait, Reason: input.AwaitingRevision, Recheck: left, Message: "no revision uses it yet"}
	}
	return Decision{Verb: Report, Reason: input.Unreferenced, Message: "no revision uses it and nothing owns it; delete it if you don't need it"}
}
