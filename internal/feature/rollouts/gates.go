package rollouts

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// Gates are what lets a due change through later, whichever input it is. The zero value lets
// every change through.
type Gates struct {
	// Stopped is true when an operator stopped every automatic change, and StoppedBy is the
	// reason that the operator gave.
	Stopped   bool
	StoppedBy string
	Window    WindowState
	Damped    DampedState
	// Again is the count of rollouts in a row to be recorded after a rollout now.
	Again int
	// After is the workload that goes first and isn't finished, empty when there is none.
	After string
}

// WindowState is the maintenance window that counts for the workload.
type WindowState struct {
	// Opens is when it opens, zero while it is open.
	Opens time.Time
	// Text is the window as it was written, and On where: the workload, the namespace or the
	// controller.
	Text, On string
}

// DampedState says until when a workload isn't rolled out again.
type DampedState struct {
	Until time.Time
	// Why names the workload or the source, the same for the same situation.
	Why string
}

// TurnState is where the workload is with the changes that are due or on trial. The zero value
// is that of a program that doesn't track how its rollouts end.
type TurnState struct {
	Tracked bool
	// Proves is true when a rollout of the workload can prove a change: it has pods, which are
	// replaced automatically.
	Proves bool
	// Able is true when such a workload is available, and Healthy when it has been for the
	// settle time, or was before the rollout on trial. Settles is how long that still takes.
	Able, Healthy bool
	Settles       time.Duration
	// Serves is true when a pod is available, of whichever template.
	Serves bool
	// Template is the digest of the pod template, and End how the rollout on trial stands.
	Template string
	End      spread.End
	// Taken is true when the decision begins a rollout that is put on trial. Kept is true when its
	// patch was already sent, and the answer is lost.
	Taken, Kept bool
	// Refused is true when the due changes have no place for the workload now. Canary describes the
	// workload that a user wants to be the first, and that can't begin. It is empty when the workload
	// only waits for its turn. Canaries describes that of each change.
	Refused  bool
	Canary   string
	Canaries map[input.Change]string
}

// Gatekeepers know what lets changes through later. One that is nil lets every change through.
type Gatekeepers struct {
	// Stopped reports whether an operator has stopped the changes of a namespace, and why.
	Stopped func(namespace string) (reason string, stopped bool)
	// NotifyProblem explains why a namespace can't choose a notification target, empty when it
	// can.
	NotifyProblem func(namespace, target string) string
	// Kinds are those that lockstep.dev/after can name.
	Kinds []kube.Kind
	// Before reports whether a workload has to wait for a named one in the changes that are due
	// for it, and otherwise why the named one can't be waited for, empty when it has finished.
	Before func(asks kube.Key, named string, due []input.Change, known func(id string) bool) (wait bool, ignored string)
	// Failure is what is on record of a version with which workloads failed. Stops writes it, and
	// Bars reports whether workloads can be due for it.
	Failure func(input.Change) record.Failure
	Stops   Stops
	Bars    func(input.Change) bool
	// SourceReference is the object reference of a source, for events.
	SourceReference func(ctx context.Context, namespace string, id input.ID) (*corev1.ObjectReference, error)
}

// Stops is where the loop notes which versions failed, and which sources change again and again.
type Stops interface {
	// AddFailure adds a workload that failed with a version, unless it is on record, and returns all of
	// them. It explains why there is no room on record, empty when there is.
	AddFailure(c input.Change, id string, now time.Time) (f record.Failure, added bool, full string)
	// Failures are the versions on record, as record.Published names them.
	Failures() map[input.Change]record.Failure
	// Series is that of a source, and PutSeries removes one that is zero.
	Series(of input.Change) (record.Series, bool)
	PutSeries(of input.Change, s record.Series) (full string)
}
