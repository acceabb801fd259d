package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestMedians: a figure is worse only when its median is higher by more than the first
// program's runs differ among themselves.
func TestMedians(t *testing.T) {
	t.Parallel()
	r := report{Programs: []string{"before", "after"}}
	for i, peak := range []float64{40, 42, 41} {
		r.add(result{Scenario: "burst", Program: "before", loadCost: loadCost{PeakMiB: peak, Rollouts: 5}})
		r.add(result{Scenario: "burst", Program: "after", loadCost: loadCost{PeakMiB: []float64{43, 30, 44}[i], Rollouts: 6}})
	}
	worse := map[string]bool{}
	for _, row := range medians(r) {
		if len(row.first) != 3 || len(row.other) != 3 {
			t.Errorf("%s has %d and %d runs", row.figure, len(row.first), len(row.other))
		}
		worse[row.figure] = row.isWorse()
	}
	if worse["peak memory, MiB"] {
		t.Error("43 instead of 41 is within the spread of 2")
	}
	if !worse["rollouts"] || worse["stale"] {
		t.Errorf("worse are %v, want the rollouts only", worse)
	}
	path := filepath.Join(t.TempDir(), "runs.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printMedians(&out, path); err != nil || !strings.Contains(out.String(), "1 of 7 medians are worse than those of before") {
		t.Errorf("error %v\n%s", err, out.String())
	}
}
