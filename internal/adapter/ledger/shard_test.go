package ledger

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// held is a ConfigMap as the API server holds it.
func held(resourceVersion string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: resourceVersion}, Data: data}
}

// shardAt is a shard that is in step with a ConfigMap at version 5.
func shardAt(data map[string]string) *shard {
	s := newShard("state-00")
	s.adopt(held("5", data))
	return s
}

func checkShard(t *testing.T, s *shard, stored map[string]string, dirty map[string]*string) {
	t.Helper()
	if diff := cmp.Diff(stored, s.stored); diff != "" {
		t.Errorf("stored (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(dirty, s.dirty); diff != "" {
		t.Errorf("to be written (-want +got)\n%s", diff)
	}
}

func TestShardSetAndGet(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1"})
	s.set("a", new("1"))
	s.set("b", nil)
	checkShard(t, s, map[string]string{"a": "1"}, map[string]*string{})

	s.set("a", new("2"))
	if got, ok := s.get("a"); !ok || got != "2" {
		t.Errorf("get gives %q, %t before the write, want the newest text", got, ok)
	}
	s.set("a", nil)
	if got, ok := s.get("a"); ok {
		t.Errorf("get gives %q after a removal that is not written yet", got)
	}
	s.set("a", new("1"))
	checkShard(t, s, map[string]string{"a": "1"}, map[string]*string{})
}

func TestShardAdopt(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		set       map[string]*string
		arrives   *corev1.ConfigMap
		overruled []string
		stored    map[string]string
		dirty     map[string]*string
	}{
		"News": {
			reason:  "what somebody wrote is known from now on",
			arrives: held("6", map[string]string{"a": "2"}),
			stored:  map[string]string{"a": "2"}, dirty: map[string]*string{},
		},
		"Old": {
			reason:  "a watch that is behind takes nothing back",
			set:     map[string]*string{"a": new("mine")},
			arrives: held("4", map[string]string{"a": "0"}),
			stored:  map[string]string{"a": "1"}, dirty: map[string]*string{"a": new("mine")},
		},
		"Echo": {
			reason:  "nor does the same version again",
			set:     map[string]*string{"a": new("mine")},
			arrives: held("5", map[string]string{"a": "x"}),
			stored:  map[string]string{"a": "1"}, dirty: map[string]*string{"a": new("mine")},
		},
		"OtherKeys": {
			reason:  "what others write beside ours leaves ours to be written",
			set:     map[string]*string{"a": new("mine")},
			arrives: held("6", map[string]string{"a": "1", "b": "theirs"}),
			stored:  map[string]string{"a": "1", "b": "theirs"}, dirty: map[string]*string{"a": new("mine")},
		},
		"Overruled": {
			reason:    "theirs stands, and the decision behind ours is taken again",
			set:       map[string]*string{"a": new("mine")},
			arrives:   held("6", map[string]string{"a": "theirs"}),
			overruled: []string{"a"},
			stored:    map[string]string{"a": "theirs"}, dirty: map[string]*string{},
		},
		"RemovedUnderOurs": {
			reason:    "a removal is a change too",
			set:       map[string]*string{"a": new("mine")},
			arrives:   held("6", nil),
			overruled: []string{"a"},
			stored:    map[string]string{}, dirty: map[string]*string{},
		},
		"ChangedUnderOurRemoval": {
			reason:    "what we wanted to forget has news",
			set:       map[string]*string{"a": nil},
			arrives:   held("6", map[string]string{"a": "theirs"}),
			overruled: []string{"a"},
			stored:    map[string]string{"a": "theirs"}, dirty: map[string]*string{},
		},
		"SameAsOurs": {
			reason:  "two that write the same do not overrule each other",
			set:     map[string]*string{"a": new("2")},
			arrives: held("6", map[string]string{"a": "2"}),
			stored:  map[string]string{"a": "2"}, dirty: map[string]*string{},
		},
		"BothRemoved": {
			reason:  "also by removing",
			set:     map[string]*string{"a": nil},
			arrives: held("6", nil),
			stored:  map[string]string{}, dirty: map[string]*string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shardAt(map[string]string{"a": "1"})
			for key, value := range tc.set {
				s.set(key, value)
			}
			if diff := cmp.Diff(tc.overruled, slices.Sorted(maps.Keys(s.adopt(tc.arrives)))); diff != "" {
				t.Errorf("%s: overruled (-want +got)\n%s", tc.reason, diff)
			}
			checkShard(t, s, tc.stored, tc.dirty)
		})
	}
}

// TestShardHearsItsOwnWriteFirst: the watch may deliver our own write before the
// answer to it arrives, and by then there may be a newer text to write.
func TestShardHearsItsOwnWriteFirst(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1"})
	s.set("a", new("2"))
	sent := s.send()
	s.set("a", new("3"))
	if got := s.adopt(held("6", map[string]string{"a": "2"})); len(got) > 0 {
		t.Errorf("our own write overrules us: %v", got)
	}
	s.written(sent, "6")
	checkShard(t, s, map[string]string{"a": "2"}, map[string]*string{"a": new("3")})
}

// TestShardKnowsBetterThanALateAnswer: by the time our write is answered, the
// watch may have shown us what somebody wrote after it.
func TestShardKnowsBetterThanALateAnswer(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1"})
	s.set("a", new("2"))
	sent := s.send()
	s.adopt(held("7", map[string]string{"a": "theirs"}))
	s.written(sent, "6")
	checkShard(t, s, map[string]string{"a": "theirs"}, map[string]*string{})
	if s.resourceVersion != "7" {
		t.Errorf("the shard is at version %s, want the newest one, 7", s.resourceVersion)
	}
}

func TestShardWritten(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1", "b": "1"})
	s.set("a", new("2"))
	s.set("b", nil)
	sent := s.send()
	s.set("c", new("late"))
	s.written(sent, "6")
	checkShard(t, s, map[string]string{"a": "2"}, map[string]*string{"c": new("late")})
}

// TestShardSetDuringAWrite: what is set while a write is under way is the newest text,
// also when it takes the write back: nothing is lost on either side.
func TestShardSetDuringAWrite(t *testing.T) {
	t.Parallel()
	const fails = ""
	cases := map[string]struct {
		reason      string
		sent, newer *string
		echo        *corev1.ConfigMap // arrives before the answer
		answer      string
		stored      map[string]string
		dirty       map[string]*string
	}{
		"RemovedAndBack": {reason: "the removal is reverted", sent: nil, newer: new("1"), answer: "6", stored: map[string]string{}, dirty: map[string]*string{"a": new("1")}},
		"ChangedAndBack": {reason: "the change is reverted", sent: new("2"), newer: new("1"), answer: "6", stored: map[string]string{"a": "2"}, dirty: map[string]*string{"a": new("1")}},
		"ThenRemoved":    {reason: "the change is removed", sent: new("2"), newer: nil, answer: "6", stored: map[string]string{"a": "2"}, dirty: map[string]*string{"a": nil}},
		"TheSame":        {reason: "what was written need not be written again", sent: new("2"), newer: new("2"), answer: "6", stored: map[string]string{"a": "2"}, dirty: map[string]*string{}},
		"RemovedTwice":   {reason: "nor need what was removed be removed again", sent: nil, newer: nil, answer: "6", stored: map[string]string{}, dirty: map[string]*string{}},
		"BackAndFailed":  {reason: "the write may have arrived although its answer did not", sent: nil, newer: new("1"), answer: fails, stored: map[string]string{"a": "1"}, dirty: map[string]*string{"a": new("1")}},
		"EchoedAndBack":  {reason: "the watch is faster than the answer", sent: nil, newer: new("1"), echo: held("6", nil), answer: "6", stored: map[string]string{}, dirty: map[string]*string{"a": new("1")}},
		"Overtaken":      {reason: "another writer has put back what we want there", sent: nil, newer: new("1"), echo: held("7", map[string]string{"a": "1"}), answer: "6", stored: map[string]string{"a": "1"}, dirty: map[string]*string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shardAt(map[string]string{"a": "1"})
			s.set("a", tc.sent)
			sent := s.send()
			s.set("a", tc.newer)
			if tc.echo != nil {
				s.adopt(tc.echo)
			}
			if tc.answer != fails {
				s.written(sent, tc.answer)
			}
			got, ok := s.get("a")
			if ok != (tc.newer != nil) || ok && got != *tc.newer {
				t.Errorf("%s: get gives %q, %t, want the newest text", tc.reason, got, ok)
			}
			checkShard(t, s, tc.stored, tc.dirty)
		})
	}
	t.Run("NewAndRemoved", func(t *testing.T) {
		t.Parallel()
		s := shardAt(nil)
		s.set("a", new("1"))
		sent := s.send()
		s.set("a", nil)
		s.written(sent, "6")
		checkShard(t, s, map[string]string{"a": "1"}, map[string]*string{"a": nil})
	})
}

func TestShardLost(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.set("a", new("2"))
	s.set("b", nil)
	s.lost()
	checkShard(t, s, map[string]string{}, map[string]*string{"a": new("2"), "c": new("1")})
	if s.resourceVersion != "" {
		t.Errorf("a lost shard has the version %s; it would not be created", s.resourceVersion)
	}
}

func TestShardForget(t *testing.T) {
	t.Parallel()
	s := shardAt(map[string]string{"a": "1"})
	s.set("a", new("2"))
	s.forget()
	checkShard(t, s, map[string]string{}, map[string]*string{})
	if s.name != "state-00" || s.resourceVersion != "" {
		t.Errorf("the forgotten shard is %+v", s)
	}
}

// TestShardThatInsists: kubernetes-reloader's state is written without a precondition,
// so that our texts stand, and what another writer removed comes back.
func TestShardThatInsists(t *testing.T) {
	t.Parallel()
	insisting := func(data map[string]string) *shard {
		s := newShard("state")
		s.insists = true
		s.adopt(held("5", data))
		return s
	}
	cases := map[string]struct {
		reason  string
		set     map[string]*string
		arrives *corev1.ConfigMap
		stored  map[string]string
		dirty   map[string]*string
	}{
		"News":    {"what another writer wrote is known from now on", nil, held("6", map[string]string{"a": "2"}), map[string]string{"a": "2"}, map[string]*string{}},
		"Old":     {"a watch that is behind takes nothing back", nil, held("4", nil), map[string]string{"a": "1"}, map[string]*string{}},
		"Removed": {"what is missing is written again", nil, held("6", nil), map[string]string{}, map[string]*string{"a": new("1")}},
		"Ours":    {"ours is still to be written", map[string]*string{"a": new("mine")}, held("6", map[string]string{"a": "theirs"}), map[string]string{"a": "theirs"}, map[string]*string{"a": new("mine")}},
		"Echo":    {"what is there need not be written", map[string]*string{"a": new("2")}, held("6", map[string]string{"a": "2"}), map[string]string{"a": "2"}, map[string]*string{}},
		"Pruned":  {"a removal of ours is no loss", map[string]*string{"a": nil}, held("6", nil), map[string]string{}, map[string]*string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := insisting(map[string]string{"a": "1"})
			for key, value := range tc.set {
				s.set(key, value)
			}
			if overruled := s.adopt(tc.arrives); len(overruled) > 0 {
				t.Errorf("%s: overruled %v", tc.reason, overruled)
			}
			checkShard(t, s, tc.stored, tc.dirty)
		})
	}
	t.Run("Overtaken", func(t *testing.T) {
		t.Parallel()
		s := insisting(map[string]string{"a": "1", "b": "1"})
		s.set("a", new("2"))
		s.set("b", new("2"))
		sent := s.send()
		s.set("b", new("3"))
		s.adopt(held("7", map[string]string{"a": "theirs", "b": "2"}))
		s.written(sent, "6")
		checkShard(t, s, map[string]string{"a": "theirs", "b": "2"}, map[string]*string{"a": new("2"), "b": new("3")})
	})
}
