package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReport(t *testing.T) {
	t.Parallel()
	got, err := parseReport([]byte(`{"files":[{"file_name":"a.go","mutations":[
		{"type":"X","status":"LIVED","line":3,"column":7},{"type":"X","status":"KILLED"},{"type":"X","status":"TIMED OUT"},
		{"type":"X","status":"NOT COVERED"},{"type":"X","status":"NOT VIABLE"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := findings{counts{Lived: 1, Uncovered: 1, Noticed: 2}, []string{"a.go:3:7 X"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(findings{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for reason, text := range map[string]string{"nothing was changed": `{"files":[]}`, "it is no JSON": "x"} {
		if _, err := parseReport([]byte(text)); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		found, was counts
		known      bool
		want       string
	}{
		"as on record":     {counts{2, 1, 9}, counts{2, 1, 9}, true, ""},
		"fewer":            {counts{1, 1, 9}, counts{2, 1, 9}, true, ""},
		"more survive":     {counts{3, 0, 9}, counts{2, 1, 9}, true, "more survivors"},
		"more not covered": {counts{2, 2, 9}, counts{2, 1, 9}, true, "more survivors"},
		"not on record":    {counts{0, 0, 9}, counts{}, false, "not on record"},
	}
	for name, c := range cases {
		err := findings{counts: c.found}.judge("internal/core/x", c.was, c.known)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRecord: the file is read as it is written, and names only packages that are mutated.
func TestRecord(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	record, err := parseRecord(string(text))
	if err != nil {
		t.Fatal(err)
	}
	mutated, err := packages(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), formatRecord(record, mutated)); diff != "" {
		t.Errorf("survivors.txt isn't as RECORD=1 writes it (-want +got):\n%s", diff)
	}
	if len(mutated) < 20 {
		t.Errorf("only %q are mutated", mutated)
	}
	for pkg := range record {
		if !strings.Contains(strings.Join(mutated, "\n")+"\n", pkg+"\n") {
			t.Errorf("survivors.txt names %s, which isn't mutated", pkg)
		}
	}
	if _, err := parseRecord("internal/core/x 1 two 3\n"); err == nil {
		t.Error("a line without numbers is accepted")
	}
}
