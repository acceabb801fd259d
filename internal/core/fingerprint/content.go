package fingerprint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
)

// algorithm is stored with every version. Raise it when the bytes that go into
// a sum change: every workload then takes a new baseline instead of restarting.
const algorithm = "1"

// sumSize is how much of a SHA-256 is kept. 128 bits are out of reach for an
// accident, and 35,000 objects of ten keys then cost 5.6 MB.
const sumSize = 16

// A Hasher turns contents into digests. The zero value hashes plainly, which
// suits ConfigMaps; one with a key suits Secrets, whose digests would otherwise
// let anybody who can read a pod test guesses of a password.
type Hasher struct {
	key []byte
	id  string
}

// NewKeyedHasher returns a Hasher whose digests depend on the installation's key.
// Versions name the key they were made with, so a lost key is a new baseline.
func NewKeyedHasher(key []byte) Hasher {
	sum := sha256.Sum256(key)
	return Hasher{key: slices.Clone(key), id: "k" + hex.EncodeToString(sum[:3])}
}

// Content is what is kept of a ConfigMap or Secret: a digest for each key.
// It is immutable.
type Content struct {
	algorithm string
	keys      []string
	sums      [][sumSize]byte
}

// Content digests the bytes that a pod would see. A key that moves from text to
// binary with the same bytes is the same file, so the two maps are one.
func (h Hasher) Content(text map[string]string, binaries map[string][]byte) Content {
	c := Content{algorithm: algorithm + h.id, keys: make([]string, 0, len(text)+len(binaries))}
	c.keys = slices.AppendSeq(c.keys, maps.Keys(text))
	c.keys = slices.AppendSeq(c.keys, maps.Keys(binaries))
	slices.Sort(c.keys)
	c.keys = slices.Clip(slices.Compact(c.keys))
	c.sums = make([][sumSize]byte, len(c.keys))
	digest := fields{Hash: h.newHash()}
	for i, key := range c.keys {
		digest.Reset()
		digest.text(key)
		if value, ok := text[key]; ok {
			digest.text(value)
		} else {
			digest.bytes(binaries[key])
		}
		copy(c.sums[i][:], digest.Sum(nil))
	}
	return c
}

// Version is the version of the given keys. Keys that the object does not have
// contribute nothing, so that adding one of them is a change.
func (c Content) Version(keys Keys) Version {
	digest := fields{Hash: sha256.New()}
	for i, key := range c.keys {
		if keys.Has(key) {
			digest.text(key)
			digest.Write(c.sums[i][:])
		}
	}
	return Version{Basis: c.algorithm + ":" + keys.ID(), Sum: hex.EncodeToString(digest.Sum(nil)[:sumSize])}
}

// Equal reports whether both hold the same keys with the same bytes.
func (c Content) Equal(other Content) bool {
	return c.algorithm == other.algorithm && slices.Equal(c.keys, other.keys) && slices.Equal(c.sums, other.sums)
}

// AbsentVersion is the version of an object that does not exist.
func (h Hasher) AbsentVersion(keys Keys) Version {
	return Version{Basis: algorithm + h.id + ":" + keys.ID(), Sum: absent}
}

func (h Hasher) newHash() hash.Hash {
	if h.key == nil {
		return sha256.New()
	}
	return hmac.New(sha256.New, h.key)
}

// fields writes each field with its length before it: without that {a:"1",b:"2"}
// and {a:"1b=2"} could digest alike, which is how changes got lost elsewhere.
type fields struct {
	hash.Hash
	// piece is where a text is copied to on its way. A conversion would copy the
	// whole of it, which at 35,000 ConfigMaps of 20 KB is half a gigabyte of
	// garbage at start-up.
	piece []byte
}

func (f *fields) bytes(field []byte) {
	f.length(len(field))
	f.Write(field)
}

func (f *fields) text(field string) {
	f.length(len(field))
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
