package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const example = `# labels reload the application
file: internal/agent.go
test: ./internal/agent TestLabels/a_dot.
-	if same {
-		return
+	if false {
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse("CC-14", example)
	if err != nil {
		t.Fatal(err)
	}
	want := Break{
		ID: "CC-14", Title: "labels reload the application", File: "internal/agent.go",
		Package: "./internal/agent", Test: "TestLabels/a_dot.", Find: "\tif same {\n\t\treturn", Replace: "\tif false {",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Break{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := pattern(got.Test); got != `^TestLabels$/^a_dot\.$` {
		t.Errorf("-run %s would select other tests too", got)
	}
	for reason, text := range map[string]string{
		"no test":         "# a\nfile: a.go\n-a\n",
		"nothing to find": "# a\nfile: a.go\ntest: ./a TestA\n+a\n",
		"a strange line":  example + "hello\n",
	} {
		if _, err := Parse("X-1", text); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

func TestLoadSelects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, id := range []string{"CC-1", "CC-14", "CCC-1", "KR-1"} {
		write(t, filepath.Join(dir, id+".break"), example)
	}
	cases := map[string]struct {
		wanted []string
		ids    string
	}{
		"all":                     {nil, "CC-1 CC-14 CCC-1 KR-1"},
		"one":                     {[]string{"CC-1"}, "CC-1"},
		"a beginning and another": {[]string{"CC", "KR-1"}, "CC-1 CC-14 KR-1"},
	}
	for name, c := range cases {
		breaks, err := load(dir, c.wanted)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(breaks); got != c.ids {
			t.Errorf("%s: %q, want %q", name, got, c.ids)
		}
	}
	if _, err := load(dir, []string{"CC-1", "CC-2"}); !errors.As(err, &unknownError{}) {
		t.Errorf("a name that no break has gives the error %v", err)
	}
}

func TestApplyAndRevert(t *testing.T) {
	t.Parallel()
	b, err := Parse("CC-14", example)
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	file := filepath.Join(tree, b.File)
	const whole = "\tif same {\n\t\treturn\n\t}\n"
	write(t, file, whole)
	revert, err := b.apply(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := slurped(t, file); got != "\tif false {\n\t}\n" {
		t.Errorf("broken: %q", got)
	}
	if err := revert(); err != nil || slurped(t, file) != whole {
		t.Errorf("reverted: %q, error %v", slurped(t, file), err)
	}
	write(t, file, whole+whole)
	if _, err := b.apply(tree); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Errorf("a text that is there twice gives the error %v", err)
	}
}

// TestCopyAndHash: the hash changes with everything that can change a result, and with
// nothing else.
func TestCopyAndHash(t *testing.T) {
	t.Parallel()
	names := []string{"a.go", "gone.go", "link", "sub/b.sh", "test/breaks/X-1.break"}
	from := t.TempDir()
	write(t, filepath.Join(from, "a.go"), "package a")
	write(t, filepath.Join(from, "sub/b.sh"), "echo")
	write(t, filepath.Join(from, "test/breaks/X-1.break"), example)
	for _, err := range []error{os.Symlink("a.go", filepath.Join(from, "link")), os.Chmod(filepath.Join(from, "sub/b.sh"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "1")
	write(t, filepath.Join(to, "stale.go"), "package stale")
	hash := func() string {
		t.Helper()
		sum, err := copyTree(from, to, names)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := hash()
	if got := slurped(t, filepath.Join(to, "link")); got != "package a" {
		t.Errorf("the link leads to %q", got)
	}
	if info, err := os.Stat(filepath.Join(to, "sub/b.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the script is not executable: %v, error %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(to, "stale.go")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of an earlier run is still there: %v", err)
	}
	write(t, filepath.Join(from, "test/breaks/X-1.break"), "another")
	if hash() != first {
		t.Error("another break changes the hash of the tree")
	}
	write(t, filepath.Join(from, "a.go"), "package b")
	changed := hash()
	if changed == first {
		t.Error("another content does not change the hash")
	}
	write(t, filepath.Join(from, "gone.go"), "package b")
	if hash() == changed {
		t.Error("another file does not change the hash")
	}
}

// TestResume: what an earlier run has seen noticed counts only for the same tree and break.
func TestResume(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dist", "breaks.json")
	noticedOne, _ := Parse("CC-1", example)
	missed, _ := Parse("CC-2", example)
	first, err := readResults(file, "tree", false)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{out: &strings.Builder{}, results: first, began: time.Now()}
	if left := s.left([]Break{noticedOne, missed}); len(left) != 2 {
		t.Fatalf("the first run leaves %q", names(left))
	}
	for _, err := range []error{s.report(noticedOne, outcome{}), s.report(missed, outcome{missed: errors.New("it passes")})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	edited, _ := Parse("CC-1", example+"+\tmore\n")
	cases := map[string]struct {
		tree  string
		fresh bool
		b     Break
		want  bool
	}{
		"the same":             {"tree", false, noticedOne, true},
		"another tree":         {"another", false, noticedOne, false},
		"the break was edited": {"tree", false, edited, false},
		"it was missed":        {"tree", false, missed, false},
		"a fresh run":          {"tree", true, noticedOne, false},
	}
	for name, c := range cases {
		again, err := readResults(file, c.tree, c.fresh)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.has(c.b); got != c.want {
			t.Errorf("%s: taken over %t, want %t", name, got, c.want)
		}
	}
	write(t, file, "{")
	if again, err := readResults(file, "tree", false); err != nil || again.has(noticedOne) {
		t.Errorf("half a file: error %v, want to begin anew", err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	b := Break{ID: "HI-3", Test: "TestX"}
	cases := map[string]struct {
		p    progress
		o    outcome
		want string
	}{
		"the first of a run that continues": {
			progress{all: 254, takenOver: 16, ran: 1, elapsed: 8 * time.Second},
			outcome{},
			"[17/254] HI-3 noticed by TestX in 12s (about 32 minutes left)",
		},
		"the mean of what ran": {
			progress{all: 20, ran: 10, elapsed: 2 * time.Minute},
			outcome{late: true},
			"[10/20] HI-3 noticed by TestX in 12s, by a wait in vain (about 2 minutes left)",
		},
		"the last": {
			progress{all: 20, takenOver: 5, ran: 15, elapsed: time.Minute},
			outcome{},
			"[20/20] HI-3 noticed by TestX in 12s",
		},
		"missed": {
			progress{all: 2, ran: 1, elapsed: 12 * time.Second},
			outcome{missed: errors.New("TestX did not run to its end:\npanic")},
			"[1/2] HI-3 MISSED after 12s: TestX did not run to its end (about 12 seconds left)",
		},
	}
	for name, c := range cases {
		c.o.took = 12 * time.Second
		if got := c.p.line(b, c.o); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
	if got := (progress{all: 254, takenOver: 17}).begin(); !strings.HasPrefix(got, "17 of 254 breaks were noticed by an earlier run") {
		t.Errorf("a run that continues begins with %q", got)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	b := Break{ID: "HI-3", Title: "it is lost", Package: "./a", Test: "TestX/sub"}
	event := func(action, test, output string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":\"a\",\"Test\":%q,\"Output\":%q}\n", action, test, output)
	}
	started := event("run", "TestX", "") + event("run", "TestX/sub", "")
	cases := map[string]struct {
		output string
		want   string // none means noticed
	}{
		"failed":          {started + event("fail", "TestX/sub", "") + event("fail", "TestX", "") + event("fail", "", ""), ""},
		"a subtest of it": {started + event("run", "TestX/sub/a", "") + event("fail", "TestX/sub/a", "") + event("fail", "TestX/sub", "") + event("fail", "TestX", "") + event("fail", "", ""), ""},
		"the setup fails": {event("run", "TestX", "") + event("fail", "TestX", "") + event("fail", "", ""), "TestX/sub did not run, only TestX"},
		"only its parent fails": {
			started + event("pass", "TestX/sub", "") + event("fail", "TestX", "") + event("fail", "", ""),
			`TestX/sub passes although "it is lost" is back, only TestX fails`,
		},
		"another test fails": {
			started + event("run", "TestX/subs", "") + event("fail", "TestX/subs", "") + event("pass", "TestX/sub", "") + event("fail", "TestX", "") + event("fail", "", ""),
			`TestX/sub passes although "it is lost" is back, only TestX/subs, TestX fails`,
		},
		"it took ten minutes": {
			started + event("output", "TestX/sub", "panic: test timed out after 10m0s\n") + event("fail", "TestX/sub", "") + event("fail", "", ""),
			"TestX/sub did not run to its end",
		},
		"passed": {started + event("pass", "TestX/sub", "") + event("pass", "TestX", "") + event("pass", "", ""), `TestX/sub passes although "it is lost" is back`},
		"skipped": {
			started + event("output", "TestX/sub", "x.go:1: this test belongs to \"make test-all\"\n") + event("skip", "TestX/sub", "") + event("pass", "TestX", "") + event("pass", "", ""),
			"TestX/sub did not run, it was skipped:\nx.go:1: this test belongs to \"make test-all\"",
		},
		"no test":            {event("output", "", "testing: warning: no tests to run\n") + event("pass", "", ""), "TestX/sub did not run: ./a has no such test"},
		"no subtest":         {event("run", "TestX", "") + event("pass", "TestX", "") + event("pass", "", ""), "TestX/sub did not run, only TestX"},
		"the parent skipped": {event("run", "TestX", "") + event("skip", "TestX", "") + event("pass", "", ""), "TestX/sub did not run, only TestX"},
		"does not compile": {
			"# a\na.go:1: undefined\n" + event("build-fail", "", "") + event("fail", "", "FAIL a [build failed]\n"), "the change does not compile",
		},
		"an import is missing": {event("output", "", "FAIL a [setup failed]\n") + event("fail", "", ""), "the change does not compile"},
		"crashed":              {started + event("output", "TestX/sub", "panic: nil\n") + event("fail", "", ""), "TestX/sub did not run to its end:\npanic: nil"},
		"a package is missing": {
			started + event("output", "TestX/sub", "this test needs nginx: run \"make packages\"\n") + event("fail", "TestX/sub", "") + event("fail", "", ""),
			"TestX/sub did not run, because something is missing",
		},
		"nothing": {"go: cannot find main module\n", "TestX/sub did not run to its end:\ngo: cannot find main module"},
	}
	for name, c := range cases {
		err := readRun(c.output).verdict(b)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestControl: a test that doesn't pass without a break can't notice one.
func TestControl(t *testing.T) {
	t.Parallel()
	g := group{Package: "./a", Test: "TestX/sub"}
	event := func(action, test string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":\"a\",\"Test\":%q}\n", action, test)
	}
	started := event("run", "TestX") + event("run", "TestX/sub")
	cases := map[string]struct{ output, want string }{
		"passes":         {started + event("pass", "TestX/sub") + event("pass", "TestX") + event("pass", ""), ""},
		"fails":          {started + event("fail", "TestX/sub") + event("fail", "TestX") + event("fail", ""), "TestX/sub fails without a break"},
		"a parent fails": {started + event("pass", "TestX/sub") + event("fail", "TestX") + event("fail", ""), "TestX/sub fails without a break"},
		"skipped":        {started + event("skip", "TestX/sub") + event("pass", "TestX") + event("pass", ""), "TestX/sub did not run, it was skipped"},
		"no test":        {event("pass", ""), "TestX/sub did not run: ./a has no such test"},
	}
	for name, c := range cases {
		err := readRun(c.output).control(g)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLate: only waits of the named test count.
func TestLate(t *testing.T) {
	t.Parallel()
	output := func(test, text string) string {
		return fmt.Sprintf("{\"Action\":\"output\",\"Test\":%q,\"Output\":%q}\n", test, text)
	}
	cases := map[string]struct {
		output string
		want   bool
	}{
		"itself":       {output("TestX/sub", "    x_test.go:1: not within 45s: 2 pods"), true},
		"its subtest":  {output("TestX/sub/a", "    x_test.go:1: not within 45s: 2 pods"), true},
		"its parent":   {output("TestX", "    x_test.go:1: not within 45s: 2 pods"), false},
		"another test": {output("TestX/subs", "    x_test.go:1: not within 45s: 2 pods"), false},
		"at once":      {output("TestX/sub", "    x_test.go:1: 2 pods, want 3"), false},
	}
	for name, c := range cases {
		if got := readRun(c.output).late("TestX/sub"); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestSince: of a changed file, or changed themselves.
func TestSince(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, output)
		}
	}
	var breaks []Break
	for id, file := range map[string]string{"A-1": "a.go", "B-1": "b.go", "C-1": "c.go"} {
		write(t, filepath.Join(root, file), "package a")
		write(t, filepath.Join(root, "test/breaks/"+id+".break"), example)
		breaks = append(breaks, Break{ID: id, File: file})
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	write(t, filepath.Join(root, "a.go"), "package a // committed")
	git("commit", "-qam", "second")
	write(t, filepath.Join(root, "test/breaks/C-1.break"), "not yet committed")
	for commit, want := range map[string]string{"": "A-1 B-1 C-1", "HEAD~1": "A-1 C-1", "HEAD": "C-1"} {
		left, err := since(t.Context(), root, commit, slices.Clone(breaks))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(left, func(a, b Break) int { return strings.Compare(a.ID, b.ID) })
		if got := names(left); got != want {
			t.Errorf("since %q: %q, want %q", commit, got, want)
		}
	}
	if _, err := since(t.Context(), root, "HEAD~7", breaks); err == nil {
		t.Error("an unknown commit leaves no error")
	}
}

// TestWithin: what didn't begin in time is left, and listed.
func TestWithin(t *testing.T) {
	t.Parallel()
	s := &session{out: &strings.Builder{}, began: time.Now().Add(-time.Hour), within: time.Minute}
	s.queue = newQueue([]Break{{ID: "B-2", Package: "b", Test: "TestB"}, {ID: "A-1", Package: "a", Test: "TestA"}, {ID: "B-1", Package: "b", Test: "TestB"}})
	if err := (&worker{session: s}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(s.queue.left()); got != "A-1 B-1 B-2" {
		t.Errorf("%q are left, want all", got)
	}
}

// TestQueue: a worker stays in its package, goes on to the largest one without a worker,
// and helps others only when there is none.
func TestQueue(t *testing.T) {
	t.Parallel()
	var breaks []Break
	for i, pkg := range []string{"small", "big", "big", "middle", "big", "middle", "big"} {
		breaks = append(breaks, Break{ID: fmt.Sprintf("%s-%d", pkg, i), Package: pkg, Test: fmt.Sprintf("Test%d", i)})
	}
	breaks = append(breaks, Break{ID: "small-7", Package: "small", Test: "Test0"})
	q := newQueue(breaks)
	if got := names(q.groups["small"][0].breaks); got != "small-0 small-7" {
		t.Errorf("the breaks of one test are %q, want them in one group", got)
	}
	last := [2]string{}
	for i, want := range []struct {
		worker int
		pkg    string
	}{{0, "big"}, {1, "middle"}, {0, "big"}, {1, "middle"}, {1, "small"}, {1, "big"}, {0, "big"}} {
		g, ok := q.next(last[want.worker])
		if !ok || g.Package != want.pkg {
			t.Fatalf("step %d: worker %d gets %+v, want one of %s", i, want.worker, g, want.pkg)
		}
		last[want.worker] = g.Package
	}
	for worker := range last {
		if g, ok := q.next(last[worker]); ok {
			t.Errorf("%s is handed out twice", names(g.breaks))
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":            {[]string{"--help"}, 0, "Examples:", ""},
		"an unknown flag": {[]string{"--frish"}, 2, "", "frish"},
		"an unknown base": {[]string{"--since", "no-such-commit"}, 1, "", "list the changes since no-such-commit"},
		"no worker":       {[]string{"--workers", "0"}, 2, "", "at least one"},
		"an unknown name": {[]string{"XX-99"}, 2, "", `no break matches "XX-99"`},
	}
	for name, c := range cases {
		var stdout, stderr strings.Builder
		code := command(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, &stdout, &stderr)
		}
		if (c.code == 2) != strings.Contains(stderr.String(), "Usage:") {
			t.Errorf("%s: stderr %q", name, &stderr)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func slurped(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
