package rollouts

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// asking is a family that needs the past of the workload.
type asking struct{ *scene }

func (a asking) Assess(ctx context.Context, _ *kube.Workload, _ settings.Intent, _ record.Entry, past kube.AskPast) (input.Assessment, error) {
	_, err := past(ctx, timeline.FromRevisions)
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

// TestStartsAreAskedForOnce: the pods are listed only for a family that needs them, once in a look, and
// for the revision that pods are made from.
func TestStartsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	p := &past{workload: s.workload, waiting: &sync.Map{}}
	p.request = func(context.Context, *kube.Workload) (timeline.Past, error) {
		return timeline.Past{Asked: true, Revisions: []timeline.Revision{{Name: "web-a"}, {Name: "web-b", Current: true}}}, nil
	}
	var asked []string
	accepted := now
	p.starts = func(_ context.Context, _ *kube.Workload, revision string) (pods.Starts, error) {
		asked = append(asked, revision)
		return pods.Starts{Asked: true, Version: 7, Accepted: accepted}, nil
	}
	for _, from := range []timeline.Evidence{timeline.FromRevisions, timeline.FromPods, timeline.FromPods, timeline.FromRevisions} {
		got, err := p.ask(t.Context(), from)
		if err != nil || len(got.Revisions) != 2 || from == timeline.FromPods && got.Starts.Version != 7 {
			t.Errorf("answered with %+v, error %v", got, err)
		}
	}
	if len(asked) != 1 || asked[0] != "web-b" {
		t.Errorf("the pods of %q were listed, want those of web-b once", asked)
	}
	p.close(true)
	next := &past{workload: s.workload, waiting: p.waiting, request: p.request, starts: p.starts}
	if _, err := next.ask(t.Context(), timeline.FromPods); err != nil || len(asked) != 1 {
		t.Errorf("while it waits, the pods are listed again: %q, error %v", asked, err)
	}
	accepted = time.Time{}
	empty := &past{workload: s.workload, waiting: &sync.Map{}, request: p.request, starts: p.starts}
	for want := 2; want <= 3; want++ {
		if _, err := empty.ask(t.Context(), timeline.FromPods); err != nil || len(asked) != want {
			t.Errorf("pods that there weren't are listed %d times, want %d, error %v", len(asked), want, err)
		}
		empty.close(true)
		empty = &past{workload: s.workload, waiting: empty.waiting, request: p.request, starts: p.starts}
	}
	none := &past{workload: s.workload, waiting: &sync.Map{}, request: p.request}
	if got, err := none.ask(t.Context(), timeline.FromPods); err != nil || !got.Starts.Unknown {
		t.Errorf("without pods the answer is %+v, error %v", got.Starts, err)
	}
}
