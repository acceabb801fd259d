package reloader

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func TestEntriesComeBack(t *testing.T) {
	t.Parallel()
	all := map[id]entry{
		{stakater.ConfigMap, "app"}:                {hash: oldHash},
		{stakater.Secret, "db.credentials"}:        {hash: newHash, owed: []string{"Deployment/web", "Job/load"}},
		{stakater.SecretProviderClass, "vault-db"}: {hash: newHash},
	}
	text := formatEntries(all)
	if diff := cmp.Diff(all, parseEntries(text), cmp.AllowUnexported(entry{})); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, text)
	}
	if got := parseEntries("what\nCONFIGMAP short\n\n"); len(got) != 0 {
		t.Errorf("damaged lines are read as %v", got)
	}
}

// TestMissed: what a new process finds about a source.
func TestMissed(t *testing.T) {
	t.Parallel()
	seen := horizon{Version: 100, At: start}
	cases := map[string]struct {
		reason   string
		options  Options
		recorded *entry
		first    bool
		source   source
		want     event
		only     []string
	}{
		"Same":       {reason: "it is as on record", recorded: &entry{hash: newHash}, source: source{version: "200"}},
		"Changed":    {reason: "it isn't", recorded: &entry{hash: oldHash}, source: source{version: "200"}, want: updated},
		"ChangedOld": {reason: "the record counts, also below the horizon", recorded: &entry{hash: oldHash}, source: source{version: "50"}, want: updated},
		"Owed":       {reason: "one workload lacks it", recorded: &entry{hash: newHash, owed: []string{"Deployment/web"}}, source: source{version: "50"}, want: updated, only: []string{"Deployment/web"}},
		"OwedSince":  {reason: "one workload lacked the version of before", recorded: &entry{hash: oldHash, owed: []string{"Deployment/web"}}, source: source{version: "150"}, want: updated},
		"Below":      {reason: "it was seen with this resource version", source: source{version: "100", dataWrittenAt: start.Add(time.Hour)}},
		"Above":      {reason: "its data were written since", source: source{version: "101", dataWrittenAt: start.Add(time.Second)}, want: updated},
		"Margin":     {reason: "clocks differ", source: source{version: "101", dataWrittenAt: start.Add(-margin / 2)}, want: updated},
		"Labelled":   {reason: "its data are older: only labels were written", source: source{version: "101", dataWrittenAt: start.Add(-time.Hour)}},
		"New":        {reason: "creates don't count", source: source{version: "101", created: start.Add(time.Second), dataWrittenAt: start.Add(time.Second)}},
		"NewChanged": {reason: "it was created since, and then changed", source: source{version: "102", created: start.Add(time.Second), dataWrittenAt: start.Add(2 * time.Second)}, want: updated},
		"NewCounts":  {reason: "creates count", options: Options{OnCreate: true}, source: source{version: "101", created: start.Add(time.Second)}, want: added},
		"First":      {reason: "a first start delivers nothing", options: Options{OnCreate: true}, first: true, source: source{version: "101", dataWrittenAt: start.Add(time.Second)}},
		"FirstSync":  {reason: "unless everything counts as created", options: Options{OnCreate: true, SyncAfterRestart: true}, first: true, source: source{version: "101"}, want: added},
		"SyncAgain":  {reason: "a later start delivers nothing again", options: Options{OnCreate: true, SyncAfterRestart: true}, recorded: &entry{hash: newHash}, source: source{version: "101"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(tc.options, dependencies(func() time.Time { return start.Add(time.Hour) }))
			s := tc.source
			s.Source, s.namespace, s.hash = stakater.Source{Type: stakater.Secret, Name: "db"}, "shop", newHash
			if tc.recorded != nil {
				r.record.put("shop", s.id(), *tc.recorded)
			}
			c, ok := r.missed(&s, seen, !tc.first)
			if ok != (tc.want != "") || ok && c.event != tc.want {
				t.Errorf("%s: a change %t (%s), want %q", tc.reason, ok, c.event, tc.want)
			}
			var only []string
			for name := range c.only {
				only = append(only, name)
			}
			if diff := cmp.Diff(tc.only, only); diff != "" {
				t.Errorf("%s: only (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestShardHasRoom: a namespace with very many sources loses its own entries, not those of others.
func TestShardHasRoom(t *testing.T) {
	t.Parallel()
	r := newRecord("reloader", "reloader", dependencies(time.Now))
	for i := range 12000 {
		r.put("greedy", id{stakater.ConfigMap, "a-long-name-that-fills-the-record-" + time.Unix(int64(i), 0).UTC().Format("20060102150405")}, entry{hash: oldHash})
	}
	neighbour := "n"
	for shardOf(neighbour) != shardOf("greedy") {
		neighbour += "n"
	}
	r.put(neighbour, id{stakater.ConfigMap, "app"}, entry{hash: oldHash})
	data := r.shard(shardOf("greedy")).Data
	if _, kept := data["greedy"]; kept || data[neighbour] == "" {
		t.Errorf("the greedy namespace is kept: %t; its neighbour has %q", kept, data[neighbour])
	}
}

// TestHorizonIsWritten: the horizon of a process that dies is at most a minute old.
func TestHorizonIsWritten(t *testing.T) {
	t.Parallel()
	now := start
	r := newRecord("reloader", "reloader", dependencies(func() time.Time { return now }))
	written := 0
	for second := range 150 {
		now = start.Add(time.Duration(second) * time.Second)
		r.see(map[string]sight{"SECRET/": {version: uint64(second + 1)}})
		for i := range shards {
			if r.take(i) != nil {
				written++
			}
		}
	}
	if written != 3 {
		t.Errorf("%d writes in 150 seconds, want one per minute", written)
	}
}

// TestHorizonKeepsItsTime: a change that waits, or a watch that doesn't work, is found by the next
// process however often the record is written meanwhile.
func TestHorizonKeepsItsTime(t *testing.T) {
	t.Parallel()
	r := newRecord("reloader", "reloader", dependencies(func() time.Time { return start }))
	r.see(map[string]sight{"SECRET/": {version: 7}, "CONFIGMAP/": {version: 7}})
	r.written = start
	r.see(map[string]sight{"SECRET/": {version: 8, held: true}, "CONFIGMAP/": {version: 9}})
	r.written = start.Add(time.Hour)
	r.see(map[string]sight{"SECRET/": {version: 8, held: true}, "CONFIGMAP/": {version: 9}})
	next := newRecord("reloader", "reloader", dependencies(func() time.Time { return start }))
	next.readHorizons(r.shard(0).Data[horizonKey], start.Add(2*time.Hour))
	want := map[string]horizon{"SECRET/": {Version: 8, At: start}, "CONFIGMAP/": {Version: 9, At: start.Add(2 * time.Hour)}}
	if diff := cmp.Diff(want, next.horizons); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNotChosen: sources of a namespace that isn't chosen, or whose labels can't be read, aren't
// taken for deleted, and stay on record until they are known.
func TestNotChosen(t *testing.T) {
	t.Parallel()
	r := New(Options{OnDelete: true, Scope: Scope{ConfigMaps: true, NamespaceSelector: labels.Everything()}}, dependencies(time.Now))
	r.record.put("shop", id{stakater.ConfigMap, "app"}, entry{hash: oldHash})
	r.compare(r.areas[0])
	if n := r.pending.size(); n > 0 {
		t.Errorf("%d deletions wait, although nothing was deleted", n)
	}
	if r.isRead("shop", stakater.ConfigMap) {
		t.Error("what is on record counts as gone before the namespaces are known")
	}
}

// TestNotRead: what can't be read yet stays on record.
func TestNotRead(t *testing.T) {
	t.Parallel()
	r := New(Options{Scope: Scope{ConfigMaps: true, Secrets: true}}, dependencies(time.Now))
	r.areas[0].compared.Store(true)
	if !r.isRead("shop", stakater.ConfigMap) || r.isRead("shop", stakater.Secret) || !r.isRead("shop", stakater.SecretProviderClass) {
		t.Error("want ConfigMaps read, Secrets not yet, and classes never")
	}
}

// TestInstallations: two installations in one namespace have a record each.
func TestInstallations(t *testing.T) {
	t.Parallel()
	of := id{stakater.ConfigMap, "app"}
	one := newRecord("tools", "reloader", dependencies(time.Now))
	one.put("shop", of, entry{hash: oldHash})
	stored := one.shard(shardOf("shop"))
	for name, want := range map[string]bool{"reloader": true, "other": false} {
		next := newRecord("tools", name, dependencies(time.Now))
		next.readShard(stored)
		if _, got := next.entry("shop", of); got != want {
			t.Errorf("%s reads %s: %t, want %t", name, stored.Name, got, want)
		}
	}
}
