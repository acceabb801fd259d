package doctor

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Facts are what was read. A part that could not be read has its error beside it.
type Facts struct {
	// Namespace is the installation's, Version this program's.
	Namespace, Version string
	Now                time.Time
	Hints              Hints

	ServerFacts
	Controller  ControllerFacts
	Permissions PermissionFacts
	Kinds       KindFacts
	Record      RecordFacts
	// Registries are those of the followed images, with the reason if one doesn't answer.
	Registries map[string]error

	Workloads  WorkloadFacts
	Namespaces NamespaceFacts
	Sources    SourceFacts
	// Notes are mistakes in the metadata of namespaces, ConfigMaps and Secrets.
	Notes []Note

	Others Others
}

// Hints are for the advice to the user.
type Hints struct {
	// Elsewhere ends the advice to name another namespace, and explains how.
	Elsewhere string
	// Nearest finds the words that a misspelt one may stand for.
	Nearest review.Nearest
}

// ControllerFacts are about the controller and its leader.
type ControllerFacts struct {
	Installation Installation
	Err          error
	// Rivals are the other Deployments that use the same Lease.
	Rivals []string

	Leader    access.Leader
	Led       bool
	LeaderErr error

	// Stop is what an operator stopped.
	Stop    settings.Stop
	StopErr error
	Notices NoticeFacts
}

// NoticeFacts are about notifications.
type NoticeFacts struct {
	// File is where the controller reads its targets, empty when it doesn't notify anyone.
	File string
	// Targets are its targets, and Err is why they can't be read or understood. Wrong is true
	// when they have a mistake.
	Targets notice.Config
	Err     error
	Wrong   bool
	// Chosen are the targets that namespaces choose.
	Chosen map[string]string
}

// PermissionFacts are the permissions of the controller.
type PermissionFacts struct {
	// Missing are the permissions that the controller doesn't have, out of the number
	// Asked. Main counts those of each use that the controller can't work without.
	Missing []access.Permission
	Asked   int
	Main    map[string]int
	Err     error
}

// KindFacts are the kinds of workloads.
type KindFacts struct {
	Served []Served
	Err    error
	// Off are the built-in kinds that the controller's flags switch off, and Asking the
	// workloads of these kinds that ask to be followed.
	Off, Asking []string
}

// ServerFacts are about the API server.
type ServerFacts struct {
	Clock      ClockFacts
	Kubernetes KubernetesFacts
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

	// Keyed is how many workloads on record have keyed digests. OtherKey are those whose key
	// isn't the one in the Secret that Key names.
	Keyed    int
	OtherKey []string
	Key      string
	KeyErr   error
}

// WorkloadFacts are the workloads that were checked.
type WorkloadFacts struct {
	All []Workload
	// Errs are about the kinds that could not be listed.
	Errs []error
	// AsRoot are the containers that can't start because they run as root and may not.
	AsRoot  []string
	PodsErr error
}

// NamespaceFacts are about the namespaces that are watched, or should be.
type NamespaceFacts struct {
	// Err is why the namespace settings aren't known.
	Err error
	// Absent are the namespaces that a user or the controller's flags name, and that don't
	// exist.
	Absent []string
	// Beyond are the namespaces that the controller doesn't watch, with workloads that ask
	// to be followed.
	Beyond []string
	// Unwatched is the namespace that a user names and the controller doesn't watch, empty
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
	// Installations are the Deployments of other Lockstep controllers that watch a
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
	// Problem is why its arguments aren't understood, empty when they can.
	Problem string
	Account access.Account
	// Wanted, Ready and Updated are numbers of pods; updated ones use the newest template.
	Wanted, Ready, Updated int

	// Lease is the leader's, empty without leader election.
	Lease string
	// ReloadOn, ImagesOn and PodsOn are its flags.
	ReloadOn, ImagesOn, PodsOn bool
	// OnHost is true when its pods use the host network.
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
	// Report is its answer at /readyz, in lines; ReportErr is why it could not be queried.
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

// Workload is what is known about a workload.
type Workload struct {
	Namespace, Name string
	Review          review.Workload
	Intent          settings.Intent
	// After are the workloads that go before it, as "deployment/db".
	After []string
	// Tools are the other reloaders whose annotations it carries, RolledOutBy the
	// installation that rolled it out last.
	Tools       []string
	RolledOutBy string
	// Unprobed is true when it keeps pods running of which no container has a readiness probe.
	Unprobed bool
	// Lender is the workload whose template it uses, empty when it has its own.
	Lender string
}

// time is the present by the API server's clock, if known.
func (f Facts) time() time.Time {
	if f.Clock.Err != nil || f.Clock.Times.Server.IsZero() {
		return f.Now
	}
	return f.Clock.Times.Server
}

// String is its display name: "deployment/web in namespace shop".
func (w Workload) String() string { return objectname.In(w.Name, w.Namespace) }

// isFollowed reports whether the workload asks to be followed, or its namespace does.
func (w Workload) isFollowed() bool { return w.Intent.Mode == settings.Follow }

// SourceKey names a ConfigMap or Secret of a namespace.
type SourceKey struct {
	Namespace string
	input.ID
}

// Program is another reloader that runs in the cluster.
type Program struct {
	Tool string
	// Where is its Deployment: "deployment/reloader in namespace tools".
	Where string
	// All is true when it restarts workloads that don't ask for it.
	All bool
}
