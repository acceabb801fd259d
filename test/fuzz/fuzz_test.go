package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const fuzz = "package a\n\nfunc FuzzA(f *testing.F) {\n}\n\nfunc FuzzB(f *testing.F) {}\n\nfunc TestA(t *testing.T) {}\n\n// func FuzzNot(f *testing.F)\n"
	for name, text := range map[string]string{
		"go.mod": "", "a/a_test.go": fuzz, "a/a.go": fuzz, "a/deep/deep_test.go": "func FuzzA(f *testing.F) {}\n",
		"other/go.mod": "", "other/other_test.go": fuzz, "a/testdata/x_test.go": fuzz, ".hidden/x_test.go": fuzz, "dist/x_test.go": fuzz,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		names []string
		want  []target
		err   string
	}{
		"all":  {nil, []target{{"a", "FuzzA"}, {"a", "FuzzB"}, {"a/deep", "FuzzA"}}, ""},
		"some": {[]string{"FuzzA"}, []target{{"a", "FuzzA"}, {"a/deep", "FuzzA"}}, ""},
		"none": {[]string{"FuzzA", "FuzzC"}, []target{{"a", "FuzzA"}, {"a/deep", "FuzzA"}}, "there is no fuzz target FuzzC"},
	}
	for name, c := range cases {
		got, err := find(root, c.names)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
	}
	if _, err := find(filepath.Join(root, "dist", "none"), nil); err == nil {
		t.Error("a directory that isn't there has fuzz targets")
	}
	if _, err := find(t.TempDir(), nil); err == nil || !strings.HasPrefix(err.Error(), "there are no fuzz targets") {
		t.Errorf("a directory without targets: error %v", err)
	}
}

func TestOnlyLate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		output string
		want   bool
	}{
		"the end of the time": {"fuzz: elapsed: 2s, execs: 10 (0/sec)\n--- FAIL: FuzzA (2.01s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\ta\t2.0s", true},
		"an input": {
			"fuzz: elapsed: 2s, execs: 10 (0/sec)\n--- FAIL: FuzzA (2.01s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:9: context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\nexit status 1", false,
		},
		"a seed":           {"--- FAIL: FuzzA (0.00s)\n    --- FAIL: FuzzA/seed#0 (0.00s)\n        a_test.go:9: bad\nFAIL", false},
		"does not compile": {"# a\na.go:1: undefined: b\nFAIL\ta [build failed]\nFAIL", false},
		"panic":            {"--- FAIL: FuzzA (2.01s)\n    context deadline exceeded\nFAIL\npanic: nil", false},
	}
	for name, c := range cases {
		if got := onlyLate(c.output); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":            {[]string{"--help"}, 0, "Usage:", ""},
		"an unknown flag": {[]string{"--tim", "1s"}, 2, "", "Usage:"},
		"no time":         {[]string{"--time", "0s"}, 2, "", "a target needs time"},
		"no target":       {[]string{"FuzzNobody"}, 1, "", "there is no fuzz target FuzzNobody"},
	}
	for name, c := range cases {
		var stdout, stderr strings.Builder
		code := command(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, &stdout, &stderr)
		}
	}
}
