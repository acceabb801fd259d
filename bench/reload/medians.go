package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// series are the values of one figure over the runs of one program.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// spread is how much the runs differ among themselves.
func (s series) spread() float64 {
	return slices.Max(s) - slices.Min(s)
}

// medianRow is one figure of one scenario, of the first program and of another.
type medianRow struct {
	scenario, program, figure string
	first, other              series
	least                     float64
}

// isWorse reports whether the other program's median is higher by more than the first
// program's runs differ among themselves.
func (r medianRow) isWorse() bool {
	return r.other.median()-r.first.median() > max(r.first.spread(), r.least)
}

// medians compares every program of a report with the first one.
func medians(r report) []medianRow {
	var rows []medianRow
	for _, name := range r.Programs[1:] {
		for _, scenario := range scenariosOf(r) {
			rows = append(rows, mediansOf(scenario, name, r.runs(scenario, r.Programs[0]), r.runs(scenario, name))...)
		}
	}
	return rows
}

// mediansOf collects the runs of one scenario, figure by figure.
func mediansOf(scenario, program string, first, other []result) []medianRow {
	var rows []medianRow
	for i := range min(len(first), len(other)) {
		for j, f := range figures(first[i], other[i]) {
			if i == 0 {
				rows = append(rows, medianRow{scenario: scenario, program: program, figure: f.name, least: f.least})
			}
			rows[j].first, rows[j].other = append(rows[j].first, f.a), append(rows[j].other, f.b)
		}
	}
	return rows
}

func scenariosOf(r report) []string {
	var names []string
	for _, one := range r.Results {
		if !slices.Contains(names, one.Scenario) {
			names = append(names, one.Scenario)
		}
	}
	return names
}

func (r *report) runs(scenario, program string) []result {
	var found []result
	for _, one := range r.Results {
		if one.Scenario == scenario && one.Program == program {
			found = append(found, one)
		}
	}
	return found
}

// printMedians shows each figure of every program next to the first one's, and which are
// worse beyond the spread of the first program against itself.
func printMedians(to io.Writer, path string) error {
	var r report
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(r.Programs) < 2 {
		return fmt.Errorf("%s has %d programs; two are needed to compare", path, len(r.Programs))
	}
	rows := medians(r)
	t := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "scenario\tfigure\t%s\tspread\tprogram\tmedian\tspread\truns\t\t\n", r.Programs[0])
	worse := 0
	for _, row := range rows {
		mark := ""
		if row.isWorse() {
			mark, worse = "WORSE", worse+1
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f\t%s\t%.2f\t%.2f\t%d\t%s\t\n", row.scenario, row.figure,
			row.first.median(), row.first.spread(), row.program, row.other.median(), row.other.spread(), len(row.other), mark)
	}
	_ = t.Flush()
	fmt.Fprintf(to, "%d of %d medians are worse than those of %s beyond its own spread\n", worse, len(rows), r.Programs[0])
	return nil
}
