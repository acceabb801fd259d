package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxAfter bounds the workloads that one waits for, and MaxResume the versions that one
// annotation lets through.
const (
	MaxAfter  = 8
	MaxResume = 16
)

const (
	rampOff            = "off"
	acceptedAfter      = "up to 8 workloads in the same namespace, such as deployment/db, statefulset/cache"
	acceptedMaxRolling = "a number, at least 1"
	acceptedNotify     = "the name of a target that the administrator allows for the namespace"
	acceptedResume     = "versions such as 77ab01c9de, as \"lockstep resume\" writes them"
	acceptedWindow     = "a cron expression, a duration and a time zone, such as 0 2 * * 1-5 2h Europe/Berlin, or always"
)

// Gates are the settings that decide when a workload's turn is.
type Gates struct {
	// NamespaceHeld is true while a hold is on the namespace; NamespaceHeldBy is its text.
	NamespaceHeld   bool
	NamespaceHeldBy string
	// Windows are the maintenance windows that count, the most specific one first. They
	// aren't parsed yet.
	Windows []Placed
	// After are the workloads that get a change first, as users write them: deployment/db.
	After []string
	// First is true for the workload that gets a change before all others.
	First bool
	// Resume are stopped versions that may be delivered to this workload.
	Resume []string
	// MaxRolling bounds the workloads of the namespace that roll at the same time for one
	// change, zero when it doesn't.
	MaxRolling int
	// Notify is the notification target that the namespace chose, empty when it didn't.
	Notify string
}

// Placed is a text with the object it is on.
type Placed struct {
	On   Place
	Text string
}

// Place is an object with settings.
type Place int

// The places.
const (
	OnWorkload Place = iota
	OnNamespace
	OnController
)

// String is for users: a window "on the namespace".
func (p Place) String() string {
	return [...]string{"on the workload", "on the namespace", "of the controller"}[p]
}

// WindowProblem is a maintenance window that isn't understood.
func WindowProblem(text string, err error) Problem {
	return Problem{Key: Window, Value: text, Accepted: acceptedWindow, Why: err.Error()}
}

// AfterProblem is a list of workloads that can't be waited for.
func AfterProblem(names []string) Problem {
	return Problem{Key: After, Value: strings.Join(names, ", "), Accepted: acceptedAfter}
}

// NotifyProblem is a notification target that a namespace can't choose.
func NotifyProblem(target, why string) Problem {
	return Problem{Key: Notify, Value: target, Accepted: acceptedNotify, Why: why}
}

// readGates reads the settings that decide when the workload's turn is. One that isn't
// understood is treated as absent.
func (in *Intent) readGates(workload, namespace map[string]string) {
	in.NamespaceHeldBy, in.NamespaceHeld = namespace[Hold]
	in.readWindow(workload, OnWorkload, &in.Mistakes.Ignored)
	in.readWindow(namespace, OnNamespace, &in.Mistakes.Warnings)
	in.readAfter(workload)
	var problems []Problem
	in.First, problems = readFirst(workload)
	in.ignore(problems)
	in.Resume, problems = readResume(workload)
	in.ignore(problems)
	in.readMaxRolling(namespace)
	in.Notify = strings.TrimSpace(namespace[Notify])
}

func (in *Intent) ignore(problems []Problem) {
	in.Mistakes.Ignored = append(in.Mistakes.Ignored, problems...)
}

func (in *Intent) readWindow(annotations map[string]string, on Place, problems *[]Problem) {
	switch text, set := annotations[Window]; {
	case !set:
	case len(text) > maxValue:
		*problems = append(*problems, WindowProblem(text, fmt.Errorf("it is longer than %d KiB", maxValue>>10)))
	default:
		in.Windows = append(in.Windows, Placed{on, strings.TrimSpace(text)})
	}
}

func (in *Intent) readAfter(annotations map[string]string) {
	value, set := annotations[After]
	if !set {
		return
	}
	problem := Problem{Key: After, Value: value, Accepted: acceptedAfter}
	var all []string
	for element := range elements(value) {
		kind, name, found := strings.Cut(element, "/")
		if !found || len(validation.IsDNS1123Subdomain(strings.ToLower(kind))) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			problem.Why = fmt.Sprintf("%q isn't KIND/NAME", Shorten(element))
			in.ignore([]Problem{problem})
			return
		}
		all = append(all, element)
	}
	if len(all) == 0 || len(all) > MaxAfter || len(value) > maxValue {
		in.ignore([]Problem{problem})
		return
	}
	in.After = all
}

func (in *Intent) readMaxRolling(annotations map[string]string) {
	value, set := annotations[MaxRolling]
	if !set {
		return
	}
	most, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || most < 1 {
		in.Mistakes.Warnings = append(in.Mistakes.Warnings, Problem{Key: MaxRolling, Value: value, Accepted: acceptedMaxRolling})
		return
	}
	in.MaxRolling = most
}

func readFirst(annotations map[string]string) (bool, []Problem) {
	switch value, set := annotations[First]; strings.TrimSpace(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		if !set {
			return false, nil
		}
		return false, []Problem{{Key: First, Value: value, Accepted: acceptedBool}}
	}
}

// readResume reads stopped versions. Those that aren't stopped, or not any more, have no
// effect.
func readResume(annotations map[string]string) ([]string, []Problem) {
	value, set := annotations[Resume]
	if !set {
		return nil, nil
	}
	versions := slices.Collect(elements(value))
	digest := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	wrong := func(version string) bool { return len(version) < 10 || strings.TrimFunc(version, digest) != "" }
	if len(versions) == 0 || len(value) > maxValue || len(versions) > MaxResume || slices.ContainsFunc(versions, wrong) {
		return nil, []Problem{{Key: Resume, Value: value, Accepted: acceptedResume}}
	}
	return versions, nil
}

// elements are those of a list, separated by commas.
func elements(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for element := range strings.SplitSeq(list, ",") {
			if element = strings.TrimSpace(element); element != "" && !yield(element) {
				return
			}
		}
	}
}
