package fingerprint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"
	"unique"
)

// An algorithm is stored with every version. Raise it when the bytes that go into a sum
// change: then every workload takes a new baseline.
const (
	// plainAlgorithm digests keys and values.
	plainAlgorithm = "1"
	// keyedAlgorithm digests the place of the object too.
	keyedAlgorithm = "2"
)

// keyMark is between the algorithm and the name of the key, in a keyed basis.
const keyMark = "k"

// sumSize is how much of a SHA-256 is kept. 128 bits rule out accidental collisions, and
// 35,000 objects of ten keys then cost 5.6 MB.
const sumSize = 16

// A Hasher turns contents into digests. The zero value hashes plainly, which suits
// ConfigMaps; one with a key suits Secrets, whose digests would otherwise let any user
// who can read a pod test password guesses.
type Hasher struct {
	key []byte
	id  string
	// place is where the object is; only a keyed Hasher uses it.
	place place
}

// place identifies an object.
type place struct{ namespace, kind, name string }

// NewKeyedHasher returns a Hasher whose digests depend on the installation's key.
// Versions name the key they were computed with, so a lost key is a new baseline.
func NewKeyedHasher(key []byte) Hasher {
	sum := sha256.Sum256(key)
	return Hasher{key: slices.Clone(key), id: keyMark + hex.EncodeToString(sum[:3])}
}

// KeyID names the key, and is empty without one. It doesn't reveal the key.
func (h Hasher) KeyID() string { return strings.TrimPrefix(h.id, keyMark) }

// At returns the Hasher for the object at that place. Equal contents of two Secrets have
// unrelated digests: a user who can read one Secret and see another's digest learns
// nothing about the other.
func (h Hasher) At(namespace, kind, name string) Hasher {
	h.place = place{namespace, kind, name}
	return h
}

// MaxKeys bounds the bytes that are kept of one object: the names of its keys, and a digest of
// each. Otherwise an object of 1 MiB could take several times as much memory, because its
// values may be empty.
const MaxKeys = 16 << 10

// Content is the stored form of a ConfigMap or Secret: a digest for each key. It is
// immutable, and small: the controller has one for each object of the cluster.
type Content struct {
	algorithm unique.Handle[string]
	// salt is a digest of the place, which every keyed version includes; zero without a key.
	salt sum
	// names are the keys, sorted, each with its length before it. They are one text, because
	// many objects have the same keys, and because a text for each key would take more memory
	// than the keys.
	names unique.Handle[string]
	// sums are the digests of the keys, one after the other. Of an object with too many keys
	// there are no names, and two sums of the whole: with the salt and without it.
	sums string
}

// sum is the kept part of a digest.
type sum [sumSize]byte

// Content digests the bytes that a pod would see. A key that moves from text to
// binary with the same bytes is the same file, so the two maps are one.
func (h Hasher) Content(text map[string]string, binaries map[string][]byte) Content {
	keys := make([]string, 0, len(text)+len(binaries))
	keys = slices.AppendSeq(keys, maps.Keys(text))
	keys = slices.AppendSeq(keys, maps.Keys(binaries))
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var names, sums []byte
	digest := fields{Hash: h.newHash()}
	for _, key := range keys {
		names = append(binary.AppendVarint(names, int64(len(key))), key...)
		digest.Reset()
		digest.text(key)
		if value, ok := text[key]; ok {
			digest.text(value)
		} else {
			digest.bytes(binaries[key])
		}
		sums = append(sums, digest.Sum(nil)[:sumSize]...)
	}
	c := Content{algorithm: unique.Make(h.algorithm()), salt: h.salt(), sums: string(sums)}
	if len(names)+len(sums) > MaxKeys {
		all := AllKeys()
		c.sums = string(append(digestOf(c.salt, string(names), c.sums, all), digestOf(sum{}, string(names), c.sums, all)...))
		return c
	}
	c.names = unique.Make(string(names))
	return c
}

// IsWhole reports whether the object has too many keys. Lockstep then sees only that something
// changed: the sum of every version covers all keys.
func (c Content) IsWhole() bool {
	return c.names == unique.Handle[string]{} && c.sums != ""
}

// Version is the version of the given keys. Keys that the object doesn't contain
// contribute nothing, so adding one of them is a change.
func (c Content) Version(keys Keys) Version {
	algorithm := ""
	if c.algorithm != (unique.Handle[string]{}) {
		algorithm = c.algorithm.Value()
	}
	basis := algorithm + ":" + keys.ID()
	if c.IsWhole() {
		if !keys.all {
			basis += wholeMark
		}
		return Version{Basis: basis, Sum: hex.EncodeToString([]byte(c.sums[:sumSize]))}
	}
	return Version{Basis: basis, Sum: hex.EncodeToString(c.digestOf(c.salt, keys))}
}

// SharedDigest is the beginning of a digest of all keys, wherever the object is: copies of a
// Secret have the same. Lockstep must not show it.
func (c Content) SharedDigest() string {
	if c.IsWhole() {
		return hex.EncodeToString([]byte(c.sums[sumSize:]))[:shortSize]
	}
	return hex.EncodeToString(c.digestOf(sum{}, AllKeys()))[:shortSize]
}

// digestOf is the digest of the given keys of an object whose keys are kept.
func (c Content) digestOf(salt sum, keys Keys) []byte {
	names := ""
	if c.sums != "" {
		names = c.names.Value()
	}
	return digestOf(salt, names, c.sums, keys)
}

// digestOf is the digest of the given keys among those with these names and sums.
func digestOf(salt sum, names, sums string, keys Keys) []byte {
	digest := fields{Hash: sha256.New()}
	if salt != (sum{}) {
		digest.bytes(salt[:])
	}
	for ; names != ""; sums = sums[sumSize:] {
		var key string
		if key, names = cutKey(names); keys.Has(key) {
			digest.text(key)
			digest.raw(sums[:sumSize])
		}
	}
	return digest.Sum(nil)[:sumSize]
}

// cutKey cuts the first key off the names.
func cutKey(names string) (key, rest string) {
	length, n := binary.Varint([]byte(names[:min(len(names), binary.MaxVarintLen64)]))
	return names[n:][:length], names[n:][length:]
}

// Equal reports whether both hold the same keys with the same bytes.
func (c Content) Equal(other Content) bool {
	return c == other
}

// MayHaveFewerKeys reports whether the content may have fewer keys than the other one. Nothing is known
// of an object with too many of them.
func (c Content) MayHaveFewerKeys(than Content) bool {
	return c.IsWhole() || than.IsWhole() || len(c.sums) < len(than.sums)
}

// AbsentVersion is the version of an object that does not exist.
func (h Hasher) AbsentVersion(keys Keys) Version {
	return Version{Basis: h.algorithm() + ":" + keys.ID(), Sum: absent}
}

func (h Hasher) algorithm() string {
	if h.key == nil {
		return plainAlgorithm
	}
	return keyedAlgorithm + h.id
}

// salt is a digest of the place that can be computed only with the key, zero without a
// key.
func (h Hasher) salt() (salt sum) {
	if h.key == nil {
		return salt
	}
	digest := fields{Hash: h.newHash()}
	digest.text(h.place.namespace)
	digest.text(h.place.kind)
	digest.text(h.place.name)
	copy(salt[:], digest.Sum(nil))
	return salt
}

func (h Hasher) newHash() hash.Hash {
	if h.key == nil {
		return sha256.New()
	}
	return hmac.New(sha256.New, h.key)
}

// fields writes each field with its length before it: without that {a:"1",b:"2"} and
// {a:"1b=2"} could have the same digest, which is how other tools miss changes.
type fields struct {
	hash.Hash
	// piece is a buffer for text. A conversion would copy the whole text, which at 35,000
	// ConfigMaps of 20 KB is half a gigabyte of garbage at startup.
	piece []byte
}

func (f *fields) bytes(field []byte) {
	f.length(len(field))
	f.Write(field)
}

func (f *fields) text(field string) {
	f.length(len(field))
	f.raw(field)
}

// raw writes a field of a fixed length.
func (f *fields) raw(field string) {
	if f.piece == nil {
		f.piece = make([]byte, 512)
	}
	for len(field) > 0 {
		n := copy(f.piece, field)
		f.Write(f.piece[:n])
		field = field[n:]
	}
}

func (f *fields) length(n int) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(n)) //nolint:gosec // A length is not negative.
	f.Write(length[:])
}
