package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const (
	slowPackages = 10 // are listed at the end
	slowTests    = 15
)

// event is a line of "go test -json".
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// id is a test of a package, or a package.
type id struct{ pkg, test string }

func (i id) String() string {
	name := strings.TrimPrefix(strings.TrimPrefix(i.pkg, "github.com/lockstep-dev/lockstep"), "/")
	if i.test == "" {
		return name
	}
	return name + " " + i.test
}

type timed struct {
	id
	took time.Duration
}

// summary collects the results so far.
type summary struct {
	out            io.Writer
	output         map[id]*strings.Builder // of tests and packages that have not ended
	packages       []timed
	tests          []timed // without subtests
	passed, failed int     // tests, subtests included
	skipped        map[string][]id
	broken         []string
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[id]*strings.Builder{}, skipped: map[string][]id{}}
}

func (s *summary) take(e event) {
	of := id{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "build-fail":
		s.broken = append(s.broken, "build of "+e.ImportPath)
	case "output":
		if s.output[of] == nil {
			s.output[of] = &strings.Builder{}
		}
		s.output[of].WriteString(e.Output)
	case "pass", "fail", "skip":
		s.end(of, e.Action, time.Duration(e.Elapsed*float64(time.Second)))
	}
}

// end prints failures, and a line for each package.
func (s *summary) end(of id, action string, took time.Duration) {
	text := ""
	if b := s.output[of]; b != nil {
		text = b.String()
	}
	delete(s.output, of)
	switch {
	case of.test == "":
		s.packages = append(s.packages, timed{of, took})
		if action != "skip" || strings.TrimSpace(text) != "" {
			fmt.Fprintf(s.out, "%-4s  %6.1fs  %s\n", map[string]string{"pass": "ok", "fail": "FAIL", "skip": "-"}[action], took.Seconds(), of)
		}
		if action == "fail" {
			fmt.Fprint(s.out, indent(text))
			s.broken = append(s.broken, of.String())
		}
		return
	case !strings.Contains(of.test, "/"):
		s.tests = append(s.tests, timed{of, took})
	}
	switch action {
	case "pass":
		s.passed++
	case "skip":
		reason := skipReason(text)
		s.skipped[reason] = append(s.skipped[reason], of)
	case "fail":
		s.failed++
		fmt.Fprintf(s.out, "FAIL  %6.1fs  %s\n%s", took.Seconds(), of, indent(text))
	}
}

// skipReason is the message of a skipped test, without its place in the file. It is the last
// line that the test logs.
func skipReason(output string) string {
	reason := "it doesn't say why"
	for line := range strings.Lines(output) {
		if _, message, found := strings.Cut(strings.TrimSpace(line), ".go:"); found {
			_, message, _ = strings.Cut(message, ": ")
			reason = strings.TrimSpace(message)
		}
	}
	return reason
}

func indent(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// close prints where the time went and which tests were skipped.
func (s *summary) close() {
	for of, text := range s.output { // a test that never ended, such as one of a package that crashed
		if text.Len() > 0 && of.test != "" {
			s.broken = append(s.broken, of.String()+" (not ended)")
			fmt.Fprintf(s.out, "not ended: %s\n%s", of, indent(text.String()))
		}
	}
	s.slowest("slowest packages", s.packages, slowPackages)
	s.slowest("slowest tests", s.tests, slowTests)
	count := 0
	for _, reason := range s.reasons() {
		count += len(s.skipped[reason])
		fmt.Fprintf(s.out, "\nskipped: %d tests: %s\n", len(s.skipped[reason]), reason)
		if !isLater(reason) {
			for _, of := range s.skipped[reason] {
				fmt.Fprintf(s.out, "  %s\n", of)
			}
		}
	}
	for _, what := range s.broken {
		fmt.Fprintf(s.out, "\nfailed: %s\n", what)
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, count)
}

func (s *summary) reasons() []string {
	var all []string
	for reason := range s.skipped {
		all = append(all, reason)
	}
	slices.Sort(all)
	return all
}

func isLater(reason string) bool { return strings.HasPrefix(reason, labtest.SkipReason) }

func (s *summary) slowest(title string, list []timed, most int) {
	list = bySlowness(list)
	fmt.Fprintf(s.out, "\n%s\n", title)
	for _, t := range list[:min(most, len(list))] {
		fmt.Fprintf(s.out, "  %6.1fs  %s\n", t.took.Seconds(), t.id)
	}
}

func bySlowness(list []timed) []timed {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b timed) int { return int(b.took - a.took) })
	return list
}

// table has a line for each package and test: seconds, package, test.
func (s *summary) table() string {
	var text strings.Builder
	for _, t := range slices.Concat(bySlowness(s.packages), bySlowness(s.tests)) {
		fmt.Fprintf(&text, "%.2f\t%s\t%s\n", t.took.Seconds(), id{pkg: t.pkg}, t.test)
	}
	return text.String()
}

// elsewhere names the tiers that the skipped tests belong to.
func (s *summary) elsewhere() string {
	later := slices.DeleteFunc(s.reasons(), func(reason string) bool { return !isLater(reason) })
	return strings.Join(append([]string{""}, later...), ": ")
}

// verdict is the error of a run that must not count as passed.
func (s *summary) verdict(strict bool) error {
	if s.failed > 0 || len(s.broken) > 0 {
		return errors.New("the tests failed")
	}
	if s.passed == 0 {
		return fmt.Errorf("no test ran%s", s.elsewhere())
	}
	for reason, tests := range s.skipped {
		if strict && !isLater(reason) {
			return fmt.Errorf("%d tests were skipped that this tier includes: %s", len(tests), reason)
		}
	}
	return nil
}
