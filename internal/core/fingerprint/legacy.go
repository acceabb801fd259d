package fingerprint

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // what a predecessor stored has to be recognised; nothing is decided by it alone
	"encoding/base64"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// LegacyConfigMap is the SHA-1 that kubernetes-reloader stored for a ConfigMap.
// It is not unique: {a:"1",b:"2"} and {a:"1b=2"} have the same.
func LegacyConfigMap(data map[string]string) string {
	return legacySum(data, func(key string) string { return data[key] })
}

// LegacySecret is the SHA-1 that kubernetes-reloader stored for a Secret: over
// the base64 texts of the API, not the decoded bytes.
func LegacySecret(data map[string][]byte) string {
	return legacySum(data, func(key string) string { return base64.StdEncoding.EncodeToString(data[key]) })
}

// IsLegacy reports whether the text has the form of such a SHA-1.
func IsLegacy(text string) bool {
	return len(text) == 2*sha1.Size && strings.Trim(text, "0123456789abcdef") == ""
}

func legacySum[V any](data map[string]V, value func(key string) string) string {
	h := sha1.New() //nolint:gosec // kubernetes-reloader stored SHA-1, which has to be recognised
	for _, key := range legacyOrder(data) {
		_, _ = io.WriteString(h, key+"="+value(key))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// legacyOrder is the order in which a JavaScript engine walks an object: keys
// that are array indices first, by number, then the others as the API server
// sent them, which is by bytes.
func legacyOrder[V any](data map[string]V) []string {
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	sorting.By(keys, func(a, b string) int {
		i, aIndex := arrayIndex(a)
		j, bIndex := arrayIndex(b)
		switch {
		case aIndex && bIndex:
			return cmp.Compare(i, j)
		case aIndex:
			return -1
		case bIndex:
			return 1
		}
		return strings.Compare(a, b)
	})
	return keys
}

// arrayIndex reads "0" to "4294967294" without leading zeros.
func arrayIndex(key string) (uint64, bool) {
	const last = 1<<32 - 2
	i, err := strconv.ParseUint(key, 10, 64)
	return i, err == nil && i <= last && strconv.FormatUint(i, 10) == key
}
