package stakater

import (
	"encoding/json"
	"slices"
	"strings"
)

// Variable is the name of the environment variable that shows a source's hash. Names that
// differ only in separators share one.
func Variable(t Type, name string) string {
	var text strings.Builder
	text.WriteString("STAKATER_")
	separated := true // One at the beginning is dropped.
	for _, r := range strings.ToUpper(name) {
		isWord := r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if isWord {
			text.WriteRune(r)
		} else if !separated {
			text.WriteByte('_')
		}
		separated = !isWord
	}
	return text.String() + "_" + string(t)
}

// Reloaded is the value of LastReloadedFrom: the source whose change reloaded the workload.
type Reloaded struct {
	Type       Type     `json:"type"`
	Name       string   `json:"name"`
	Namespace  string   `json:"namespace"`
	Hash       string   `json:"hash"`
	Containers []string `json:"containerRefs"`
	// ObservedAt is in seconds since 1970.
	ObservedAt int64 `json:"observedAt"`
}

// Text is the written form.
func (r Reloaded) Text() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // strings and a number are always written
	}
	return string(text)
}

// maxReloaded is far more than names, a hash and a container can need.
const maxReloaded = 8 << 10

// ParseReloaded reads the written form. It isn't ok unless type, name and hash are there.
func ParseReloaded(text string) (Reloaded, bool) {
	var r Reloaded
	if len(text) > maxReloaded || json.Unmarshal([]byte(text), &r) != nil {
		return Reloaded{}, false
	}
	if !slices.Contains(types(), r.Type) || r.Name == "" || r.Hash == "" {
		return Reloaded{}, false
	}
	return r, true
}
