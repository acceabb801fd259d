package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are the mutants of a package.
type counts struct {
	Lived     int // a test runs the code, and none notices the change
	Uncovered int // no test of the package runs the code; constants count too
	Noticed   int
}

// findings are the counts, and where the survivors are.
type findings struct {
	counts
	survivors []string
}

// judge fails when there are more survivors than the record says.
func (f findings) judge(pkg string, was counts, known bool) error {
	switch {
	case !known:
		return fmt.Errorf("%s is not on record: make mutation PKG=./%s RECORD=1 writes its numbers to %s", pkg, pkg, recordFile)
	case was != (counts{}) && (f.Lived > was.Lived || f.Uncovered > was.Uncovered):
		return fmt.Errorf("%s has more survivors than on record:\n\t%s", pkg, strings.Join(f.survivors, "\n\t"))
	}
	return nil
}

// describe is a line for people.
func (f findings) describe(was counts, known bool) string {
	line := fmt.Sprintf("%d noticed, %d survive, %d not covered", f.Noticed, f.Lived, f.Uncovered)
	if !known {
		return line + "; not on record"
	}
	line += fmt.Sprintf("; on record %d and %d", was.Lived, was.Uncovered)
	if f.Lived <= was.Lived && f.Uncovered <= was.Uncovered && f.Lived+f.Uncovered < was.Lived+was.Uncovered {
		line += ": RECORD=1 keeps the better numbers"
	}
	return line
}

// unmeasured begins the line of a package whose numbers aren't on record yet. It is measured and doesn't fail.
const unmeasured = "# not measured yet: "

const header = `# How many changes of the code no test of its package notices. make mutation fails when a number of
# survivors or of changes that are not covered grows, or when a package is not in this file. RECORD=1 writes it.
#
# package                                survive  not covered  noticed
`

// parseRecord reads survivors.txt.
func parseRecord(text string) (map[string]counts, error) {
	record := map[string]counts{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		var pkg string
		var c counts
		if _, err := fmt.Sscan(line, &pkg, &c.Lived, &c.Uncovered, &c.Noticed); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", recordFile, strings.TrimSpace(line), err)
		}
		record[pkg] = c
	}
	return record, nil
}

// formatRecord writes what parseRecord reads, and which of the mutated packages are missing.
func formatRecord(record map[string]counts, mutated []string) string {
	var text strings.Builder
	text.WriteString(header)
	for _, pkg := range sortedKeys(record) {
		c := record[pkg]
		fmt.Fprintf(&text, "%-40s %7d %12d %8d\n", pkg, c.Lived, c.Uncovered, c.Noticed)
	}
	for _, pkg := range mutated {
		if _, known := record[pkg]; !known {
			fmt.Fprintf(&text, "%s%s\n", unmeasured, pkg)
		}
	}
	return text.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
