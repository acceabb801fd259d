package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// testRun is the parsed output of "go test -json".
type testRun struct {
	output               string            // of everything
	outputs              map[string]string // of each test
	built                bool
	ran, failed, skipped []string // tests
	packagePassed        bool
}

// readRun parses the lines of "go test -json", which may include other lines.
func readRun(text string) testRun {
	r := testRun{built: true, outputs: map[string]string{}}
	var output strings.Builder
	for line := range strings.Lines(text) {
		var e struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal([]byte(line), &e) != nil {
			output.WriteString(line)
			continue
		}
		output.WriteString(e.Output)
		r.outputs[e.Test] += e.Output
		r.take(e.Action, e.Test)
		if e.Action == "build-fail" || e.FailedBuild != "" || strings.Contains(e.Output, "[setup failed]") || strings.Contains(e.Output, "[build failed]") {
			r.built = false
		}
	}
	r.output = strings.TrimSpace(output.String())
	return r
}

func (r *testRun) take(action, test string) {
	switch {
	case test == "":
		r.packagePassed = r.packagePassed || action == "pass"
	case action == "run":
		r.ran = append(r.ran, test)
	case action == "fail":
		r.failed = append(r.failed, test)
	case action == "skip":
		r.skipped = append(r.skipped, test)
	}
}

// verdict is nil when the test has noticed the break: it, or a subtest of it, ran to its end and
// failed. A parent that fails before or beside it says nothing about the break.
func (r testRun) verdict(b Break) error {
	if err := r.ranAt(b.Package, b.Test); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.failed, func(test string) bool { return within(b.Test, test) }) {
		if len(r.failed) > 0 {
			return fmt.Errorf("%s passes although %q is back, only %s fails:\n%s", b.Test, b.Title, strings.Join(r.failed, ", "), r.output)
		}
		return fmt.Errorf("%s passes although %q is back", b.Test, b.Title)
	}
	return nil
}

// control is nil when the test passes without a break.
func (r testRun) control(g group) error {
	if err := r.ranAt(g.Package, g.Test); err != nil {
		return err
	}
	if !r.packagePassed {
		return fmt.Errorf("%s fails without a break, so it can't notice one:\n%s", g.Test, r.output)
	}
	return nil
}

// ranAt is nil when a test ran to its end.
func (r testRun) ranAt(pkg, test string) error {
	switch {
	case !r.built:
		return fmt.Errorf("the change does not compile, so no test says anything:\n%s", r.output)
	case strings.Contains(r.output, labtest.NeedReason), strings.Contains(r.output, labtest.StartReason):
		return fmt.Errorf("%s did not run, because something is missing:\n%s", test, r.output)
	case !r.packagePassed && len(r.failed) == 0, strings.Contains(r.output, "panic: test timed out"):
		return fmt.Errorf("%s did not run to its end:\n%s", test, r.output)
	case slices.Contains(r.skipped, test):
		return fmt.Errorf("%s did not run, it was skipped:\n%s", test, r.output)
	case len(r.ran) == 0:
		return fmt.Errorf("%s did not run: %s has no such test", test, pkg)
	case !slices.Contains(r.ran, test):
		return fmt.Errorf("%s did not run, only %s:\n%s", test, strings.Join(r.ran, ", "), r.output)
	}
	return nil
}

// late reports whether the test failed because a wait ended in vain. With a break this is
// usually what the defect looks like, but it is also what a machine with too much to do looks like.
func (r testRun) late(name string) bool {
	for test, output := range r.outputs {
		if within(name, test) && strings.Contains(output, labtest.LateReason) {
			return true
		}
	}
	return false
}

// within reports whether a test is the named one or a subtest of it.
func within(name, test string) bool { return test == name || strings.HasPrefix(test, name+"/") }

// withName adds the name of a break to an error.
func withName(b Break, err error) error {
	return errors.New(b.ID + ": " + err.Error())
}
