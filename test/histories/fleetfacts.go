package histories

import (
	"slices"
	"time"
)

// FleetFact is one write that the API server stored, of one of these.
type FleetFact struct {
	At       time.Time
	Source   *FleetSource
	Workload *FleetWorkload
	Place    *FleetNamespace
	Switch   *FleetSwitch
	// Lockstep is true when Lockstep wrote the template.
	Lockstep bool
	// Sight is set when Lockstep ceases to see what is written, or has just seen everything.
	Sight Sight
}

// Sight is whether Lockstep sees what is written.
type Sight int

// Changes of the sight.
const (
	SightLost Sight = 1 + iota
	SightBack
)

// FleetSource is a ConfigMap or Secret.
type FleetSource struct {
	Namespace, Name string
	Content         string
	// Resumed is the content that a user resumed, and Hurry is true when its changes take no
	// steps.
	Resumed string
	Hurry   bool
}

// FleetWorkload is a Deployment.
type FleetWorkload struct {
	Namespace, Name string
	Template        string
	// Shows are the contents that Lockstep wrote there as delivered, by source.
	Shows    map[string]string
	Replicas int
	Paused   bool
	Status   FleetStatus
	Wishes   FleetWishes
}

// FleetStatus is what the Deployment controller says.
type FleetStatus struct {
	// Done is true when all pods are of the template and available, GivenUp when the progress
	// deadline is over.
	Done, GivenUp      bool
	Updated, Available int
}

// FleetWishes are a workload's annotations for Lockstep.
type FleetWishes struct {
	Held, First bool
	// Window counts when Windowed is true. After is the workload of its namespace that goes
	// first.
	Windowed bool
	Window   Window
	After    string
	// Quiet is its quiet window, zero for the default.
	Quiet time.Duration
}

// isLong reports whether the quiet window outlasts a history.
func (w FleetWishes) isLong() bool { return w.Quiet >= LongQuietWindow }

// FleetNamespace is a namespace with its annotations.
type FleetNamespace struct {
	Name           string
	Held, Windowed bool
	Window         Window
	// Limit is how many of its workloads may roll for a change, zero for any number.
	Limit int
}

// FleetSwitch is the kill switch: it stops everything, or some namespaces.
type FleetSwitch struct {
	All        bool
	Namespaces []string
}

func (s FleetSwitch) stops(namespace string) bool {
	return s.All || slices.Contains(s.Namespaces, namespace)
}

// dated is a value, since when it is the current one, and the one before.
type dated[T any] struct {
	now, before T
	since       time.Time
}

func (d *dated[T]) set(v T, at time.Time) {
	d.before, d.now, d.since = d.now, v, at
}

// certain is the value that a process which knows everything up to a time can't take for
// another one: false when it has changed since.
func (d *dated[T]) certain(known time.Time) (T, bool) {
	return d.now, !d.since.After(known)
}
