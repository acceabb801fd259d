package dirwatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A burst costs one look after its end. The kubelet's swap needs no waiting, and the names
// that it prepares aren't looked at.
func TestSettle(t *testing.T) {
	const pause = burstGap / 5 // between two events
	for name, c := range map[string]struct {
		why   string
		names []string
		looks int
		after time.Duration
	}{
		"one file":   {"the burst may go on", []string{"a"}, 1, burstGap},
		"burst":      {"it is over after the last event", repeat("a", 10), 1, 9*pause + burstGap},
		"long burst": {"nobody waits for its end", repeat("a", 150), 2, 149*pause + burstGap},
		"prepared":   {"nobody reads it", []string{"..2026", "..data_tmp"}, 0, pause},
		"swap":       {"everything has changed", []string{"..2026", "..data"}, 1, pause},
		"both":       {"the swap ends the burst", []string{"a", "a", "..data"}, 1, 2 * pause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, began := make(chan fsnotify.Event), time.Now()
				go func() {
					defer close(events)
					for i, name := range c.names {
						if i > 0 {
							time.Sleep(pause)
						}
						events <- fsnotify.Event{Name: "/dir/" + name}
					}
					time.Sleep(2 * burstLimit)
				}()
				looks, last := 0, time.Duration(0)
				for event := range events {
					if settle(t.Context(), events, event) {
						looks++
					}
					last = time.Since(began)
				}
				if looks != c.looks || last != c.after {
					t.Errorf("%d looks, the last after %s, want %d after %s: %s", looks, last, c.looks, c.after, c.why)
				}
			})
		})
	}
}

func repeat(name string, times int) []string {
	names := make([]string, times)
	for i := range names {
		names[i] = name
	}
	return names
}
