package doctor

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Name is the name of a check; one constant for each, in the output, in the documentation
// and in tests.
type Name string

// The checks, in the order of the output.
const (
	Kubernetes  Name = "kubernetes"
	Controller  Name = "controller"
	Leader      Name = "leader"
	Permissions Name = "permissions"
	Kinds       Name = "kinds"
	Caches      Name = "caches"
	Clock       Name = "clock"
	Record      Name = "record"
	Key         Name = "key"
	Stops       Name = "stops"
	Notices     Name = "notifications"
	Registries  Name = "registries"
	Settings    Name = "settings"
	References  Name = "references"
	Pods        Name = "pods"
	Reloaders   Name = "reloaders"
)

// Result is the result of a check.
type Result string

// The results.
const (
	// OK: there is nothing to do.
	OK Result = "ok"
	// Warning: an operator should check it.
	Warning Result = "warning"
	// Problem: something doesn't work.
	Problem Result = "problem"
	// Unknown: it could not be checked.
	Unknown Result = "unknown"
)

// Check is the outcome of one check.
type Check struct {
	Name   Name   `json:"check"`
	Result Result `json:"result"`
	// Found is the finding, in one line.
	Found string `json:"found"`
	// Details are the affected objects, or their state.
	Details []string `json:"details,omitempty"`
	// Do is what an operator can do about it.
	Do string `json:"do,omitempty"`
}

// Explanation is one row of the table of checks.
type Explanation struct {
	Name    Name
	Meaning string
}

// Explanations lists every check with its meaning.
func Explanations() []Explanation {
	return []Explanation{
		{Kubernetes, "The Kubernetes release is in the range that Lockstep is tested with, " + OldestKubernetes + " to " + NewestKubernetes + ". Nothing is known to fail on an older or newer one, and nothing is tested there."},
		{Controller, "The Deployment in the controller's own namespace exists, can be understood, and has ready pods."},
		{Leader, "A pod of the Deployment holds the Lease and has renewed it in time; no other Deployment has the same Lease; the version that wrote the record is the one of this program."},
		{Permissions, "The service account of the Deployment has every permission that its flags need. The API server is asked with SubjectAccessReviews."},
		{Kinds, "The cluster has the kinds of workloads that the controller follows, such as Argo Rollouts. It names those that are switched off."},
		{Caches, "Each pod of the controller says at `/readyz` that it follows what it can list. The details come through the API server's proxy to the pod; without the permission to that, the readiness of the pods is told."},
		{Clock, "The clocks of this machine, of the API server and of the leader agree."},
		{Record, "The ConfigMaps of the record can be read and have room for more workloads."},
		{Key, "The digests of Secrets on record were made with the key that the installation has: with another one the next start takes what exists as given, and does not deliver what changed before it."},
		{Stops, "No operator has stopped automatic changes with `lockstep stop`, and no version is stopped because a workload failed with it."},
		{Notices, "The Secret with the notification targets can be read and understood, and the namespaces choose targets that they may choose. No message is sent: `lockstep notify test` does that."},
		{Registries, "The registries of the images that workloads follow answer, from where this program runs, and the controller follows images."},
		{Settings, "The annotations of workloads, namespaces, ConfigMaps and Secrets can be understood and do not contradict each other, the controller can do what they ask for, the namespaces that are named exist and are watched, and no workload asks in a namespace that is not. It names the rules of the table below, or a reason: `ReloadOff` if the controller follows no ConfigMaps and Secrets, `KindOff` if it does not follow the kind of the workload, `StrategyOff` if it evicts and refreshes no pods. It doesn't read admission policies: a workload in a namespace of the chart value `admissionPolicy.deniedNamespaces` passes, and Lockstep can't roll it out."},
		{References, "The ConfigMaps and Secrets that followed workloads need exist."},
		{Pods, "Containers do not run as root where `runAsNonRoot` forbids it: the kubelet does not start them, and their pod stays at `CreateContainerConfigError`."},
		{Reloaders, "No other reloader, and no other installation of Lockstep, restarts the workloads that Lockstep follows."},
	}
}

// Decide makes all checks.
func Decide(f Facts) []Check {
	return []Check{
		checkKubernetes(f), checkController(f), checkLeader(f), checkPermissions(f), checkKinds(f), checkCaches(f), checkClock(f),
		checkRecord(f), checkKey(f), checkStops(f), checkNotices(f), checkRegistries(f), checkSettings(f), checkReferences(f), checkPods(f), checkReloaders(f),
	}
}

// Failed counts the problems, and the checks that could not be made.
func Failed(all []Check) (problems, unknown int) {
	for _, c := range all {
		switch c.Result {
		case Problem:
			problems++
		case Unknown:
			unknown++
		case OK, Warning:
		}
	}
	return problems, unknown
}

// ok is a check that finds nothing wrong. It isn't inlined, because a check is large.
//
//go:noinline
func ok(name Name, format string, args ...any) Check {
	return Check{Name: name, Result: OK, Found: fmt.Sprintf(format, args...)}
}

// unread is a check whose facts could not be read.
func unread(name Name, err error) Check {
	c := Check{Name: name, Result: Unknown, Found: err.Error(), Do: "see whether the API server answers, and run it again"}
	if apierrors.IsForbidden(err) {
		c.Do = "run it as someone who has this permission"
	}
	return c
}

// mostDetails bounds how many lines one check writes.
const mostDetails = 20

// some are the first details, and how many are left.
//
//go:noinline
func some(all []string) []string {
	if len(all) <= mostDetails {
		return all
	}
	return append(all[:mostDetails:mostDetails], fmt.Sprintf("and %d more", len(all)-mostDetails))
}

// counted is a number with what it counts: "1 workload", "2 workloads".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
