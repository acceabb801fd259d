package main_test

import (
	"os"
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
	files, err := filepath.Glob("*.break")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no breaks: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".break"), func(t *testing.T) {
			t.Parallel()
			b := read(t, file)
			source := slurp(t, filepath.Join("../..", b.file))
			if n := strings.Count(source, b.find); n != 1 {
				t.Errorf("%s has the text %d times, want once:\n%s", b.file, n, b.find)
			}
			if b.find == b.replace {
				t.Error("nothing is changed")
			}
			b.checkTest(t)
		})
	}
}

type change struct {
	title           string
	file, dir, test string
	find, replace   string
}

func read(t *testing.T, file string) change {
	t.Helper()
	var b change
	var find, replace []string
	for line := range strings.SplitSeq(strings.TrimRight(slurp(t, file), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "file: "):
			b.file = line[len("file: "):]
		case strings.HasPrefix(line, "test: "):
			b.dir, b.test, _ = strings.Cut(line[len("test: "):], " ")
		case strings.HasPrefix(line, "-"):
			find = append(find, line[1:])
		case strings.HasPrefix(line, "+"):
			replace = append(replace, line[1:])
		case strings.HasPrefix(line, "# "):
			b.title = line[len("# "):]
		default:
			t.Errorf("line %q is not understood", line)
		}
	}
	b.find, b.replace = strings.Join(find, "\n"), strings.Join(replace, "\n")
	if b.file == "" || b.dir == "" || b.test == "" || b.find == "" {
		t.Fatalf("%s names no file, test or text: %+v", file, b)
	}
	return b
}

// checkTest looks for the function, and for the names of subtests, which may be
// values that the code itself gives names to.
func (b change) checkTest(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", b.dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(slurp(t, file))
	}
	function, subtests, _ := strings.Cut(b.test, "/")
	if !regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(function) + `\(`).MatchString(all.String()) {
		t.Errorf("%s has no %s", b.dir, function)
	}
	// Names such as "deployment on 1.36.0" are put together from values.
	subtests = strings.ReplaceAll(subtests, "_on_", "/")
	for name := range strings.FieldsFuncSeq(subtests, func(r rune) bool { return r == '/' }) {
		if files, err := filepath.Glob(filepath.Join("../../examples/app", name+".yaml")); err == nil && len(files) == 1 {
			continue
		}
		word := strings.ReplaceAll(regexp.QuoteMeta(name), "_", "[ _]")
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(all.String()) {
			t.Errorf("%s has no subtest %s of %s", b.dir, name, function)
		}
	}
}

func slurp(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
