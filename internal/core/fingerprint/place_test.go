package fingerprint_test

import (
	"fmt"
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

// TestSharedDigest: copies of a Secret in several namespaces have the same digest, which is none of
// those that Lockstep shows. It is the same when the Secret has too many keys to keep them.
func TestSharedDigest(t *testing.T) {
	t.Parallel()
	keyed, all := fingerprint.NewKeyedHasher([]byte("installation")), fingerprint.AllKeys()
	many := map[string][]byte{"key": []byte("1")}
	for i := range 2000 {
		many[fmt.Sprint("key-", i)] = nil
	}
	for name, data := range map[string]map[string][]byte{"Usual": {"key": []byte("1")}, "ManyKeys": many} {
		a, b := keyed.At("shop", "Secret", "ca").Content(nil, data), keyed.At("blog", "Secret", "ca").Content(nil, data)
		data["key"] = []byte("2")
		changed, plain := keyed.At("shop", "Secret", "ca").Content(nil, data), fingerprint.Hasher{}.Content(nil, data)
		switch digest := a.SharedDigest(); {
		case digest != b.SharedDigest() || len(digest) != len(a.Version(all).Short()):
			t.Errorf("%s: two copies have the digests %q and %q", name, digest, b.SharedDigest())
		case digest == a.Version(all).Short() || digest == b.Version(all).Short():
			t.Errorf("%s: the digest %q is one that Lockstep shows", name, digest)
		case digest == changed.SharedDigest():
			t.Errorf("%s: the digest %q doesn't depend on the content", name, digest)
		case plain.SharedDigest() != plain.Version(all).Short():
			t.Errorf("%s: the digest of a ConfigMap depends on its place", name)
		}
	}
}
