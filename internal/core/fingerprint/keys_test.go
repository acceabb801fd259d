package fingerprint_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

func TestKeysUnion(t *testing.T) {
	t.Parallel()
	all, some := fingerprint.AllKeys(), fingerprint.SomeKeys
	cases := map[string]struct {
		reason     string
		a, b, want fingerprint.Keys
	}{
		"Disjoint":    {"both places are used", some("a"), some("b"), some("a", "b")},
		"Overlapping": {"a key counts once", some("a", "b"), some("b", "c"), some("a", "b", "c")},
		"AllWins":     {"one place that takes everything makes every key a used one", some("a"), all, all},
		"AllFirst":    {"in either order", all, some("a"), all},
		"None":        {"the empty set adds nothing", some(), some("a"), some("a")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fingerprint.Union(tc.a, tc.b); got.ID() != tc.want.ID() {
				t.Errorf("%s: union is %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestKeysUnionLeavesItsPartsAlone(t *testing.T) {
	t.Parallel()
	a := fingerprint.SomeKeys("a", "c")
	fingerprint.Union(a, fingerprint.SomeKeys("b"))
	if a.Has("b") || !a.Has("c") {
		t.Errorf("the union changed a part: %+v", a)
	}
}

func TestKeysHas(t *testing.T) {
	t.Parallel()
	var none fingerprint.Keys
	cases := map[string]struct {
		reason string
		keys   fingerprint.Keys
		name   string
		want   bool
	}{
		"All":      {"also a key that is added later", fingerprint.AllKeys(), "anything", true},
		"Named":    {"whatever the order of the names", fingerprint.SomeKeys("z", "a"), "a", true},
		"Unnamed":  {"nothing else", fingerprint.SomeKeys("z", "a"), "b", false},
		"Zero":     {"the zero value names none", none, "a", false},
		"EmptyKey": {"the empty name is a name", fingerprint.SomeKeys("a"), "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.keys.Has(tc.name); got != tc.want {
				t.Errorf("%s: Has(%q) is %t", tc.reason, tc.name, got)
			}
		})
	}
}

func TestKeysID(t *testing.T) {
	t.Parallel()
	some := fingerprint.SomeKeys
	same := map[string][2]fingerprint.Keys{
		"order":      {some("a", "b"), some("b", "a")},
		"repetition": {some("a", "a", "b"), some("a", "b")},
	}
	for name, pair := range same {
		if pair[0].ID() != pair[1].ID() {
			t.Errorf("%s changes the id: %s and %s", name, pair[0].ID(), pair[1].ID())
		}
	}
	seen := map[string]string{}
	for name, keys := range map[string]fingerprint.Keys{
		"all": fingerprint.AllKeys(), "none": some(), "a": some("a"), "a and b": some("a", "b"),
		"one key that looks like two": some("ab"), "star": some("*"), "empty name": some(""),
	} {
		if other, taken := seen[keys.ID()]; taken {
			t.Errorf("%s and %s have the id %s", name, other, keys.ID())
		}
		seen[keys.ID()] = name
	}
}
