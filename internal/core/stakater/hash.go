package stakater

import (
	"crypto/sha1" //nolint:gosec // the original's written value; a strong digest decides
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// DeletedHash stands for the content of a deleted source.
const DeletedHash = "aae45badef99284e4dae01d6046154ea9d99532f"

// HashConfigMap is the written hash of a ConfigMap's content.
func HashConfigMap(data map[string]string, binary map[string][]byte) string {
	entries := make([]entry, 0, len(data)+len(binary))
	for key, value := range data {
		entries = append(entries, entry{key + "=", func() []byte { return []byte(value) }})
	}
	for key, value := range binary {
		entries = append(entries, entry{key + "=", func() []byte { return base64.StdEncoding.AppendEncode(nil, value) }})
	}
	return hash(entries)
}

// HashSecret is the written hash of a Secret's content.
func HashSecret(data map[string][]byte) string {
	entries := make([]entry, 0, len(data))
	for key, value := range data {
		entries = append(entries, entry{key + "=", func() []byte { return value }})
	}
	return hash(entries)
}

// ClassObject is one object that a pod got through its SecretProviderClass.
type ClassObject struct {
	ID, Version string
}

// HashClass is the written hash of the objects that a pod got through a SecretProviderClass.
func HashClass(class string, objects []ClassObject) string {
	entries := []entry{{"SecretProviderClassName=", func() []byte { return []byte(class) }}}
	for _, object := range objects {
		entries = append(entries, entry{object.ID + "=", func() []byte { return []byte(object.Version) }})
	}
	return hash(entries)
}

// entry is one key=value of a source. The value is made when it is needed, so the hash never
// needs a second copy of the whole content.
type entry struct {
	head  string // key=
	value func() []byte
}

// compare orders entries by their whole text, so app1= comes before app=.
func (e entry) compare(other entry) int {
	if strings.HasPrefix(e.head, other.head) || strings.HasPrefix(other.head, e.head) {
		return strings.Compare(e.head+string(e.value()), other.head+string(other.value()))
	}
	return strings.Compare(e.head, other.head)
}

// hash is the SHA-1 of the sorted entries, joined by semicolons.
func hash(entries []entry) string {
	sorting.By(entries, entry.compare)
	sum := sha1.New() //nolint:gosec // as above
	for i, e := range entries {
		if i > 0 {
			sum.Write([]byte(";"))
		}
		sum.Write([]byte(e.head))
		sum.Write(e.value())
	}
	return hex.EncodeToString(sum.Sum(nil))
}
