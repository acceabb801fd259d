package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode is the request of a reload annotation.
type Mode int

const (
	// Unset means that nothing is requested here; the next wider scope decides.
	Unset Mode = iota
	// Never leaves the workload alone.
	Never
	// Follow follows the referenced sources, the listed ones, or both.
	Follow
)

// Intent is the request for one workload, from its own annotations and the defaults of
// its namespace and the controller.
type Intent struct {
	Mode Mode
	// Auto follows every source that the template references.
	Auto bool
	// Listed sources are followed whether or not the template references them.
	Listed []Pattern
	Narrowing
	// Quiet is how long the workload's sources must be unchanged before it is rolled out.
	Quiet time.Duration
	// Whole follows every key of a source, whatever the template names.
	Whole bool
	// Strategy is how the workload is rolled out.
	Strategy StrategyName
	// Held is true while a hold is on the workload; HeldBy is its text.
	Held   bool
	HeldBy string
	// Release is the resource version up to which reverts are accepted, zero when a user
	// hasn't accepted any.
	Release int64
	// Observe reports decisions and doesn't change anything.
	Observe bool
	// Images are the requests for container images, sorted by container.
	Images []ImageRequest
	// Enforce replaces digests that other writers choose for these containers.
	Enforce bool
	Gates
	Mistakes Mistakes
}

// Mistakes are settings that aren't understood.
type Mistakes struct {
	// Problems are settings of the workload. Lockstep doesn't roll it out until they are
	// corrected.
	Problems []Problem
	// TooMany explains that the workload lists more than Lockstep reads, and then Listed is
	// empty; empty otherwise.
	TooMany string
	// Ignored are settings of the workload that have no effect; everything else does.
	Ignored []Problem
	// Warnings are settings of its namespace; they have no effect.
	Warnings []Problem
	// Unknown are the workload's annotations that begin with our prefix and that Lockstep
	// doesn't know, most likely misspelt ones. They have no effect.
	Unknown []string
	// Lost lists the annotations of another tool that have no counterpart, and what Lockstep
	// does instead.
	Lost []string
	// Refused lists which image annotations aren't understood, and what to write. They
	// don't affect anything else.
	Refused []string
}

// StrategyName is a way to roll out a workload.
type StrategyName string

// The strategies.
const (
	// StrategyTemplate changes the pod template: the workload's own rollout.
	StrategyTemplate StrategyName = "template"
	// StrategyEvict evicts pods one by one, for workloads whose template an operator
	// would revert.
	StrategyEvict StrategyName = "evict"
	// StrategyRefresh doesn't restart pods: Lockstep touches them so the kubelet
	// refreshes their volumes at once.
	StrategyRefresh StrategyName = "refresh"
)

// Problem is a setting that isn't understood.
type Problem struct {
	Key      string
	Value    string
	Accepted string
	// Why explains what is wrong with the value, empty when Accepted is enough.
	Why string
}

// String names the annotation, the value and the accepted values.
func (p Problem) String() string {
	why := ""
	if p.Why != "" {
		why = ": " + Shorten(p.Why)
	}
	return fmt.Sprintf("annotation %s: %q isn't valid%s; accepted: %s", p.Key, Shorten(p.Value), why, p.Accepted)
}

// Defaults are the settings of the whole controller.
type Defaults struct {
	// Auto follows every workload that nothing else decides about.
	Auto bool
	// Observe turns the whole controller into an observer.
	Observe bool
	// Quiet is the quiet window of workloads that do not set their own.
	Quiet time.Duration
	// Platform is the one whose image is pinned for containers that do not set their own; empty
	// for the index.
	Platform string
}

const (
	acceptedReload   = "auto, search, never, or a list such as configmap/app, secret/db-*, !secret/db-tls (which may include auto and search)"
	acceptedScope    = "auto or never"
	acceptedSource   = "auto, match or never"
	acceptedDuration = "a non-negative duration such as 10s or 2m"
	acceptedBool     = "true or false"
	acceptedStrategy = "template, evict or refresh"
	acceptedRelease  = "a resource version of the workload, as \"lockstep release\" writes it"
)

// ForWorkload reads a workload's annotations, with its namespace's and the
// controller's as defaults. The workload wins.
func ForWorkload(workload, namespace map[string]string, defaults Defaults) Intent {
	var in Intent
	in.readReload(workload)
	if in.Mode == Unset {
		in.Mode, in.Auto = scopeMode(namespace), true
		in.Mistakes.Warnings = reloadProblems(namespace, acceptedScope)
	}
	if in.Mode == Unset && defaults.Auto {
		in.Mode, in.Auto = Follow, true
	}
	in.Observe = defaults.Observe
	in.readNamespaceObserve(namespace)
	// A controller or namespace that observes isn't overruled: observing promises that
	// Lockstep doesn't write there.
	in.Observe = in.readBool(workload, Observe) || in.Observe
	in.Enforce = in.readBool(workload, Enforce)
	in.Quiet = defaults.Quiet
	in.readQuiet(workload)
	in.readStrategy(workload)
	in.readRelease(workload)
	in.HeldBy, in.Held = workload[Hold]
	in.readGates(workload, namespace)
	in.Mistakes.Unknown = unknown(workload)
	in.readImages(workload, defaults.Platform)
	return in
}

// ForWorkloads are the annotations that have a meaning on a workload.
func ForWorkloads() []string {
	return []string{Reload, Quiet, Strategy, Hold, Release, Observe, Enforce, Window, After, First, Resume}
}

func unknown(workload map[string]string) []string {
	var keys []string
	for key := range workload {
		if strings.HasPrefix(key, Prefix) && !slices.Contains(ForWorkloads(), key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// scopeMode reads the reload annotation of a namespace, a ConfigMap or a Secret,
// where only auto and never have a meaning.
func scopeMode(annotations map[string]string) Mode {
	switch strings.TrimSpace(annotations[Reload]) {
	case "auto":
		return Follow
	case "never":
		return Never
	}
	return Unset
}

// Source are a ConfigMap's or Secret's own settings.
type Source struct {
	Mode Mode
	// Match lets the workloads that search follow it.
	Match  bool
	Held   bool
	HeldBy string
	// NoRamp delivers its changes without steps.
	NoRamp bool
	// Resume are stopped versions of it that may be delivered.
	Resume []string
}

// ForSource reads the annotations of a ConfigMap or Secret.
func ForSource(annotations map[string]string) Source {
	s := Source{Mode: scopeMode(annotations), Match: isMatch(annotations), NoRamp: strings.TrimSpace(annotations[Ramp]) == rampOff}
	s.HeldBy, s.Held = annotations[Hold]
	s.Resume, _ = readResume(annotations)
	return s
}

// SourceProblems lists the settings of a ConfigMap or Secret that aren't understood.
func SourceProblems(annotations map[string]string) []Problem {
	var problems []Problem
	if !isMatch(annotations) {
		problems = reloadProblems(annotations, acceptedSource)
	}
	if value, set := annotations[Ramp]; set && strings.TrimSpace(value) != rampOff {
		problems = append(problems, Problem{Key: Ramp, Value: value, Accepted: rampOff})
	}
	_, wrong := readResume(annotations)
	return append(problems, wrong...)
}

func isMatch(annotations map[string]string) bool {
	return strings.TrimSpace(annotations[Reload]) == "match"
}

// reloadProblems is the reload annotation of a namespace, ConfigMap or Secret, if it isn't
// understood.
func reloadProblems(annotations map[string]string, accepted string) []Problem {
	value, set := annotations[Reload]
	if !set || scopeMode(annotations) != Unset {
		return nil
	}
	return []Problem{{Key: Reload, Value: value, Accepted: accepted}}
}

func (in *Intent) readQuiet(annotations map[string]string) {
	value, set := annotations[Quiet]
	if !set {
		return
	}
	d, err := time.ParseDuration(strings.TrimSpace(value))
	if err != nil || d < 0 {
		in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: Quiet, Value: value, Accepted: acceptedDuration})
		return
	}
	in.Quiet = d
}

func (in *Intent) readStrategy(annotations map[string]string) {
	in.Strategy = StrategyTemplate
	value, set := annotations[Strategy]
	if !set {
		return
	}
	switch name := StrategyName(strings.TrimSpace(value)); name {
	case StrategyTemplate, StrategyEvict, StrategyRefresh:
		in.Strategy = name
	default:
		in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: Strategy, Value: value, Accepted: acceptedStrategy})
	}
}

func (in *Intent) readRelease(annotations map[string]string) {
	value, set := annotations[Release]
	if !set {
		return
	}
	version, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || version <= 0 {
		in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: Release, Value: value, Accepted: acceptedRelease})
		return
	}
	in.Release = version
}

// readBool reads a switch of the workload, false when it isn't set or isn't understood.
func (in *Intent) readBool(annotations map[string]string, key string) bool {
	value, set := annotations[key]
	word := strings.TrimSpace(value)
	if set && word != "true" && word != "false" {
		in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: key, Value: value, Accepted: acceptedBool})
	}
	return word == "true"
}

// readNamespaceObserve treats a value that it doesn't understand as true: a user who
// writes "yes" doesn't want Lockstep to write.
func (in *Intent) readNamespaceObserve(annotations map[string]string) {
	value, set := annotations[Observe]
	switch strings.TrimSpace(value) {
	case "true":
		in.Observe = true
	case "false":
	default:
		if set {
			in.Observe = true
			in.Mistakes.Warnings = append(in.Mistakes.Warnings, Problem{Key: Observe, Value: value, Accepted: acceptedBool})
		}
	}
}

// Shorten keeps a hostile or pasted value from filling an event or the log.
func Shorten(value string) string {
	const most = 80
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "…"
}
