package main_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsQuoteTheBreaks: docs/contributing/defects.md says what each break does, and a break
// that is fixed must not leave an old text there. The tables of the predecessors
// tell more or less of it; what they tell is true.
func TestDocsQuoteTheBreaks(t *testing.T) {
	t.Parallel()
	docs := slurp(t, "../../docs/contributing/defects.md")
	files, err := filepath.Glob("*.break")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no breaks: %v", err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(file, ".break")
		b := read(t, file)
		if !slices.Contains(strings.Split(docs, "\n"), b.row(id)) && !b.inRow(docs, id) {
			t.Errorf("docs/contributing/defects.md does not say of %s what its break says; want the row\n%s", id, b.row(id))
		}
	}
}

// TestDocsNameOnlyBreaksThatExist: a break that is gone is not promised.
func TestDocsNameOnlyBreaksThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.break")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)(?:([A-Z]{2}-\d+b?), )?([A-Z]{2}-\d+b?) \|$|^\| ([A-Z]{2}-\d+b?) \|.*\.break`)
	for _, found := range named.FindAllStringSubmatch(slurp(t, "../../docs/contributing/defects.md"), -1) {
		for _, id := range found[1:] {
			if id != "" && !slices.Contains(files, id+".break") {
				t.Errorf("docs/contributing/defects.md names the break %s, which does not exist", id)
			}
		}
	}
}

// row is how the table of kubernetes-reloader, or the one of configmap-attacher
// and base-app, tells of a break.
func (b change) row(id string) string {
	if !strings.HasPrefix(id, "KR-") {
		dir := strings.TrimPrefix(b.dir, "./")
		return fmt.Sprintf("| %[1]s | %[2]s | `%[3]s` in `%[4]s` | [%[1]s.break](../../test/breaks/%[1]s.break), in `%[5]s` |", id, b.title, b.test, dir, b.file)
	}
	what := fmt.Sprintf("`%s` becomes `%s`", oneLine(b.find), oneLine(b.replace))
	if b.replace == "" {
		what = fmt.Sprintf("`%s` is removed", oneLine(b.find))
	}
	return fmt.Sprintf("| %s | %s | `%s` | %s | %s |", id, b.title, b.file, what, b.test)
}

// inRow looks for the table of k8s-config-controller, where a row names defect,
// tests and breaks only.
func (b change) inRow(docs, id string) bool {
	if !strings.HasPrefix(id, "CC-") {
		return false
	}
	for line := range strings.SplitSeq(docs, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) == 4 && slices.Contains(strings.Split(strings.TrimSuffix(cells[3], " |"), ", "), id) {
			function, _, _ := strings.Cut(b.test, "/")
			return strings.Contains(line, function)
		}
	}
	return false
}

func oneLine(text string) string {
	return strings.TrimSpace(text)
}
