package record_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// grown is an entry to which everything has happened that can.
func grown(workload string, names ...string) record.Entry {
	e := full()
	e.ID, e.UID = "StatefulSet.apps/"+strings.Repeat("n", 63)+"/"+workload, strings.Repeat("u", 36)
	e.Accounted, e.Released, e.Template = 1<<40, 1<<60, record.Template{Generation: 1 << 40, Sum: strings.Repeat("f", 32), Number: 1 << 40}
	e.Eviction.Since = e.AsOf
	e.Inherited = "0123456789abcdef"
	e.Hold = record.NewHold(strings.Repeat(`"`, 1000))
	e.Hold.Undone = true
	e.Decision = record.NewDecision(input.GenerationNotObserved, strings.Repeat(`"`, 1000), e.AsOf, e.AsOf)
	e.Inputs = map[input.ID]record.Delivered{}
	for _, name := range names {
		e.Inputs[input.ConfigMap(name)] = record.Delivered{
			Version: fingerprint.Version{Basis: "2k1a2b3c:1a2b3c4d", Sum: sum}, Shown: input.Tracked(sum[:10]),
			From: timeline.Origin("2026-11-15T03:04:05Z").By(workload + "-6b7c8d9f5d"), Was: sum[:10], Due: sum[:10], RevertedTo: workload + "-6b7c8d9f5d", Awaits: true, Sealed: true,
		}
	}
	return e
}

// TestRoomIsEnough: the room that is kept for an entry is enough for all that becomes
// of it, also during a series of evictions.
func TestRoomIsEnough(t *testing.T) {
	t.Parallel()
	many := make([]string, 256)
	for i := range many {
		many[i] = fmt.Sprintf("%s-%03d", strings.Repeat("c", 36), i)
	}
	cases := map[string]struct {
		reason   string
		workload string
		names    []string
	}{
		"Usual":     {"a workload as most are", "web", []string{"app", "db", "tls"}},
		"Many":      {"as many sources as a workload may have", "web", many},
		"LongNames": {"names as long as they may be", strings.Repeat("w", 63), []string{strings.Repeat("c", 253), strings.Repeat("d", 253)}},
		"Tiny":      {"names as short as they may be", "w", []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := grown(tc.workload, tc.names...)
			young := e.Clone()
			for id := range maps.Keys(young.Inputs) {
				young.Inputs[id] = record.Delivered{Version: version(sum)}
			}
			young.PendingSince, young.DelaySince, young.RolledOutAt = time.Time{}, time.Time{}, time.Time{}
			room := young.Room()
			if room != e.Room() {
				t.Errorf("%s: the room grows from %d to %d with the same inputs", tc.reason, room, e.Room())
			}
			shown := input.Shown{}
			for id := range e.Inputs {
				shown[id] = input.Tracked(sum[:10])
			}
			e.Eviction.For = shown.String()
			if size := encoded(t, e); size > room || size < room/2 {
				t.Errorf("%s: %d bytes, and a room of %d is kept for them", tc.reason, size, room)
			}
		})
	}
}

func encoded(t *testing.T, e record.Entry) int {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestRoomCountsWhatIsForeign: what a newer program wrote is written back, and takes
// its room.
func TestRoomCountsWhatIsForeign(t *testing.T) {
	t.Parallel()
	text := `{"v":2,"id":"Deployment.apps/shop/web","uid":"1","in":{"volume/data":"` + strings.Repeat("x", 5000) + `"},"stops":"` + strings.Repeat("y", 5000) + `"}`
	e, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if room := e.Room(); room < len(text) {
		t.Errorf("a room of %d for %d bytes", room, len(text))
	}
}
