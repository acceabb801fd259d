package images

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestEnforce: only what the template says and what the registry says count. Nothing of
// what a record could tell bars it.
func TestEnforce(t *testing.T) {
	t.Parallel()
	due := Verdict{Standing: input.Due, Reason: input.Changed, To: pin("", "2")}
	cases := map[string]struct {
		reason string
		has    string
		change func(*Observation)
		want   Verdict
	}{
		"InStep":     {reason: "the template has the digest in the original's form", has: "app@" + digest("2"), want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("", "2")}},
		"Unanswered": {reason: "no registry has said anything", has: "app:1.2", change: func(o *Observation) { o.Found = Pin{} }, want: Verdict{Standing: input.Settled, Reason: input.Unresolved}},
		"Tag":        {reason: "a tag is no digest", has: "app:1.2", want: due},
		"Moved":      {reason: "the tag moved", has: "app@" + digest("1"), want: due},
		"Drift":      {reason: "a person's pin is reverted", has: "app@" + digest("7"), change: given("2"), want: due},
		"Form":       {reason: "the digest in another form is another text", has: "app:1.2@" + digest("2"), want: due},
		"Repository": {reason: "so is the repository in another spelling", has: "docker.io/library/app@" + digest("2"), want: due},
		"Elsewhere":  {reason: "the digest of another repository", has: "side@" + digest("2"), want: due},
		"Bad":        {reason: "there is no quarantine", has: "app@" + digest("1"), change: func(o *Observation) { o.Memo = o.Memo.withBad(digest("2")) }, want: due},
		"Contested":  {reason: "there is no contest", has: "app:1.2", change: func(o *Observation) { o.Memo.Contested, o.Memo.Again = true, []time.Time{now, now, now} }, want: due},
		"Failed":     {reason: "nothing is put back", has: "app@" + digest("2"), change: func(o *Observation) { o.Trial.On, o.Trial.Health = true, health.Failed }, want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("", "2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observation(t, tc.has, tc.change)
			o.Template.Image = tc.has
			if diff := cmp.Diff(tc.want, Enforce(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
