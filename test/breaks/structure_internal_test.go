package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBreaksApply is the quick check of what the program here does slowly: each
// break finds the text that it changes, exactly once, and the test that it names
// exists.
func TestBreaksApply(t *testing.T) {
	t.Parallel()
	breaks, err := load(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaks {
		t.Run(b.ID, func(t *testing.T) {
			t.Parallel()
			source := slurped(t, filepath.Join("../..", b.File))
			if n := strings.Count(source, b.Find); n != 1 {
				t.Errorf("%s has the text %d times, want once:\n%s", b.File, n, b.Find)
			}
			if b.Find == b.Replace {
				t.Error("nothing is changed")
			}
			b.checkTest(t)
		})
	}
}

// checkTest looks for the function, and for the names of subtests, which may be
// values that the code itself gives names to.
func (b Break) checkTest(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", b.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(slurped(t, file))
	}
	function, subtests, _ := strings.Cut(b.Test, "/")
	if !regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(function) + `\(`).MatchString(all.String()) {
		t.Errorf("%s has no %s", b.Package, function)
	}
	for name := range strings.FieldsFuncSeq(subtests, func(r rune) bool { return r == '/' }) {
		word := strings.ReplaceAll(regexp.QuoteMeta(name), "_", "[ _]")
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(all.String()) {
			t.Errorf("%s has no subtest %s of %s", b.Package, name, function)
		}
	}
}
