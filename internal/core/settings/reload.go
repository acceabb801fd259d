package settings

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
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

// Narrowing are the parts of a reload annotation that follow fewer sources.
type Narrowing struct {
	// Search follows the referenced sources whose own annotation is match.
	Search bool
	// Except are the sources that the workload leaves out.
	Except []Exception
}

// Exception leaves out sources that the elements before it follow, and those that are followed
// by reference. In "secret/*, !secret/tls-*, secret/tls-web" it doesn't affect the last element.
type Exception struct {
	Pattern

	// After is how many listed patterns precede it.
	After int
}

// leavesOut reports whether an exception applies to the source, as one that the listed pattern
// with this index matches; -1 stands for a reference.
func (n Narrowing) leavesOut(s input.ID, index int) bool {
	return slices.ContainsFunc(n.Except, func(e Exception) bool { return index < e.After && e.Matches(s) })
}

// Follows reports whether a workload with this intent follows the source. A source that
// the workload names wins over the source's own never; a workload's never wins over
// everything.
func (in Intent) Follows(s input.ID, referenced bool, own Source) bool {
	if in.Mode == Never {
		return false
	}
	for i, p := range in.Listed {
		if p.Matches(s) && (!p.IsGlob() || own.Mode != Never) && !in.leavesOut(s, i) {
			return true
		}
	}
	if !referenced || own.Mode == Never || in.leavesOut(s, -1) {
		return false
	}
	return own.Mode == Follow || in.Mode == Follow && (in.Auto || in.Search && own.Match)
}

// readReload reads the reload annotation of a workload. One that only leaves out sources doesn't
// ask for any: the next wider scope decides about the others.
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
		in.Mistakes.TooMany = fmt.Sprintf("annotation %s is longer than %d KiB", Reload, maxReload>>10)
		return
	}
	in.readList(value)
	switch {
	case in.Mistakes.TooMany != "":
		in.Listed, in.Except = nil, nil
	case in.Auto || in.Search || len(in.Listed)+len(in.Mistakes.Problems) > 0:
	case len(in.Except) > 0:
		in.Mode = Unset
	default:
		in.notUnderstood(value)
	}
}

// readList reads the elements until one isn't understood, or there are too many: a long
// list must not make other workloads wait.
func (in *Intent) readList(value string) {
	elements, patterns, stars := 0, 0, 0
	for element := range strings.SplitSeq(value, ",") {
		p, ok := in.readElement(strings.TrimSpace(element))
		if !ok {
			in.notUnderstood(value)
			return
		}
		elements++
		each := strings.Count(p.Name, "*")
		if each > 0 {
			patterns++
			if p.Prefix() == "" {
				stars++
			}
		}
		switch {
		case each > MaxStarsEach:
			in.Mistakes.TooMany = fmt.Sprintf("annotation %s contains a pattern with more than %d stars", Reload, MaxStarsEach)
		case patterns > MaxPatterns:
			in.Mistakes.TooMany = fmt.Sprintf("annotation %s contains more than %d patterns", Reload, MaxPatterns)
		case stars > MaxStars:
			in.Mistakes.TooMany = fmt.Sprintf("annotation %s contains more than %d patterns that begin with a star, and Lockstep compares each of them with every name", Reload, MaxStars)
		case elements > maxElements:
			in.Mistakes.TooMany = fmt.Sprintf("annotation %s lists more than %d elements", Reload, maxElements)
		default:
			continue
		}
		return
	}
}

// readElement reads one element of the list, and returns its pattern if it has one. It isn't ok
// when the element isn't understood.
func (in *Intent) readElement(element string) (p Pattern, ok bool) {
	switch element {
	case "":
		return Pattern{}, true
	case "auto":
		in.Auto = true
		return Pattern{}, true
	case "search":
		in.Search = true
		return Pattern{}, true
	}
	name, except := strings.CutPrefix(element, "!")
	s, err := input.ParseSource(name)
	if p = Pattern(s); err != nil || !p.isSound() {
		return Pattern{}, false
	}
	if except {
		in.Except = append(in.Except, Exception{Pattern: p, After: len(in.Listed)})
	} else {
		in.Listed = append(in.Listed, p)
	}
	return p, true
}

// notUnderstood reports the whole annotation, since users can search for that text.
func (in *Intent) notUnderstood(value string) {
	in.Mistakes.Problems = append(in.Mistakes.Problems, Problem{Key: Reload, Value: value, Accepted: acceptedReload})
}
