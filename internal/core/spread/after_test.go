package spread_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

func TestBefore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		app, tls string
		wait     bool
		ignored  string
	}{
		"Missing":     {"it doesn't exist", "", "", false, "doesn't exist or isn't followed"},
		"NoUser":      {"it doesn't use the change", "shop/web:ready", "", false, ""},
		"Due":         {"it will get the change", "shop/db:due", "", true, ""},
		"Ready":       {"it waits for its turn", "shop/db:ready", "", true, ""},
		"Later":       {"it waits for something that ends", "shop/db:due", "", true, ""},
		"Rolling":     {"it rolls", "shop/db:rolling", "", true, ""},
		"Held":        {"a user has to act", "shop/db:held", "", false, "waits for a user (Held)"},
		"Denied":      {"the API server refuses it, and a user has to act", "shop/db:due", "", false, "waits for a user (ReloadFailed)"},
		"HeldInOne":   {"it is held for one change, and rolls for another", "shop/db:held", "shop/db:rolling", true, ""},
		"Has":         {"it has the change", "shop/db:has", "", false, ""},
		"Proven":      {"it is healthy with the change", "shop/db:proven", "", false, ""},
		"Failed":      {"it is finished, too", "shop/db:failed", "", false, ""},
		"OtherChange": {"it rolls for the second change", "shop/db:proven", "shop/db:rolling", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := []*spread.Spread{parse(t, "app", tc.app), parse(t, "tls", tc.tls)}
			if m, uses := changes[0].Member("shop/db"); uses {
				if m.Why = input.Held; name == "Denied" {
					m.Why = input.ReloadFailed
				}
				changes[0].Set(m)
			}
			wait, ignored := spread.Before("shop/db", changes, func(string) bool { return name != "Missing" })
			if wait != tc.wait || ignored != tc.ignored {
				t.Errorf("wait %t, ignored %q; want %t, %q: %s", wait, ignored, tc.wait, tc.ignored, tc.reason)
			}
		})
	}
}

func TestCycle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, after, from string
		cycle               []string
		breaks              bool
	}{
		"None":         {"a chain", "a:b b:c", "a", nil, false},
		"Itself":       {"it names itself", "a:a", "a", []string{"a"}, true},
		"TwoSmallest":  {"the smallest name breaks it", "a:b b:a", "a", []string{"a", "b"}, true},
		"TwoOther":     {"another one waits", "a:b b:a", "b", []string{"b", "a"}, false},
		"LeadsTo":      {"it leads to a cycle, and isn't part of it", "a:b b:c c:b", "a", nil, false},
		"Three":        {"the smallest name breaks it", "a:b b:c c:a", "c", []string{"c", "a", "b"}, false},
		"Nested":       {"a cycle inside of another is broken too", "a:b b:c c:b,a", "b", []string{"b", "c"}, true},
		"NestedOther":  {"c is never the smallest", "a:b b:c c:b,a", "c", []string{"c", "b"}, false},
		"Several":      {"the second name leads back", "a:b,c c:a", "a", []string{"a", "c"}, true},
		"MissingNames": {"names that don't exist lead nowhere", "a:x,y", "a", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := map[string][]string{}
			for field := range strings.FieldsSeq(tc.after) {
				id, names, _ := strings.Cut(field, ":")
				after[id] = strings.Split(names, ",")
			}
			cycle, breaks := spread.Cycle(tc.from, func(id string) []string { return after[id] })
			if diff := cmp.Diff(tc.cycle, cycle); diff != "" || breaks != tc.breaks {
				t.Errorf("breaks %t, want %t: %s (-want +got):\n%s", breaks, tc.breaks, tc.reason, diff)
			}
		})
	}
}
