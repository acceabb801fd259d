package fingerprint_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

// object is a ConfigMap or Secret as the hasher gets it.
type object struct {
	text     map[string]string
	binaries map[string][]byte
}

func (o object) version(h fingerprint.Hasher, keys fingerprint.Keys) fingerprint.Version {
	return h.Content(o.text, o.binaries).Version(keys)
}

func TestContentVersion(t *testing.T) {
	t.Parallel()
	all := fingerprint.AllKeys()
	cases := map[string]struct {
		reason string
		a, b   object
		keys   fingerprint.Keys
		same   bool
	}{
		"SameBytesAsText": {
			reason: "a pod sees the same file whether the bytes were stored as text or as binary",
			a:      object{text: map[string]string{"k": "v"}},
			b:      object{binaries: map[string][]byte{"k": []byte("v")}},
			keys:   all, same: true,
		},
		"EmptyBinaryAndText": {
			reason: "an empty file is an empty file",
			a:      object{text: map[string]string{"k": ""}},
			b:      object{binaries: map[string][]byte{"k": nil}},
			keys:   all, same: true,
		},
		"OtherValue": {
			reason: "the content of a used key is what a version is about",
			a:      object{text: map[string]string{"k": "1"}},
			b:      object{text: map[string]string{"k": "2"}},
			keys:   all,
		},
		"OneValueThatLooksLikeTwo": {
			reason: "lengths go in before bytes, so no value can imitate another key",
			a:      object{text: map[string]string{"a": "1", "b": "2"}},
			b:      object{text: map[string]string{"a": "1b=2"}},
			keys:   all,
		},
		"BorderBetweenKeyAndValue": {
			reason: "moving a byte from the key to the value is a change",
			a:      object{text: map[string]string{"ab": "c"}},
			b:      object{text: map[string]string{"a": "bc"}},
			keys:   all,
		},
		"SwappedValues": {
			reason: "which key holds which value matters",
			a:      object{text: map[string]string{"a": "1", "b": "2"}},
			b:      object{text: map[string]string{"a": "2", "b": "1"}},
			keys:   all,
		},
		"EmptyKeyAndNoKey": {
			reason: "an empty file is not a missing file",
			a:      object{text: map[string]string{"k": ""}},
			b:      object{},
			keys:   all,
		},
		"UnusedKeyChanged": {
			reason: "a workload that names keys must not notice a change of another",
			a:      object{text: map[string]string{"used": "1", "other": "1"}},
			b:      object{text: map[string]string{"used": "1", "other": "2"}},
			keys:   fingerprint.SomeKeys("used"), same: true,
		},
		"UnusedKeyRemoved": {
			reason: "nor its removal",
			a:      object{text: map[string]string{"used": "1", "other": "1"}},
			b:      object{text: map[string]string{"used": "1"}},
			keys:   fingerprint.SomeKeys("used"), same: true,
		},
		"UsedKeyChanged": {
			reason: "a named key counts",
			a:      object{text: map[string]string{"used": "1"}},
			b:      object{text: map[string]string{"used": "2"}},
			keys:   fingerprint.SomeKeys("used"),
		},
		"NamedKeyArrives": {
			reason: "a key that the template names and that was missing is a change when it arrives",
			a:      object{text: map[string]string{"used": "1"}},
			b:      object{text: map[string]string{"used": "1", "late": "x"}},
			keys:   fingerprint.SomeKeys("used", "late"),
		},
		"AnyKeyArrives": {
			reason: "with all keys a new one is a new file",
			a:      object{text: map[string]string{"used": "1"}},
			b:      object{text: map[string]string{"used": "1", "late": "x"}},
			keys:   all,
		},
	}
	hashers := map[string]fingerprint.Hasher{"plain": {}, "keyed": fingerprint.NewKeyedHasher([]byte("installation"))}
	for name, tc := range cases {
		for kind, h := range hashers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				a, b := tc.a.version(h, tc.keys), tc.b.version(h, tc.keys)
				if !a.Comparable(b) {
					t.Fatalf("%s: %s and %s are not comparable", tc.reason, a, b)
				}
				if (a == b) != tc.same {
					t.Errorf("%s: versions %s and %s, want equal=%t", tc.reason, a, b, tc.same)
				}
			})
		}
	}
}

// TestContentIsStable pins the digests: a change of them would restart nobody
// only if the algorithm's number were raised with them.
func TestContentIsStable(t *testing.T) {
	t.Parallel()
	o := object{text: map[string]string{"b": "2", "a": "1"}}
	cases := map[string]struct {
		reason string
		hasher fingerprint.Hasher
		keys   fingerprint.Keys
		want   string
	}{
		"Plain":  {"algorithm 1 over all keys", fingerprint.Hasher{}, fingerprint.AllKeys(), "1:*:3a4df0ecbb59ce1c4d1c2c53196d676e"},
		"Subset": {"algorithm 1 over one key", fingerprint.Hasher{}, fingerprint.SomeKeys("a"), "1:3b196fd4:35c1c43be0361e3d678a08803fb2a13e"},
		"Keyed":  {"algorithm 2; the key's name is part of the basis", fingerprint.NewKeyedHasher([]byte("k")).At("shop", "Secret", "db"), fingerprint.AllKeys(), "2k8254c3:*:c0eab86677f776b7c88e6d5f7c95a109"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := o.version(tc.hasher, tc.keys).String(); got != tc.want {
				t.Errorf("%s: version %s, want %s; raise the algorithm if this is meant", tc.reason, got, tc.want)
			}
		})
	}
}

func TestKeyedHasher(t *testing.T) {
	t.Parallel()
	o := object{text: map[string]string{"password": "hunter2"}}
	all := fingerprint.AllKeys()
	plain := o.version(fingerprint.Hasher{}, all)
	one := o.version(fingerprint.NewKeyedHasher([]byte("one")), all)
	two := o.version(fingerprint.NewKeyedHasher([]byte("two")), all)
	for name, other := range map[string]fingerprint.Version{"plain": plain, "another key": two} {
		if one.Comparable(other) {
			t.Errorf("%s and %s (%s) are comparable: a lost key would restart everybody", one, other, name)
		}
		if one.Sum == other.Sum {
			t.Errorf("the sum %s does not depend on the key (%s)", one.Sum, name)
		}
	}
	again := o.version(fingerprint.NewKeyedHasher([]byte("one")), all)
	if one != again {
		t.Errorf("the same key gives %s and %s", one, again)
	}
}

func TestKeyedHasherKeepsItsKey(t *testing.T) {
	t.Parallel()
	key := []byte("installation")
	h := fingerprint.NewKeyedHasher(key)
	o := object{text: map[string]string{"k": "v"}}
	before := o.version(h, fingerprint.AllKeys())
	clear(key)
	if after := o.version(h, fingerprint.AllKeys()); after != before {
		t.Errorf("the caller's buffer changes the version from %s to %s", before, after)
	}
}

func TestAbsentVersion(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]fingerprint.Hasher{"plain": {}, "keyed": fingerprint.NewKeyedHasher([]byte("k"))} {
		keys := fingerprint.SomeKeys("a")
		absent := h.AbsentVersion(keys)
		empty := h.Content(nil, nil).Version(keys)
		switch {
		case !absent.IsAbsent() || empty.IsAbsent():
			t.Errorf("%s: absent is %s, empty is %s; only the first is absent", name, absent, empty)
		case !absent.Comparable(empty) || absent == empty:
			t.Errorf("%s: an object that appears must be seen: %s, then %s", name, absent, empty)
		case absent.Comparable(h.AbsentVersion(fingerprint.AllKeys())):
			t.Errorf("%s: absent versions of other keys are comparable", name)
		}
	}
}

func TestContentEqual(t *testing.T) {
	t.Parallel()
	h := fingerprint.Hasher{}
	base := h.Content(map[string]string{"a": "1", "b": "2"}, nil)
	cases := map[string]struct {
		reason string
		other  fingerprint.Content
		want   bool
	}{
		"Same":       {"equal bytes", h.Content(map[string]string{"a": "1"}, map[string][]byte{"b": []byte("2")}), true},
		"Value":      {"another value", h.Content(map[string]string{"a": "1", "b": "3"}, nil), false},
		"Key":        {"another key", h.Content(map[string]string{"a": "1", "c": "2"}, nil), false},
		"KeyRemoved": {"a removed key", h.Content(map[string]string{"a": "1"}, nil), false},
		"Keyed":      {"another hasher", fingerprint.NewKeyedHasher([]byte("k")).Content(map[string]string{"a": "1", "b": "2"}, nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := base.Equal(tc.other); got != tc.want {
				t.Errorf("%s: Equal is %t", tc.reason, got)
			}
		})
	}
}

// TestMayHaveFewerKeys: an object with too many keys doesn't show how many it has.
func TestMayHaveFewerKeys(t *testing.T) {
	t.Parallel()
	h := fingerprint.Hasher{}
	of := func(keys int) fingerprint.Content {
		text := map[string]string{}
		for i := range keys {
			text[fmt.Sprintf("text-%04d", i)] = ""
		}
		return h.Content(text, nil)
	}
	for name, tc := range map[string]struct {
		keys, than int
		want       bool
	}{"Fewer": {1, 2, true}, "Same": {2, 2, false}, "More": {3, 2, false}, "None": {0, 1, true}, "TooMany": {2000, 1, true}, "ThanTooMany": {1, 2000, true}} {
		if got := of(tc.keys).MayHaveFewerKeys(of(tc.than)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// TestManyKeysAreNotKept: of an object with too many keys only the whole is kept, and its
// version is the same as if all keys were.
func TestManyKeysAreNotKept(t *testing.T) {
	t.Parallel()
	many := func(keys int, last string) object {
		o := object{text: map[string]string{"last": last}, binaries: map[string][]byte{}}
		for i := range keys / 2 {
			o.text[fmt.Sprintf("text-%04d", i)], o.binaries[fmt.Sprintf("binary-%04d", i)] = "", nil
		}
		return o
	}
	all, some := fingerprint.AllKeys(), fingerprint.SomeKeys("text-0001")
	for name, h := range map[string]fingerprint.Hasher{"plain": {}, "keyed": fingerprint.NewKeyedHasher([]byte("k")).At("shop", "Secret", "db")} {
		content := func(o object) fingerprint.Content { return h.Content(o.text, o.binaries) }
		usual, large := content(many(400, "1")), content(many(2000, "1"))
		if usual.IsWhole() || !large.IsWhole() || content(object{}).IsWhole() || (fingerprint.Content{}).IsWhole() {
			t.Errorf("%s: of 400 keys the whole is kept (%t), of 2,000 keys (%t)", name, usual.IsWhole(), large.IsWhole())
		}
		before, after := large, content(many(2000, "2"))
		switch {
		case before.Version(all) == after.Version(all) || before.Equal(after):
			t.Errorf("%s: a change of one of 2,000 keys isn't seen", name)
		case before.Version(some).Sum != before.Version(all).Sum:
			t.Errorf("%s: the version of one key is %s, want that of all, %s", name, before.Version(some), before.Version(all))
		case before.Version(some).IsContentOf(some) || !before.Version(some).IsContentOf(all):
			t.Errorf("%s: the version of one key doesn't say that it is of all", name)
		}
	}
	const want = "1:*:ca056381a2fdd651369f0ee29de8b659"
	o := many(2000, "1")
	if got := o.version(fingerprint.Hasher{}, all).String(); got != want {
		t.Errorf("the version of 2,000 keys is %s, want %s, as when all keys were kept", got, want)
	}
}

// TestComparedOverTheBound: an object that got too many keys, or has fewer again, has changed. That
// needs no watch.
func TestComparedOverTheBound(t *testing.T) {
	t.Parallel()
	data := map[string]string{"used": ""}
	small := fingerprint.Hasher{}.Content(data, nil)
	for i := range 2000 {
		data[fmt.Sprint("key-", i)] = ""
	}
	large := fingerprint.Hasher{}.Content(data, nil)
	some, other, all := fingerprint.SomeKeys("used"), fingerprint.SomeKeys("other"), fingerprint.AllKeys()
	none := fingerprint.Hasher{}.AbsentVersion(some)
	for name, c := range map[string]struct {
		content        fingerprint.Content
		keys           fingerprint.Keys
		recorded, want fingerprint.Version
	}{
		"Grown":     {large, some, small.Version(some), large.Version(some).Unknown()},
		"Shrunk":    {small, some, large.Version(some), small.Version(some).Unknown()},
		"Arrived":   {large, some, none, fingerprint.Version{Basis: large.Version(some).Basis, Sum: none.Sum}},
		"Same":      {large, some, large.Version(some), large.Version(some)},
		"All":       {large, all, small.Version(all), small.Version(all)},
		"OtherKeys": {large, other, small.Version(some), small.Version(some)},
		"FewerKeys": {large, some, large.Version(all), large.Version(all)},
	} {
		if got := c.recorded.ComparedWith(c.content.Version(c.keys)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// FuzzContent holds for any two pairs: the version does not depend on the way
// the pairs are stored, and different pairs have different versions.
func FuzzContent(f *testing.F) {
	f.Add("a", "1", "b", "2")
	f.Add("a", "1b=2", "", "")
	f.Add("k", "\xff\x00", "k2", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		if k1 == k2 {
			return
		}
		h, all := fingerprint.Hasher{}, fingerprint.AllKeys()
		pair := h.Content(map[string]string{k1: v1, k2: v2}, nil).Version(all)
		for name, o := range map[string]object{
			"split":  {text: map[string]string{k2: v2}, binaries: map[string][]byte{k1: []byte(v1)}},
			"binary": {binaries: map[string][]byte{k1: []byte(v1), k2: []byte(v2)}},
		} {
			if got := o.version(h, all); got != pair {
				t.Errorf("%s: %s, want %s", name, got, pair)
			}
		}
		if one := h.Content(map[string]string{k1: v1}, nil).Version(all); one == pair {
			t.Errorf("one key and two keys have the version %s", pair)
		}
		subset := h.Content(map[string]string{k1: v1, k2: v2}, nil).Version(fingerprint.SomeKeys(k1))
		alone := h.Content(map[string]string{k1: v1}, nil).Version(fingerprint.SomeKeys(k1))
		if subset != alone {
			t.Errorf("the key %q has the version %s beside another and %s alone", k1, subset, alone)
		}
	})
}

// TestVersionDoesNotDependOnOrder puts the same keys in by many orders; Go's own
// maps are visited in random order, which makes each run another sample.
func TestVersionDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	names := strings.Split("alpha,beta,gamma,delta,epsilon,zeta,eta,theta", ",")
	var first fingerprint.Version
	for turn := range 200 {
		text := map[string]string{}
		for i := range names {
			name := names[(i+turn)%len(names)]
			text[name] = strings.ToUpper(name)
		}
		got := fingerprint.Hasher{}.Content(text, nil).Version(fingerprint.SomeKeys(slices.Collect(maps.Keys(text))...))
		if turn == 0 {
			first = got
		}
		if got != first {
			t.Fatalf("turn %d: %s, before %s", turn, got, first)
		}
	}
}

// BenchmarkContent digests what a start-up digests 35,000 times: text of 20 KB.
func BenchmarkContent(b *testing.B) {
	text := map[string]string{"key": strings.Repeat("x", 20<<10)}
	b.SetBytes(20 << 10)
	for b.Loop() {
		fingerprint.Hasher{}.Content(text, nil)
	}
}
