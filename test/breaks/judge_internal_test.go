package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestJudge plays breaks in a small module. Only a test that passes without a break judges one.
func TestJudge(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	write(t, filepath.Join(tree, "go.mod"), "module sums\n\ngo 1.26\n")
	write(t, filepath.Join(tree, "a/a.go"), "package a\n\nfunc Sum(a, b int) int { return a + b }\n")
	write(t, filepath.Join(tree, "a/a_test.go"), `package a

import "testing"

func TestSum(t *testing.T) {
	if Sum(1, 2) != 3 {
		t.Error("wrong")
	}
}

func TestNeverPasses(t *testing.T) { t.Error("wrong") }

func TestParent(t *testing.T) {
	t.Run("sub", func(*testing.T) {})
	if Sum(1, 2) != 3 {
		t.Error("wrong")
	}
}
`)
	cases := map[string]struct{ test, replace, missed, printed string }{
		"noticed":            {"TestSum", "a - b", "", "TestSum passes without a break"},
		"not noticed":        {"TestSum", "b + a", "TestSum passes although", "MISSED"},
		"the control failed": {"TestNeverPasses", "a - b", "TestNeverPasses fails without a break", "CONTROL FAILED"},
		"a parent notices":   {"TestParent/sub", "a - b", "TestParent/sub passes although", "MISSED"},
	}
	for name, c := range cases {
		results, err := readResults(filepath.Join(t.TempDir(), "breaks.json"), "tree", true)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		s := &session{out: &out, results: results, began: time.Now()}
		b := Break{ID: "X-1", File: "a/a.go", Package: "./a", Test: c.test, Find: "a + b", Replace: c.replace}
		g := group{Package: b.Package, Test: b.Test, breaks: []Break{b}}
		if err := (&worker{session: s, tree: tree}).judge(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		missed := ""
		if len(s.missed) > 0 {
			missed = s.missed[0].Error()
		}
		if !strings.Contains(missed, c.missed) || (missed == "") != (c.missed == "") {
			t.Errorf("%s: missed %q, want %q", name, missed, c.missed)
		}
		if !strings.Contains(out.String(), c.printed) {
			t.Errorf("%s: printed %q, want %q", name, &out, c.printed)
		}
		if results.has(b) != (c.missed == "") {
			t.Errorf("%s: kept as noticed %t", name, results.has(b))
		}
	}
}
