package rollouts

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// TestAwaits: with OnDelete, a version counts as delivered when the last older pod is gone, whichever
// writer rolled it out.
func TestAwaits(t *testing.T) {
	t.Parallel()
	older := health.Status{Observed: true, Counted: true, OnDelete: true, Counts: health.Counts{Wanted: 2, Existing: 2, Updated: 1}}
	rolling, gone := older, older
	rolling.OnDelete, gone.Counts.Updated = false, 2
	otherKeys := fingerprint.Version{Basis: "1:00ff00ff", Sum: v1.Sum}
	finding := func(reason input.Reason, delivered fingerprint.Version) input.Finding {
		return input.Finding{ID: app, Standing: input.Record, Reason: reason, Live: true, Versions: input.Versions{Delivered: delivered, Current: v1}}
	}
	for name, tc := range map[string]struct {
		reason  string
		finding input.Finding
		before  record.Delivered
		rollout health.Status
		want    bool
	}{
		"Rollout":       {"another writer's rollout", finding(input.DeliveredByRollout, v2), record.Delivered{}, older, true},
		"Keys":          {"one that brought other keys", finding(input.NewBasis, otherKeys), record.Delivered{Version: otherKeys}, older, true},
		"KeysUnordered": {"and nothing shows what its pods loaded", finding(input.NewBasis, v1.Unknown()), record.Delivered{Version: otherKeys}, older, true},
		"KeysRolling":   {"pods are replaced by themselves", finding(input.NewBasis, otherKeys), record.Delivered{Version: otherKeys}, rolling, false},
		"KeysGone":      {"no older pod is left", finding(input.NewBasis, otherKeys), record.Delivered{Version: otherKeys}, gone, false},
		"Algorithm":     {"another algorithm isn't a rollout", finding(input.NewBasis, fingerprint.Version{Basis: "0:*", Sum: v1.Sum}), record.Delivered{Version: fingerprint.Version{Basis: "0:*", Sum: v1.Sum}}, older, false},
		"AlgorithmThen": {"and doesn't end the wait for one", finding(input.NewBasis, fingerprint.Version{Basis: "0:*", Sum: v1.Sum}), record.Delivered{Version: fingerprint.Version{Basis: "0:*", Sum: v1.Sum}, Awaits: true}, older, true},
		"Unrecorded":    {"our own patch that isn't on record", finding(input.DeliveredBefore, v2), record.Delivered{Version: v2}, older, true},
		"Arrived":       {"pods from before it was required still run", finding(input.Arrived, fingerprint.Version{}), record.Delivered{}, older, true},
		"NewSource":     {"the template of a known workload uses one more source", finding(input.Baseline, fingerprint.Version{}), record.Delivered{}, older, true},
	} {
		known := record.Entry{Inputs: map[input.ID]record.Delivered{app: tc.before, db: {Version: v1}}}
		if got := (outcome{rollout: tc.rollout}).awaits(known, tc.finding, record.Delivered{}); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
	first := finding(input.Baseline, fingerprint.Version{})
	if (outcome{rollout: older}).awaits(record.Entry{}, first, record.Delivered{}) {
		t.Error("a workload that wasn't known waits for its older pods")
	}
}

// TestTrial: a failure is that of an image only when nothing else was given with it.
func TestTrial(t *testing.T) {
	t.Parallel()
	web, config := image(due(db, 0)), due(app, 0)
	settled := image(inStep(db))
	proven := with(settled, func(f *input.Finding) { f.Notes.Proven = true })
	running := record.Delivered{Trial: "before"}
	mixed := record.Delivered{Trial: "before", Mixed: true}
	putBack := with(web, func(f *input.Finding) { f.Reason = input.PutBack })
	cases := map[string]struct {
		reason  string
		finding input.Finding
		before  record.Delivered
		moves   []input.Finding // none: nothing was written
		sick    bool
		want    record.Delivered
	}{
		"Given":          {"the rollout begins", web, record.Delivered{}, []input.Finding{web}, false, record.Delivered{Trial: "after"}},
		"GivenTogether":  {"configuration came with it", web, record.Delivered{}, []input.Finding{web, config}, false, record.Delivered{Trial: "after", Mixed: true}},
		"GivenToTheSick": {"the workload was not healthy before", web, record.Delivered{}, []input.Finding{web}, true, record.Delivered{Trial: "after", Mixed: true}},
		"Runs":           {"nothing new", settled, running, nil, false, running},
		"ThenOthers":     {"configuration came after it", settled, running, []input.Finding{config}, false, record.Delivered{Trial: "after", Mixed: true}},
		"StaysMixed":     {"another digest while the configuration is not proven", web, mixed, []input.Finding{web}, false, record.Delivered{Trial: "after", Mixed: true}},
		"Proven":         {"it ended", proven, mixed, nil, false, record.Delivered{}},
		"ProvenBefore":   {"configuration after the end is no concern of it", proven, running, []input.Finding{config}, false, record.Delivered{}},
		"Config":         {"configuration has no template of its own", config, record.Delivered{}, []input.Finding{config}, false, record.Delivered{}},
		"PutBack":        {"that the workload is not healthy is why", putBack, running, []input.Finding{putBack}, true, record.Delivered{Trial: "after"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := outcome{healthy: !tc.sick}
			if tc.moves != nil {
				o.decision = Decision{Verb: RollOut, Delivered: true, Due: tc.moves}
				o.rolledOut = kube.RolledOut{Template: record.Template{Sum: "after"}}
			}
			if template, mixed := o.trial(tc.finding, tc.before); template != tc.want.Trial || mixed != tc.want.Mixed {
				t.Errorf("%s: trial %q, mixed %t, want %q, %t", tc.reason, template, mixed, tc.want.Trial, tc.want.Mixed)
			}
		})
	}
}
