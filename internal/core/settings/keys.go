// Package settings knows every annotation and label that users write for Lockstep or that
// Lockstep writes, and parses them into typed intent.
package settings

// Prefix starts every key of ours.
const Prefix = "lockstep.dev/"

// Keys that users write.
const (
	// Reload on a workload, a namespace, a ConfigMap or a Secret: what to follow.
	Reload = Prefix + "reload"
	// Quiet on a workload: how long its sources must be unchanged.
	Quiet = Prefix + "quiet"
	// Strategy on a workload: how it is rolled out.
	Strategy = Prefix + "strategy"
	// Hold on a workload, a namespace, a ConfigMap or a Secret: no automatic change while present.
	Hold = Prefix + "hold"
	// Release on a workload: accept the reverted versions, once.
	Release = Prefix + "release"
	// Observe on a workload or a namespace: decide and report, but don't change anything.
	Observe = Prefix + "observe"
	// Enforce on a workload: replace digests that other writers choose for its images.
	Enforce = Prefix + "enforce"
	// Window on a workload or a namespace: when workloads may be rolled out.
	Window = Prefix + "window"
	// After on a workload: the workloads that get a change first.
	After = Prefix + "after"
	// First on a workload: it gets a change before all others.
	First = Prefix + "first"
	// Resume on a workload, a ConfigMap or a Secret: stopped versions that may be delivered.
	Resume = Prefix + "resume"
	// MaxRolling on a namespace: how many of its workloads roll at the same time for one change.
	MaxRolling = Prefix + "max-rolling"
	// Notify on a namespace: the target of its notifications.
	Notify = Prefix + "notify"
	// Ramp on a ConfigMap or a Secret: whether its changes spread in steps.
	Ramp = Prefix + "ramp"
)

// Prefixes of keys that users write, each followed by the name of a container.
const (
	// ImagePrefix on a workload: which image the container should run.
	ImagePrefix = "image." + Prefix
	// PlatformPrefix on a workload: pin the image for one platform instead of the index.
	PlatformPrefix = "platform." + Prefix
)

// StateLabel marks the ConfigMaps in which Lockstep records delivered versions.
const StateLabel = Prefix + "state"

// Version on such a ConfigMap: the version of the program that wrote it last.
const Version = Prefix + "version"

// Revisioned marks, as a label with the value "true", a ConfigMap or Secret whose
// name carries its content: it is attached to the revisions that use it.
const Revisioned = Prefix + "revisioned"

// Inputs on a pod template, written by Lockstep: the versions delivered with this
// revision.
const Inputs = Prefix + "inputs"

// RolledOutBy on a workload, written by Lockstep: the namespace of the installation that
// rolled it out last.
const RolledOutBy = Prefix + "moved-by"

// InputsVariable is the environment variable that replaces Inputs where annotations
// cannot be used.
const InputsVariable = "LOCKSTEP_INPUTS"

// LegacyVariablePrefix starts the environment variables that kubernetes-reloader
// wrote and its drop-in replacement writes.
const LegacyVariablePrefix = "_RELOADER_"
