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
	output                  string // of everything
	built                   bool
	ran, failed, skipped    []string // tests
	packageEnded, missesOne bool
}

// readRun parses the lines of "go test -json", which may include other lines.
func readRun(text string) testRun {
	r := testRun{built: true}
	var output strings.Builder
	for line := range strings.Lines(text) {
		var e struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal([]byte(line), &e) != nil {
			output.WriteString(line)
			continue
		}
		output.WriteString(e.Output)
		r.take(e.Action, e.Test)
		if e.Action == "build-fail" || e.FailedBuild != "" || strings.Contains(e.Output, "[setup failed]") || strings.Contains(e.Output, "[build failed]") {
			r.built = false
		}
	}
	r.output = strings.TrimSpace(output.String())
	r.missesOne = strings.Contains(r.output, labtest.NeedReason) || strings.Contains(r.output, labtest.StartReason)
	return r
}

func (r *testRun) take(action, test string) {
	switch {
	case test == "":
		r.packageEnded = r.packageEnded || action == "pass"
	case action == "run":
		r.ran = append(r.ran, test)
	case action == "fail":
		r.failed = append(r.failed, test)
	case action == "skip":
		r.skipped = append(r.skipped, test)
	}
}

// verdict is nil when the test has noticed the break: it ran to its end and failed by
// itself.
func (r testRun) verdict(b Break) error {
	switch {
	case !r.built:
		return fmt.Errorf("the change does not compile, so no test says anything:\n%s", r.output)
	case r.missesOne:
		return fmt.Errorf("%s did not run, because something is missing:\n%s", b.Test, r.output)
	case len(r.failed) > 0:
		return nil
	case !r.packageEnded:
		return fmt.Errorf("%s did not run to its end:\n%s", b.Test, r.output)
	case slices.Contains(r.skipped, b.Test):
		return fmt.Errorf("%s did not run, it was skipped:\n%s", b.Test, r.output)
	case len(r.ran) == 0:
		return fmt.Errorf("%s did not run: %s has no such test", b.Test, b.Package)
	case !slices.Contains(r.ran, b.Test):
		return fmt.Errorf("%s did not run, only %s:\n%s", b.Test, strings.Join(r.ran, ", "), r.output)
	}
	return fmt.Errorf("%s passes although %q is back", b.Test, b.Title)
}

// withName adds the name of a break to an error.
func withName(b Break, err error) error {
	return errors.New(b.ID + ": " + err.Error())
}
