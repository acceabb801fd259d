package reloader

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// TestJoined: changes of one source in a row are one change.
func TestJoined(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ first, next, want event }{
		"Updates":      {updated, updated, updated},
		"NewAndEdited": {added, updated, added},
		"Replaced":     {deleted, added, updated},
		"EditedGone":   {updated, deleted, deleted},
		"NewGone":      {added, deleted, deleted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPending()
			p.put("shop", of(func(c *change) { c.event = tc.first }))
			p.put("shop", of(func(c *change) {
				c.event, c.hash, c.before, c.strong = tc.next, "third", newHash, sha256.Sum256([]byte("third"))
				c.first, c.last = start.Add(time.Second), start.Add(time.Second)
			}))
			all := p.in("shop")
			if len(all) != 1 {
				t.Fatalf("%d changes wait", len(all))
			}
			if c := all[0]; c.event != tc.want || c.hash != "third" || c.before != oldHash || !c.first.Equal(start) || c.last.Equal(start) {
				t.Errorf("joined to %+v", c)
			}
		})
	}
}

// TestReplaced: who has lost a source's variable lacks the source when it is back as it was.
func TestReplaced(t *testing.T) {
	t.Parallel()
	p := newPending()
	p.put("shop", of(func(c *change) { c.event = deleted }))
	seen := p.in("shop")[0]
	seen.has["web"] = true
	p.settle("shop", seen, false)
	p.put("shop", of(func(c *change) { c.event = added }))
	if p.in("shop")[0].has["web"] {
		t.Error("a workload has a source that was only taken from it")
	}
}

// TestSettle: a source that changes during a pass stays pending.
func TestSettle(t *testing.T) {
	t.Parallel()
	p := newPending()
	p.put("shop", of())
	seen := p.in("shop")[0]
	seen.has["web"] = true
	if p.settle("shop", seen, false); !p.in("shop")[0].has["web"] {
		t.Error("who has the change is forgotten")
	}
	p.put("shop", of(func(c *change) { c.strong = sha256.Sum256([]byte("later")) }))
	if p.settle("shop", seen, true) || len(p.in("shop")) != 1 {
		t.Error("the later version is lost")
	}
	if p.in("shop")[0].has["web"] {
		t.Error("a workload has a version that it never got")
	}
	p.settle("shop", p.in("shop")[0], false)
	p.put("shop", of(func(c *change) { c.first = start.Add(time.Hour) }))
	if first := p.in("shop")[0].first; !first.Equal(start.Add(time.Hour)) {
		t.Errorf("a change after a failure has no quiet window: it began %s", first)
	}
	if !p.settle("shop", p.in("shop")[0], true) || p.size() != 0 {
		t.Error("a change that everybody has still waits")
	}
}

// TestOldest: the horizon stays before a change that waits.
func TestOldest(t *testing.T) {
	t.Parallel()
	p := newPending()
	p.put("shop", of(func(c *change) { c.version = "12" }))
	p.put("other", of(func(c *change) { c.version = "9" }))
	everywhere := func(string) bool { return true }
	if got := p.oldest(stakater.ConfigMap, everywhere); got != 9 {
		t.Errorf("the oldest is %d", got)
	}
	if got := p.oldest(stakater.ConfigMap, func(namespace string) bool { return namespace == "shop" }); got != 12 {
		t.Errorf("the oldest in shop is %d", got)
	}
	if got := p.oldest(stakater.Secret, everywhere); got != 0 {
		t.Errorf("the oldest Secret is %d", got)
	}
}
