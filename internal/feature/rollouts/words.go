package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func withStanding(findings []input.Finding, s input.Standing) []input.Finding {
	return matching(findings, func(f input.Finding) bool { return f.Standing == s })
}

// mounted lists the changed inputs that a refresh reaches, at least in part.
func mounted(due []input.Finding) []input.Finding {
	return matching(due, func(f input.Finding) bool { return f.Refresh != input.Nothing })
}

// unrefreshable lists the changed inputs that a refresh does not reach as a whole.
func unrefreshable(due []input.Finding) []input.Finding {
	return matching(due, func(f input.Finding) bool { return f.Refresh != input.Everything })
}

func contains(findings []input.Finding, id input.ID) bool {
	return slices.ContainsFunc(findings, func(f input.Finding) bool { return f.ID == id })
}

//
//go:noinline
func matching(findings []input.Finding, wanted func(input.Finding) bool) []input.Finding {
	var found []input.Finding
	for _, f := range findings {
		if wanted(f) {
			found = append(found, f)
		}
	}
	return found
}

// changes lists the old and new versions by short digests: "configmap/app 3fa9c1d2e4 ->
// 77ab01c9de".
func changes(due []input.Finding) string {
	parts := make([]string, len(due))
	for i, f := range due {
		from := "unknown"
		if !f.Delivered.IsZero() && f.Delivered != f.Current { // else pods may have loaded one in between
			from = f.Delivered.Short()
		}
		parts[i] = f.ID.String() + " " + from + " -> " + cmp.Or(f.Current.Short(), "unknown")
	}
	return strings.Join(parts, ", ")
}

// versions lists the inputs with their current versions.
func versions(findings []input.Finding) string {
	parts := make([]string, len(findings))
	for i, f := range findings {
		parts[i] = withVersion(f)
	}
	return strings.Join(parts, ", ")
}

// withVersion names an input and its current version, if that is known.
func withVersion(f input.Finding) string {
	return strings.TrimSpace(f.ID.String() + " " + f.Current.Short())
}

func names(findings []input.Finding) string {
	parts := make([]string, len(findings))
	for i, f := range findings {
		parts[i] = f.ID.String()
	}
	return strings.Join(parts, ", ")
}

func problems(intent settings.Intent) string {
	parts := make([]string, len(intent.Mistakes.Problems))
	for i, p := range intent.Mistakes.Problems {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", settings.Shorten(text))
}

// revertedInWords lists the reverted inputs and their revisions; empty when none was
// reverted.
func revertedInWords(findings []input.Finding) string {
	var parts []string
	for _, f := range findings {
		if to, back := f.BarredFor(input.Undone); back {
			parts = append(parts, fmt.Sprintf("%s was reverted: new pods start from revision %s", withVersion(f), to))
		}
	}
	return strings.Join(parts, "; ")
}
