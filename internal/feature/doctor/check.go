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
	Probes      Name = "probes"
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
	// Name is the name of the check.
	Name Name `json:"check"`
	// Result is "ok", "warning", "problem" or "unknown".
	Result Result `json:"result"`
	// Found is the finding, in one line.
	Found string `json:"found"`
	// Details are the affected objects, or their state.
	Details []string `json:"details,omitempty"`
	// Do is the recommended action.
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
		{Kubernetes, "The Kubernetes release isn't older than " + OldestKubernetes + " or newer than " + NewestKubernetes + ", the oldest and the newest one that Lockstep is tested with. Others are untested."},
		{Controller, "The Deployment in the controller's own namespace exists, its arguments are valid, and its pods are ready."},
		{Leader, "A pod of the Deployment holds the Lease and renews it in time, no other Deployment uses the same Lease, and the controller's version is the version of this program."},
		{Permissions, "The Deployment's service account has every permission that its flags need. The check uses SubjectAccessReviews."},
		{Kinds, "The workload kinds that the controller follows, such as Argo Rollouts, are installed in the cluster. The check lists the kinds that are off."},
		{Caches, "Each controller pod reports at `/readyz` that it can list and watch what it needs. The details come through the API server's pod proxy. Without permission to use it, the check reports only whether the pods are ready."},
		{Clock, "The clocks of this machine, the API server and the leader agree."},
		{Record, "The record's ConfigMaps can be read and have room for more workloads."},
		{Key, "The recorded Secret digests were made with the installation's current key. With another key, the controller takes the Secrets that exist at its next start as the new baseline, and doesn't deliver earlier changes."},
		{Stops, "Automatic changes aren't stopped with `lockstep stop`, and no version is stopped because a workload failed with it."},
		{Notices, "The Secret with the notification targets is valid, and namespaces choose only targets that they are allowed to use. The check doesn't send messages. `lockstep notify test` does."},
		{Registries, "The registries of the followed images answer requests from this machine, and the controller follows images."},
		{Settings, "The annotations of workloads, namespaces, ConfigMaps and Secrets are valid and don't contradict each other, the controller can do what they request, the configured namespaces exist, and the controller watches every namespace in which a workload requests to be followed. The check names the rules in the table below, or a reason: `ReloadOff` if the controller doesn't follow ConfigMaps and Secrets, `KindOff` if it doesn't follow the workload's kind, `StrategyOff` if it doesn't evict and refresh pods. It doesn't read admission policies: a workload in a namespace of the chart value `admissionPolicy.deniedNamespaces` passes, although Lockstep can't roll it out."},
		{References, "The ConfigMaps and Secrets that followed workloads need exist."},
		{Pods, "Containers don't run as root where `runAsNonRoot` forbids it. The kubelet doesn't start such containers, and their pod stays at `CreateContainerConfigError`."},
		{Probes, "Each followed workload that keeps pods running has a container with a readiness probe. Without one, a pod counts as ready as soon as its process has started, so [safe rollouts](../reference/safe-rollouts.md#without-a-readiness-probe) see only that a process ends, not that it doesn't work."},
		{Reloaders, "No other reloader, and no other installation of Lockstep, restarts the workloads that Lockstep follows."},
	}
}

// Decide makes all checks.
func Decide(f Facts) []Check {
	return []Check{
		checkKubernetes(f), checkController(f), checkLeader(f), checkPermissions(f), checkKinds(f), checkCaches(f), checkClock(f),
		checkRecord(f), checkKey(f), checkStops(f), checkNotices(f), checkRegistries(f), checkSettings(f), checkReferences(f), checkPods(f), checkProbes(f), checkReloaders(f),
	}
}

// Failed counts the problems, and the checks that could not be run.
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
	c := Check{Name: name, Result: Unknown, Found: err.Error(), Do: "check that the API server answers, and run it again"}
	if apierrors.IsForbidden(err) {
		c.Do = "run it as a user who has this permission"
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
