package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded joins lines that "go test -json" has written.
func recorded(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

const (
	passes = `{"Time":"2026-11-16T10:00:00Z","Action":"start","Package":"github.com/lockstep-dev/lockstep/internal/a"}
{"Time":"2026-11-16T10:00:00Z","Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/a","Test":"TestFine"}
{"Time":"2026-11-16T10:00:00Z","Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/a","Test":"TestFine","Output":"=== RUN   TestFine\n"}
{"Time":"2026-11-16T10:00:00Z","Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/a","Test":"TestFine","Output":"--- PASS: TestFine (0.00s)\n"}
{"Time":"2026-11-16T10:00:00Z","Action":"pass","Package":"github.com/lockstep-dev/lockstep/internal/a","Test":"TestFine","Elapsed":0.2}
{"Time":"2026-11-16T10:00:00Z","Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/a","Output":"PASS\n"}
{"Time":"2026-11-16T10:00:00Z","Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/a","Output":"ok  \tgithub.com/lockstep-dev/lockstep/internal/a\t0.302s\n"}
{"Time":"2026-11-16T10:00:00Z","Action":"pass","Package":"github.com/lockstep-dev/lockstep/internal/a","Elapsed":0.3}`

	fails = `{"Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad/sub"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad/sub","Output":"    b_test.go:7: got 3, want 4\n"}
{"Action":"fail","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad/sub","Elapsed":1}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad","Output":"--- FAIL: TestBad (2.00s)\n"}
{"Action":"fail","Package":"github.com/lockstep-dev/lockstep/internal/b","Test":"TestBad","Elapsed":2}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/b","Output":"a process outlives the tests: 4711 sleep\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/b","Output":"FAIL\n"}
{"Action":"fail","Package":"github.com/lockstep-dev/lockstep/internal/b","Elapsed":2.5}`

	doesNotBuild = `{"ImportPath":"github.com/lockstep-dev/lockstep/internal/c","Action":"build-output","Output":"# github.com/lockstep-dev/lockstep/internal/c\n"}
{"ImportPath":"github.com/lockstep-dev/lockstep/internal/c","Action":"build-output","Output":"internal/c/c.go:3:9: undefined: nothing\n"}
{"ImportPath":"github.com/lockstep-dev/lockstep/internal/c","Action":"build-fail"}
{"Action":"start","Package":"github.com/lockstep-dev/lockstep/internal/c"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/c","Output":"FAIL\tgithub.com/lockstep-dev/lockstep/internal/c [build failed]\n"}
{"Action":"fail","Package":"github.com/lockstep-dev/lockstep/internal/c","Elapsed":0,"FailedBuild":"github.com/lockstep-dev/lockstep/internal/c"}`

	crashes = `{"Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/d","Test":"TestPanics"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/d","Test":"TestPanics","Output":"=== RUN   TestPanics\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/d","Test":"TestPanics","Output":"panic: nil map\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/d","Test":"TestPanics","Output":"FAIL\tgithub.com/lockstep-dev/lockstep/internal/d\t0.005s\n"}`

	later = `{"Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode","Output":"=== RUN   TestNode\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode","Output":"    node_test.go:9: starts a node\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode","Output":"    tier.go:61: this test belongs to \"make test-all\"\n"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode","Output":"--- SKIP: TestNode (0.00s)\n"}
{"Action":"skip","Package":"github.com/lockstep-dev/lockstep/internal/e","Test":"TestNode","Elapsed":0}
{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/internal/e","Elapsed":0.1}`

	otherwise = `{"Action":"run","Package":"github.com/lockstep-dev/lockstep/internal/f","Test":"TestRoot"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/f","Test":"TestRoot","Output":"    f_test.go:9: only root can\n"}
{"Action":"skip","Package":"github.com/lockstep-dev/lockstep/internal/f","Test":"TestRoot","Elapsed":0}
{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/internal/f","Elapsed":0.1}`

	withoutTests = `{"Action":"start","Package":"github.com/lockstep-dev/lockstep/internal/g"}
{"Action":"output","Package":"github.com/lockstep-dev/lockstep/internal/g","Output":"?   \tgithub.com/lockstep-dev/lockstep/internal/g\t[no test files]\n"}
{"Action":"skip","Package":"github.com/lockstep-dev/lockstep/internal/g","Elapsed":0}`
)

func TestSummary(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		in      string
		strict  bool
		want    []string // in the output, in this order
		without string
		err     string // none means that the run passes
	}{
		"pass": {
			reason: "what passes is a line, without its output", in: recorded(passes), strict: true,
			want:    []string{"ok       0.3s  internal/a\n", "\n1 passed, 0 failed, 0 skipped\n"},
			without: "=== RUN",
		},
		"fail": {
			reason: "what fails shows its output, and the run fails", in: recorded(passes, fails),
			want: []string{
				"FAIL     1.0s  internal/b TestBad/sub\n        b_test.go:7: got 3, want 4\n",
				"FAIL     2.5s  internal/b\n    a process outlives the tests: 4711 sleep\n",
				"\nfailed: internal/b\n", "\n1 passed, 2 failed, 0 skipped\n",
			},
			err: "the tests failed",
		},
		"a package fails by itself": {
			reason: "every test passes, and the package's own check does not",
			in:     strings.Replace(recorded(passes), `{"Time":"2026-11-16T10:00:00Z","Action":"pass","Package":"github.com/lockstep-dev/lockstep/internal/a","Elapsed":0.3}`, `{"Action":"fail","Package":"github.com/lockstep-dev/lockstep/internal/a","Elapsed":0.3}`, 1),
			want:   []string{"FAIL     0.3s  internal/a", "\nfailed: internal/a\n", "\n1 passed, 0 failed, 0 skipped\n"},
			err:    "the tests failed",
		},
		"build failure": {
			reason: "the compiler's words are shown", in: recorded(passes, doesNotBuild),
			want: []string{"internal/c/c.go:3:9: undefined: nothing\n", "\nfailed: build of github.com/lockstep-dev/lockstep/internal/c\n", "\nfailed: internal/c\n", "\n1 passed, 0 failed, 0 skipped\n"},
			err:  "the tests failed",
		},
		"panic": {
			reason: "a test that never ended has not passed, even if nothing else says so", in: recorded(passes, crashes),
			want: []string{"not ended: internal/d TestPanics\n", "    panic: nil map\n", "\nfailed: internal/d TestPanics (not ended)\n"},
			err:  "the tests failed",
		},
		"later": {
			reason: "a test of a later tier is counted, not listed, and no failure", in: recorded(passes, later), strict: true,
			want:    []string{"\nskipped: 1 tests: this test belongs to \"make test-all\"\n", "\n1 passed, 0 failed, 1 skipped\n"},
			without: "\n  internal/e TestNode",
		},
		"skipped": {
			reason: "another skip is listed", in: recorded(passes, otherwise),
			want: []string{"\nskipped: 1 tests: only root can\n  internal/f TestRoot\n", "\n1 passed, 0 failed, 1 skipped\n"},
		},
		"skipped in CI": {
			reason: "what CI includes must run there", in: recorded(passes, otherwise), strict: true,
			want: []string{"  internal/f TestRoot\n"}, err: "1 tests were skipped that this tier includes: only root can",
		},
		"nothing": {
			reason: "a run without tests shows nothing", in: "", want: []string{"\n0 passed, 0 failed, 0 skipped\n"}, err: "no test ran",
		},
		"only skipped": {
			reason: "a run that leaves everything out shows nothing either", in: recorded(later), err: `no test ran: this test belongs to "make test-all"`,
		},
		"no test files": {
			reason: "a package without tests is not one that was skipped", in: recorded(passes, withoutTests), strict: true,
			want: []string{"\n1 passed, 0 failed, 0 skipped\n"},
		},
		"words of go": {
			reason: "what is no event is passed on", in: recorded("go: downloading example.com v1.0.0", passes),
			want: []string{"go: downloading example.com v1.0.0\n"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(strings.NewReader(c.in), &out, c.strict, "")
			if err == nil && c.err != "" || err != nil && err.Error() != c.err {
				t.Errorf("%s: error %v, want %q", c.reason, err, c.err)
			}
			rest := out.String()
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s: want %q in the rest of the output\n%s\nof\n%s", c.reason, want, rest, out.String())
				}
				rest = after
			}
			if c.without != "" && strings.Contains(out.String(), c.without) {
				t.Errorf("%s: it shows %q:\n%s", c.reason, c.without, out.String())
			}
		})
	}
}

// TestSlowest: packages and tests are listed by their time, subtests are part of their test.
func TestSlowest(t *testing.T) {
	t.Parallel()
	in := recorded(
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/a","Test":"TestQuick","Elapsed":0.5}`,
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/a","Test":"TestSlow/sub","Elapsed":8}`,
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/a","Test":"TestSlow","Elapsed":9}`,
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/a","Elapsed":9.5}`,
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/b","Test":"TestMiddle","Elapsed":3}`,
		`{"Action":"pass","Package":"github.com/lockstep-dev/lockstep/b","Elapsed":30}`,
	)
	var out strings.Builder
	times := filepath.Join(t.TempDir(), "times")
	if err := run(strings.NewReader(in), &out, false, times); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\nslowest packages\n")
	const want = `    30.0s  b
     9.5s  a

slowest tests
     9.0s  a TestSlow
     3.0s  b TestMiddle
     0.5s  a TestQuick

4 passed, 0 failed, 0 skipped
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the end of the output (-want +got):\n%s", diff)
	}
	table, err := os.ReadFile(times)
	if err != nil {
		t.Fatal(err)
	}
	const lines = "30.00\tb\t\n9.50\ta\t\n9.00\ta\tTestSlow\n3.00\tb\tTestMiddle\n0.50\ta\tTestQuick\n"
	if diff := cmp.Diff(lines, string(table)); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

// TestListsAreShort: a run of many packages lists only the slowest.
func TestListsAreShort(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for range slowPackages + slowTests {
		in.WriteString(`{"Action":"pass","Package":"p","Test":"TestX","Elapsed":1}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":1}` + "\n")
	}
	var out strings.Builder
	if err := run(strings.NewReader(in.String()), &out, false, ""); err != nil {
		t.Fatal(err)
	}
	_, end, _ := strings.Cut(out.String(), "\nslowest packages\n")
	packages, tests, _ := strings.Cut(end, "\nslowest tests\n")
	if strings.Count(packages, "p\n") != slowPackages || strings.Count(tests, "p TestX\n") != slowTests {
		t.Errorf("the lists are\n%s", end)
	}
}
