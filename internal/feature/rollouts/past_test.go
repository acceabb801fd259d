package rollouts

import (
	"context"
	"errors"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// asking is a family that needs the past of the workload.
type asking struct{ *scene }

func (a asking) Assess(ctx context.Context, _ *kube.Workload, _ settings.Intent, _ record.Entry, past kube.AskPast) (input.Assessment, error) {
	_, err := past(ctx)
	return input.Assessment{Findings: a.findings}, err
}

// TestPastIsAskedForOnce: two families and the judgement ask in each look, and the API server
// hears of it once; and not again while a change waits, unless the workload has changed.
func TestPastIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.findings = []input.Finding{due(app, 0)}
	s.entry = &record.Entry{ID: web("web").ID(), UID: s.workload.UID, Inputs: map[input.ID]record.Delivered{app: {Version: v1, From: "1"}}, Coverage: record.Coverage{Template: record.Template{Generation: -1, Sum: "other"}}}
	s.workload.Status.Observed = true
	asked, past := 0, timeline.Past{Asked: true}
	var failure error
	d := s.dependencies()
	d.Families = []Family{asking{s}, asking{s}}
	d.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) {
		asked++
		return past, failure
	}
	loop := New(DefaultOptions(), d)
	look := func(why string, want int) {
		t.Helper()
		if _, err := loop.gatherer.Gather(t.Context(), web("web")); !errors.Is(err, failure) || asked != want {
			t.Errorf("%s: the API server was asked %d times, want %d; error %v, want %v", why, asked, want, err, failure)
		}
	}
	look("first", 1)
	look("it waits", 1)
	s.workload.Revision++
	look("another revision", 2)
	s.workload.UID = "another"
	look("a namesake", 3)
	past.Refused = errors.New("forbidden")
	s.workload.Revision++
	look("without the permission", 4)
	look("it may have been granted", 5)
	past = timeline.Past{Asked: true, NotActed: true}
	look("its controller has not acted", 6)
	look("it may have", 7)
	past, s.findings = timeline.Past{Asked: true}, []input.Finding{inStep(app)}
	look("nothing waits", 8)
	look("so nothing is kept", 9)
	failure = errors.New("no answer")
	look("an error ends the look", 10)
}
