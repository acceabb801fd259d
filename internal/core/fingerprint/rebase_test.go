package fingerprint_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

// TestEqualSecretsLookUnrelated: the digest of a Secret depends on where it is, so that
// who owns one Secret learns nothing of another's from their digests. That of a
// ConfigMap does not: its content is no secret.
func TestEqualSecretsLookUnrelated(t *testing.T) {
	t.Parallel()
	keyed, all := fingerprint.NewKeyedHasher([]byte("installation")), fingerprint.AllKeys()
	data := map[string][]byte{"password": []byte("hunter2")}
	version := func(h fingerprint.Hasher, namespace, kind, name string) fingerprint.Version {
		return h.At(namespace, kind, name).Content(nil, data).Version(all)
	}
	base := version(keyed, "shop", "Secret", "db")
	if again := version(keyed, "shop", "Secret", "db"); again != base {
		t.Errorf("the same Secret has the versions %s and %s", base, again)
	}
	cases := map[string]struct{ reason, namespace, kind, name string }{
		"Namespace": {"another tenant's", "blog", "Secret", "db"},
		"Name":      {"another one beside it", "shop", "Secret", "db2"},
		"Kind":      {"another kind of that name", "shop", "ConfigMap", "db"},
		"Shifted":   {"the same letters in other fields", "shopS", "ecret", "db"},
	}
	for name, tc := range cases {
		other := version(keyed, tc.namespace, tc.kind, tc.name)
		if other.Sum == base.Sum || !other.Comparable(base) {
			t.Errorf("%s: %s has the version %s, the base %s; want another sum of the same basis", tc.reason, name, other, base)
		}
		if plain := (fingerprint.Hasher{}); version(plain, tc.namespace, tc.kind, tc.name) != version(plain, "shop", "Secret", "db") {
			t.Errorf("%s: a plain digest depends on the place", tc.reason)
		}
	}
}

// TestRebase: what algorithm 1 wrote of a Secret is compared with what it would write
// now. Its digests are written out here, as it made them.
func TestRebase(t *testing.T) {
	t.Parallel()
	// {"a": "1", "b": "2"} with the key "k", over all keys and over "a".
	const all, some = "1k8254c3:*:2670dab37c056b2d9690a3f762b6f82a", "1k8254c3:"
	content := fingerprint.NewKeyedHasher([]byte("k")).At("shop", "Secret", "db").Content(nil, map[string][]byte{"a": []byte("1"), "b": []byte("2")})
	plain := fingerprint.Hasher{}.Content(map[string]string{"a": "1", "b": "2"}, nil)
	a := fingerprint.SomeKeys("a")
	everything := fingerprint.AllKeys()
	now := content.Version(everything)
	differs := fingerprint.Version{Basis: now.Basis, Sum: "11111111111111111111111111111111"}
	cases := map[string]struct {
		reason  string
		content fingerprint.Content
		keys    fingerprint.Keys
		stored  string
		want    fingerprint.Version
	}{
		"Equal":     {"the content is still the same", content, everything, all, now},
		"Keys":      {"also over some keys", content, a, content.Before(a).String(), content.Version(a)},
		"Different": {"another content is another version", content, everything, "1k8254c3:*:" + differs.Sum, differs},
		"Absent":    {"the object did not exist", content, everything, "1k8254c3:*:absent", fingerprint.Version{Basis: now.Basis, Sum: "absent"}},
		"Unknown":   {"content that no process saw stays unknown", content, everything, "1k8254c3:*:unknown", now.Unknown()},
		"OtherKey":  {"of another installation key nothing is known", content, everything, "1k000000:*:" + differs.Sum, version(t, "1k000000:*:"+differs.Sum)},
		"OtherKeys": {"of other keys nothing is known", content, a, all, version(t, all)},
		"Now":       {"what is measured as it is now stays", content, everything, now.String(), now},
		"Plain":     {"ConfigMaps are measured as they were", plain, everything, "1:*:" + differs.Sum, version(t, "1:*:"+differs.Sum)},
	}
	if before := content.Before(a); before.String()[:len(some)] != some || before.Basis == version(t, all).Basis {
		t.Errorf("some keys had the version %s", before)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.content.Rebase(version(t, tc.stored), tc.keys); got != tc.want {
				t.Errorf("%s: %s becomes %s, want %s", tc.reason, tc.stored, got, tc.want)
			}
		})
	}
}

func version(t *testing.T, text string) fingerprint.Version {
	t.Helper()
	v, err := fingerprint.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
