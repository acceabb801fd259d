package doctor

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Facts are what was read. What could not be has its error beside it.
type Facts struct {
	// Namespace is that of the installation, Version that of this program.
	Namespace, Version string
	Now                time.Time
	Hints              Hints

	Controller  ControllerFacts
	Permissions PermissionFacts
	Kinds       KindFacts
	Clock       ClockFacts
	Record      RecordFacts
	// Registries are those of the images that workloads follow, with why one does not answer.
	Registries map[string]error

	Workloads  WorkloadFacts
	Namespaces NamespaceFacts
	Sources    SourceFacts
	// Notes are what is wrong with the metadata of namespaces, ConfigMaps and Secrets.
	Notes []Note

	Others Others
}

// Hints are for the advice to the user.
type Hints struct {
	// Elsewhere ends the sentence that advises to name another namespace, with how.
	Elsewhere string
	// Nearest finds what a misspelt word may mean.
	Nearest review.Nearest
}

// ControllerFacts are about the controller and its leader.
type ControllerFacts struct {
	Installation Installation
	Err          error
	// Rivals are the other Deployments that have the Lease of this one.
	Rivals []string

	Leader    access.Leader
	Led       bool
	LeaderErr error
}

// PermissionFacts are the permissions of the controller.
type PermissionFacts struct {
	// Missing are the permissions that the controller does not have, of as many as were Asked. Main is
	// how many of these are for each use without which it is of no use.
	Missing []access.Permission
	Asked   int
	Main    map[string]int
	Err     error
}

// KindFacts are the kinds of workloads.
type KindFacts struct {
	Served []Served
	Err    error
}

// ClockFacts are the API server's time and ours.
type ClockFacts struct {
	Times access.Times
	Err   error
}

// RecordFacts are about the record and the key of its digests.
type RecordFacts struct {
	Stored ledger.Stored
	Err    error

	// Keyed is how many workloads on record have digests that were made with a key, OtherKey are
	// those of them whose key is not the one in the Secret that Key names.
	Keyed    int
	OtherKey []string
	Key      string
	KeyErr   error
}

// WorkloadFacts are the workloads that were looked at.
type WorkloadFacts struct {
	All []Workload
	// Errs are about the kinds that could not be listed.
	Errs []error
}

// NamespaceFacts are about the namespaces that are watched, or should be.
type NamespaceFacts struct {
	// Err is why the settings of namespaces are not known.
	Err error
	// Absent are the namespaces that a person or the controller's flags name, and that do not
	// exist.
	Absent []string
	// Beyond are the namespaces that the controller does not watch and that have workloads
	// which ask to be followed.
	Beyond []string
	// Unwatched is the namespace that a person names and the controller does not watch, empty
	// when it does.
	Unwatched string
}

// SourceFacts are the ConfigMaps and Secrets.
type SourceFacts struct {
	Exist map[SourceKey]bool
	Err   error
}

// Others are other programs that may restart the same workloads.
type Others struct {
	// Programs are the other reloaders that run.
	Programs []Program
	Err      error
	// Installations are the Deployments of other controllers of Lockstep that watch a
	// namespace of this one.
	Installations []string
}

// Note is a mistake in the metadata of an object.
type Note struct {
	Object string
	review.Mistake
}

// Installation is the controller's Deployment.
type Installation struct {
	// Deployment is its name, empty when there is none.
	Deployment string
	// Problem says why its arguments cannot be understood, empty when they can.
	Problem string
	Account access.Account
	// Wanted, Ready and Updated are numbers of pods; those that are updated have the newest
	// template.
	Wanted, Ready, Updated int

	// Lease is that of the leader, empty without leader election.
	Lease string
	// ReloadOn, ImagesOn and PodsOn are what it was started with.
	ReloadOn, ImagesOn, PodsOn bool
	// OnHost is true when its pods are on the network of their node.
	OnHost  bool
	Pods    []Pod
	PodsErr error
}

// isKnown reports whether the controller's flags could be read.
func (i Installation) isKnown() bool { return i.Deployment != "" && i.Problem == "" }

// Pod is a pod of the controller.
type Pod struct {
	Name  string
	Ready bool
	// Report is what it answers at /readyz, in lines; ReportErr is why it could not be asked.
	Report    []string
	ReportErr error
}

// Served is a kind of workload.
type Served struct {
	Name string
	// Here is true when the cluster has the kind. BuiltIn is true for one of Kubernetes itself,
	// Custom for one that the controller's flags name.
	Here, BuiltIn, Custom bool
}

// Workload is what is known of a workload.
type Workload struct {
	Namespace, Name string
	Review          review.Workload
	Intent          settings.Intent
	// Tools are the other reloaders whose annotations it has, MovedBy the installation that
	// moved it last.
	Tools       []string
	RolledOutBy string
}

// time is the present by the API server's clock, as far as that is known.
func (f Facts) time() time.Time {
	if f.Clock.Err != nil || f.Clock.Times.Server.IsZero() {
		return f.Now
	}
	return f.Clock.Times.Server
}

// String is what people call it: "deployment/web in shop".
func (w Workload) String() string { return w.Name + " in " + w.Namespace }

// isFollowed reports whether the workload asks to be followed, or its namespace does for it.
func (w Workload) isFollowed() bool { return w.Intent.Mode == settings.Follow }

// SourceKey names a ConfigMap or Secret of a namespace.
type SourceKey struct {
	Namespace string
	input.ID
}

// Program is another reloader that runs in the cluster.
type Program struct {
	Tool string
	// Where is its Deployment: "deployment/reloader in tools".
	Where string
	// All is true when it restarts workloads that do not ask for it.
	All bool
}
