package configs_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// secretOf is the content of the Secret "db".
func secretOf(value string) fingerprint.Content {
	return fingerprint.NewKeyedHasher([]byte("k")).At("shop", "Secret", "db").Content(nil, map[string][]byte{"key": []byte(value)})
}

// TestUpgradeOfTheAlgorithm: what an earlier program put on record of a Secret is
// compared with what that program would write now, and with nothing else.
func TestUpgradeOfTheAlgorithm(t *testing.T) {
	t.Parallel()
	db, all := input.Secret("db"), fingerprint.AllKeys()
	before := func(value string) fingerprint.Version { return secretOf(value).Before(all) }
	mark := func(v fingerprint.Version) input.Mark { return input.Tracked(v.Short()) }
	now, old := mark(secretOf("1").Version(all)), mark(before("1"))
	absent := fingerprint.Version{Basis: before("1").Basis, Sum: "absent"}
	cases := map[string]struct {
		reason    string
		given     record.Delivered
		evictFor  string
		shown     input.Mark
		revisions []timeline.Revision
		want      input.Reason
		rebased   bool
		shows     input.Mark
	}{
		"Equal":    {reason: "it is written down anew, and nothing else happens", given: record.Delivered{Version: before("1")}, want: input.InStep, rebased: true, shows: now},
		"Changed":  {reason: "a change while the controller was down is due, and what was given stays as it was written", given: record.Delivered{Version: before("0")}, want: input.Changed, shows: now},
		"Absent":   {reason: "a required source has come meanwhile, and nothing shows that the pods started with its last content", given: record.Delivered{Version: absent}, want: input.Changed, shows: now},
		"Unknown":  {reason: "what was due at first sight is due", given: record.Delivered{Version: before("1").Unknown()}, want: input.Changed, shows: now},
		"Keys":     {reason: "other keys came with a rollout, and nothing shows that it loaded this content", given: record.Delivered{Version: secretOf("1").Before(fingerprint.SomeKeys("other"))}, want: input.Changed, shows: now},
		"Template": {reason: "the template shows the digest of the earlier program: it stays", given: record.Delivered{Version: before("1"), Shown: old}, shown: old, want: input.InStep, rebased: true, shows: old},
		"Evicting": {reason: "a series of evictions goes on and does not begin again", given: record.Delivered{Version: before("0")}, evictFor: db.String() + old.String(), want: input.Changed, shows: old},
		"Unrecorded": {
			reason: "a revision shows that it was delivered, before the record was written and the program was replaced",
			given:  record.Delivered{Version: before("0")}, revisions: []timeline.Revision{{Name: "web-2", Number: 2, Created: at(60), Shown: input.Shown{db: old}.Marks()}},
			want: input.DeliveredBefore, shows: old,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(db, "")
			s.Content = secretOf("1")
			w := web()
			w.Refs, w.Status.Observed = []podrefs.Ref{{Source: db, Keys: all}}, true
			w.Shown = input.Shown{db: tc.shown}
			e := record.Entry{Inputs: map[input.ID]record.Delivered{db: tc.given}, Eviction: record.Eviction{For: tc.evictFor}, Coverage: record.Coverage{RolledOutAt: at(30), Template: record.Template{Sum: "x"}}}
			got, err := inputs(secrets{clusterOf(s)}).Assess(t.Context(), w, reload("auto"), e, (&history{revisions: tc.revisions}).ask)
			if err != nil || len(got.Findings) != 1 {
				t.Fatalf("%+v, error %v", got, err)
			}
			f := got.Findings[0]
			if f.Reason != tc.want || !f.Rebased.IsZero() != tc.rebased || f.Shows != tc.shows {
				t.Errorf("%s: %s, rebased to %q, shows %s; want %s, rebased %t, shows %s", tc.reason, f.Reason, f.Rebased, f.Shows, tc.want, tc.rebased, tc.shows)
			}
			if tc.rebased && f.Rebased != f.Current {
				t.Errorf("%s: rebased to %s, want %s", tc.reason, f.Rebased, f.Current)
			}
		})
	}
}

// secrets is a cluster whose Secrets have keyed digests.
type secrets struct{ cluster }

func (secrets) Absent(_ input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return fingerprint.NewKeyedHasher([]byte("k")).AbsentVersion(keys)
}
