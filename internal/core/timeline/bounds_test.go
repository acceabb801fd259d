package timeline

import (
	"math"
	"testing"
)

func TestBoundsAfter(t *testing.T) {
	t.Parallel()
	exactly := func(rv uint64) Bounds { return Bounds{Min: rv, Max: rv} }
	cases := map[string]struct {
		reason string
		a, b   Bounds
		want   bool
	}{
		"Later":       {"two exact writes have an order", exactly(5), exactly(4), true},
		"Same":        {"one write cannot be after itself", exactly(5), exactly(5), false},
		"Earlier":     {"in one direction", exactly(4), exactly(5), false},
		"Listed":      {"a listed write may be as old as the cluster", Bounds{Max: 100}, exactly(5), false},
		"AfterListed": {"an exact write after a listed object", exactly(101), Bounds{Max: 100}, true},
		"Overlapping": {"in doubt, no", Bounds{Min: 5, Max: 9}, Bounds{Min: 1, Max: 5}, false},
		"Unknown":     {"nothing is after an unknown write", exactly(math.MaxUint64 - 1), unknownWrite(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.a.After(tc.b); got != tc.want {
				t.Errorf("%s: %+v.After(%+v) is %t", tc.reason, tc.a, tc.b, got)
			}
		})
	}
}

func TestBoundsOfWrites(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		got, want Bounds
	}{
		"Listed":          {"not newer than the object that shows it", WrittenUpTo("7"), Bounds{Max: 7}},
		"Watched":         {"a watch delivers every write", WrittenBetween("3", "7", true), Bounds{Min: 7, Max: 7}},
		"WatchedFirst":    {"also the first", WrittenBetween("", "7", true), Bounds{Min: 7, Max: 7}},
		"BetweenLists":    {"after the last object without it", WrittenBetween("3", "7", false), Bounds{Min: 4, Max: 7}},
		"NoNumber":        {"a server may number otherwise: nothing is known", WrittenUpTo("abc"), unknownWrite()},
		"NoNumberWatched": {"also of a watched write", WrittenBetween("3", "abc", true), unknownWrite()},
		"NoNumberBefore":  {"an odd earlier number leaves the lower bound open", WrittenBetween("abc", "7", false), Bounds{Max: 7}},
		"Later":           {"the later of two writes", Bounds{Min: 1, Max: 9}.Later(Bounds{Min: 4, Max: 5}), Bounds{Min: 4, Max: 9}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, tc.got, tc.want)
			}
		})
	}
}
