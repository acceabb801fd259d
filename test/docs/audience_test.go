package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
)

// isForUsers: all pages but those that only contributors read.
func (p *page) isForUsers() bool {
	forContributors := []string{"docs/contributing/", "docs/decisions/", "bench/", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	return !slices.ContainsFunc(forContributors, func(prefix string) bool { return strings.HasPrefix(p.path, prefix) })
}

// TestUserPagesHaveNoInternals: which test shows a sentence, and which decision is behind it, is on the
// pages in docs/contributing.
func TestUserPagesHaveNoInternals(t *testing.T) {
	t.Parallel()
	test := regexp.MustCompile(`\bTest[A-Z]\w*`)
	for _, p := range pages(t) {
		if !p.isForUsers() {
			continue
		}
		for _, name := range test.FindAllString(string(p.source), -1) {
			t.Errorf("%s names the test %s: that belongs in docs/contributing/promises", p.path, name)
		}
		each(p, func(n *ast.Link) {
			if target := path.Join(path.Dir(p.path), string(n.Destination)); strings.HasPrefix(target, "docs/decisions/") {
				t.Errorf("%s links to %s: that belongs in docs/contributing/promises", p.path, target)
			}
		})
	}
}

// TestGuidesAreShort: every situation in detail is on a reference page.
func TestGuidesAreShort(t *testing.T) {
	t.Parallel()
	const most = 1500
	for _, p := range pages(t) {
		if words := len(strings.Fields(string(p.source))); strings.HasPrefix(p.path, "docs/guides/") && words >= most {
			t.Errorf("%s is %d words long, want fewer than %d", p.path, words, most)
		}
	}
}

// TestPlainEnglish keeps habits out of the pages for users that readers stumbled over. CONTRIBUTING.md says what to write instead.
func TestPlainEnglish(t *testing.T) {
	t.Parallel()
	habit := regexp.MustCompile(`(?i)\b(so that|also when|who wants|whoever|a person|nobody|somebody|is none of|(restarts?|changes|writes|needs) no [a-z]+)\b`)
	for _, p := range pages(t) {
		if !p.isForUsers() {
			continue
		}
		for i, line := range strings.Split(string(p.source), "\n") {
			if found := habit.FindString(line); found != "" {
				t.Errorf("%s:%d: %q; see CONTRIBUTING.md", p.path, i+1, found)
			}
		}
	}
}

// TestComparisonIsShown: whatever the README says that Lockstep adds to another tool leads to a section with a session
// that a test runs.
func TestComparisonIsShown(t *testing.T) {
	t.Parallel()
	const adds = 2 // the column
	played, links := map[string]bool{}, 0
	var readme *page
	for _, p := range pages(t) {
		for section := range p.playedSections() {
			played[p.path+section] = true
		}
		if p.path == "README.md" {
			readme = p
		}
	}
	for row := range strings.SplitSeq(string(readme.source), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if !strings.HasPrefix(row, "| ") || len(cells) != 4 {
			continue
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)`).FindAllStringSubmatch(cells[adds], -1) {
			links++
			if !played[link[1]] {
				t.Errorf("README.md: %q adds something on %s, and no test runs a session there", cells[0], link[1])
			}
		}
	}
	if links < 7 {
		t.Errorf("only %d links were found in the comparison", links)
	}
}

// playedSections are the sections with a session that a test runs, as links name them: "#" and the heading's anchor, or
// nothing for what comes before the first section.
func (p *page) playedSections() map[string]bool {
	found, section := map[string]bool{}, ""
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level > 1 {
				section = "#" + anchor(headingText(n, p.source))
			}
		case *ast.FencedCodeBlock:
			if slices.ContainsFunc(p.marksAbove(n), func(mark string) bool { return strings.HasPrefix(mark, "run") }) {
				found[section] = true
			}
		}
	}
	return found
}
