package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of the settings that are kept of one object. A tenant can write 256 KiB of
// annotations, and Lockstep keeps the settings of all objects in memory.
const (
	// maxReload bounds the annotation that lists sources, maxValue every other one.
	maxReload = 32 << 10
	maxValue  = 1 << 10
	// maxContainerKeys bounds the annotations that name a container.
	maxContainerKeys = 128
	// maxUnknownKeys bounds misspelt keys, which are kept to report them.
	maxUnknownKeys = 16
)

// Limit bounds the settings of an object. It cuts a value that is too long just beyond its
// bound, and keeps one key more than there may be, so their parser notices both.
func Limit(all map[string]string) map[string]string {
	var containers, unknown []string
	for key, value := range all {
		most := maxValue
		switch key {
		case Reload:
			most = maxReload
		case Quiet, Strategy, Hold, Release, Observe:
		default:
			if strings.HasPrefix(key, Prefix) {
				unknown = append(unknown, key)
			} else {
				containers = append(containers, key)
			}
		}
		if len(value) > most {
			all[key] = strings.Clone(value[:most+1]) // A part of the value would keep it whole.
		}
	}
	drop(all, containers, maxContainerKeys+1)
	drop(all, unknown, maxUnknownKeys)
	return all
}

// drop removes the keys beyond the first ones, in order: equal annotations stay equal.
func drop(all map[string]string, keys []string, most int) {
	slices.Sort(keys)
	for _, key := range keys[min(most, len(keys)):] {
		delete(all, key)
	}
}

// TooManyContainerKeys describes that more annotations with such a key name a container than
// there may be, empty when they don't.
func TooManyContainerKeys(annotations map[string]string, is func(key string) bool) string {
	count := 0
	for key := range annotations {
		if is(key) {
			count++
		}
	}
	if count <= maxContainerKeys {
		return ""
	}
	return fmt.Sprintf("it has more than %d annotations that name a container", maxContainerKeys)
}
