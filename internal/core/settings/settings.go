package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
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
	// TooMany explains that there are more than Lockstep reads, and then Listed is empty;
	// empty otherwise.
	TooMany string
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
	Enforce  bool
	Mistakes Mistakes
}

// Mistakes are settings that aren't understood.
type Mistakes struct {
	// Problems are settings of the workload. Lockstep doesn't roll it out until they are
	// corrected.
	Problems []Problem
	// Warnings are settings of its namespace; they have no effect.
	Warnings []Problem
	// Unknown are the workload's annotations that begin with our prefix and that Lockstep
	// doesn't know, most likely misspelt ones. They have no effect.
	Unknown []string
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

// Pattern names one source, or many by a star: configmap/app-*.
type Pattern struct {
	Kind input.Kind
	Name string
}

// Matches reports whether the source matches.
func (p Pattern) Matches(s input.ID) bool {
	return p.Kind == s.Kind && matchStars(p.Name, s.Name)
}

// Prefix is the beginning that all names of the pattern share, empty when it begins with a star.
func (p Pattern) Prefix() string {
	prefix, _, _ := strings.Cut(p.Name, "*")
	return prefix
}

// IsGlob reports whether the pattern can match more than one name.
func (p Pattern) IsGlob() bool {
	return strings.Contains(p.Name, "*")
}

// isSound reports whether an object can have the name, or a name that matches the glob.
func (p Pattern) isSound() bool {
	if !p.IsGlob() {
		return len(validation.IsDNS1123Subdomain(p.Name)) == 0
	}
	return strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789.-*") == "" && len(p.Name) <= validation.DNS1123SubdomainMaxLength
}

// Problem is a setting that isn't understood.
type Problem struct {
	Key      string
	Value    string
	Accepted string
}

// String names the annotation, the value and the accepted values.
func (p Problem) String() string {
	return fmt.Sprintf("annotation %s: %q is not understood; accepted: %s", p.Key, Shorten(p.Value), p.Accepted)
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
	acceptedReload   = "auto, never, or a list such as configmap/app, secret/db-* (auto may be one of its elements)"
	acceptedScope    = "auto or never"
	acceptedDuration = "a duration such as 10s or 2m, not negative"
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
		in.Mistakes.Warnings = ScopeProblems(namespace)
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
	in.Mistakes.Unknown = unknown(workload)
	in.readImages(workload, defaults.Platform)
	return in
}

// ForWorkloads are the annotations that have a meaning on a workload.
func ForWorkloads() []string {
	return []string{Reload, Quiet, Strategy, Hold, Release, Observe, Enforce}
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
	Mode   Mode
	Held   bool
	HeldBy string
}

// ForSource reads the annotations of a ConfigMap or Secret.
func ForSource(annotations map[string]string) Source {
	s := Source{Mode: scopeMode(annotations)}
	s.HeldBy, s.Held = annotations[Hold]
	return s
}

// ScopeProblems lists the settings of a namespace, ConfigMap or Secret that aren't
// understood.
func ScopeProblems(annotations map[string]string) []Problem {
	value, set := annotations[Reload]
	if !set || scopeMode(annotations) != Unset {
		return nil
	}
	return []Problem{{Key: Reload, Value: value, Accepted: acceptedScope}}
}

// Follows reports whether a workload with this intent follows the source. A source that
// the workload names wins over the source's own never; a workload's never wins over
// everything.
func (in Intent) Follows(s input.ID, referenced bool, own Source) bool {
	if in.Mode == Never {
		return false
	}
	for _, p := range in.Listed {
		if p.Matches(s) && (!p.IsGlob() || own.Mode != Never) {
			return true
		}
	}
	if !referenced || own.Mode == Never {
		return false
	}
	return own.Mode == Follow || in.Mode == Follow && in.Auto
}

func (in *Intent) readReload(annotations map[string]string) {
	value, set := annotations[Reload]
	if !set {
		return
	}
	if strings.TrimSpace(value) == "never" {
		in.Mode = Never
		return
	}
	in.Mode = Follow
	if len(value) > maxReload {
		in.TooMany = fmt.Sprintf("annotation %s has more than %d KiB", Reload, maxReload>>10)
		return
	}
	in.readList(value)
	if in.TooMany != "" {
		in.Listed = nil
		return
	}
	if !in.Auto && len(in.Listed) == 0 && len(in.Mistakes.Problems) == 0 {
		in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: Reload, Value: value, Accepted: acceptedReload})
	}
}

// readList reads the elements until one isn't understood, or there are too many: a long
// list must not make other workloads wait.
func (in *Intent) readList(value string) {
	elements, patterns, stars, problems := 0, 0, 0, len(in.Mistakes.Problems)
	for element := range strings.SplitSeq(value, ",") {
		listed := len(in.Listed)
		in.readElement(strings.TrimSpace(element), value)
		elements++
		each := 0
		if len(in.Listed) > listed && in.Listed[listed].IsGlob() {
			patterns++
			if in.Listed[listed].Prefix() == "" {
				stars++
			}
			each = strings.Count(in.Listed[listed].Name, "*")
		}
		switch {
		case each > MaxStarsEach:
			in.TooMany = fmt.Sprintf("annotation %s has a pattern with more than %d stars", Reload, MaxStarsEach)
		case patterns > MaxPatterns:
			in.TooMany = fmt.Sprintf("annotation %s has more than %d patterns", Reload, MaxPatterns)
		case stars > MaxStars:
			in.TooMany = fmt.Sprintf("annotation %s has more than %d patterns that begin with a star, and each of them is compared with every name", Reload, MaxStars)
		case elements > maxElements:
			in.TooMany = fmt.Sprintf("annotation %s has more than %d elements", Reload, maxElements)
		case len(in.Mistakes.Problems) == problems:
			continue
		}
		return
	}
}

// readElement reads one element of the list; whole is quoted in a problem, since users
// can search for that text.
func (in *Intent) readElement(element, whole string) {
	switch element {
	case "":
		return
	case "auto":
		in.Auto = true
		return
	}
	s, err := input.ParseSource(element)
	if err != nil || !Pattern(s).isSound() {
		// Two bad elements are one bad annotation.
		if p := (Problem{Key: Reload, Value: whole, Accepted: acceptedReload}); !slices.Contains(in.Mistakes.Problems, p) {
			in.Mistakes.Problems = append(in.Mistakes.Problems, p)
		}
		return
	}
	in.Listed = append(in.Listed, Pattern(s))
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
