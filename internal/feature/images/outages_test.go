package images

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

// TestOutagesAreLogged: once for each registry and change of its state, with the cause, however many
// images are checked, and not for answers about one image. A registry that keeps changing is logged a
// few times.
func TestOutagesAreLogged(t *testing.T) {
	t.Parallel()
	var lines []string
	clock := time.Now()
	now := func() time.Time { return clock }
	checked := Checked(NewMetrics(prometheus.NewRegistry(), now), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), now)
	failure := func(kind registry.FailureKind) error {
		return &registry.Error{Kind: kind, What: "digest of r.example/app:1", Answer: "no answer", Cause: errors.New("refused")}
	}
	type check struct {
		host string
		err  error
		want string // in the one line that is logged
	}
	steps := []check{
		{"r.example", nil, ""},
		{"r.example", failure(registry.Denied), ""},
		{"r.example", failure(registry.Unreachable), "result=Unreachable r.example/app:1"},
		{"r.example", failure(registry.Unreachable), ""},
		{"r.example", failure(registry.Limited), ""}, // It is left alone.
		{"other.example", failure(registry.Limited), "result=Limited other.example"},
		{"r.example", failure(registry.Broken), "result=Broken r.example"},
		{"r.example", failure(registry.Missing), "answers again r.example"},
		{"r.example", nil, ""},
		{"r.example", failure(registry.Unreachable), "result=Unreachable r.example/app:1"}, // a second outage
		{"r.example", failure(registry.Limited), ""},
		{"r.example", nil, "answers again r.example"},
		{"r.example", failure(registry.Broken), "result=Broken r.example"},
	}
	for range 10 { // It keeps changing.
		steps = append(steps, check{"r.example", nil, ""}, check{"r.example", failure(registry.Unreachable), ""}, check{"r.example", failure(registry.Limited), ""})
	}
	for step, c := range append(steps,
		check{"later", nil, ""},
		check{"r.example", failure(registry.Limited), "result=Unreachable refused"}, // It lasts, and has a cause.
		check{"r.example", nil, "answers again r.example"},
	) {
		if c.host == "later" {
			clock = clock.Add(sameOutage)
			continue
		}
		lines = nil
		checked(c.host, c.err)
		got := strings.ReplaceAll(strings.Join(lines, "\n"), `"`, "")
		for word := range strings.FieldsSeq(c.want) {
			if !strings.Contains(got, word) {
				t.Errorf("step %d: %q does not say %q", step, got, word)
			}
		}
		if (c.want == "") != (len(lines) == 0) || len(lines) > 1 {
			t.Errorf("step %d: %q, want %q", step, lines, c.want)
		}
	}
}

// TestOutagesAreBounded: annotations name registries, and the log remembers only so many.
func TestOutagesAreBounded(t *testing.T) {
	t.Parallel()
	o := newOutages(funcr.New(func(string, string) {}, funcr.Options{}), time.Now)
	for i := range 3 * maxOutages {
		o.checked(fmt.Sprint("r", i, ".example"), &registry.Error{Kind: registry.Unreachable})
	}
	if len(o.hosts) > maxOutages {
		t.Errorf("%d are remembered", len(o.hosts))
	}
}
