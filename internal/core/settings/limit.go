package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of the settings that are kept of one object. A tenant can write 256 KiB of
// annotations, and Lockstep keeps the settings of all objects in memory.
const (
	// maxReload bounds the annotation that lists sources: those that a workload may follow fit
	// (input.MaxInputs, input.MaxNames). maxValue bounds every other one of our own.
	maxReload = 20 << 10
	maxValue  = 1 << 10
	// maxContainerKeys bounds the annotations that name a container, and those of a replaced
	// tool that list sources; maxContainers bounds their bytes together.
	maxContainerKeys = 128
	maxContainers    = 16 << 10
	// maxUnknownKeys bounds misspelt keys, which are kept to report them.
	maxUnknownKeys = 16
)

// Only keeps the given settings of an object on which others don't have a meaning.
func Only(keys []string, all map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, set := all[key]; set {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = cut(value, maxValue)
		}
	}
	return kept
}

// Limit bounds the settings of a workload. It cuts a value that is too long just beyond its
// bound, and keeps one key more than there may be, so their parser notices both.
func Limit(all map[string]string) map[string]string {
	unknown, containers, size := 0, 0, 0
	for _, key := range slices.Sorted(maps.Keys(all)) { // Equal annotations stay equal.
		switch {
		case key == Reload:
			all[key] = cut(all[key], maxReload)
		case slices.Contains(ForWorkloads(), key):
			all[key] = cut(all[key], maxValue)
		case strings.HasPrefix(key, Prefix) && unknown < maxUnknownKeys:
			unknown++
			all[key] = "" // Only the key is reported.
		case !strings.HasPrefix(key, Prefix) && containers <= maxContainerKeys && size <= maxContainers:
			containers++
			all[key] = cut(all[key], maxContainers)
			size += len(key) + len(all[key])
		default:
			delete(all, key)
		}
	}
	return all
}

// cut cuts a value just beyond its bound. A part of the value would keep it whole in memory.
func cut(value string, most int) string {
	if len(value) <= most {
		return value
	}
	return strings.Clone(value[:most+1])
}

// TooManyContainerKeys describes that more annotations with such a key name a container, or
// list sources, than there may be, empty when they don't.
func TooManyContainerKeys(annotations map[string]string, is func(key string) bool) string {
	count, size := 0, 0
	for key, value := range annotations {
		if is(key) {
			count++
			size += len(key) + len(value)
		}
	}
	switch {
	case count > maxContainerKeys:
		return fmt.Sprintf("more than %d of its annotations name a container", maxContainerKeys)
	case size > maxContainers:
		return fmt.Sprintf("its annotations that name containers or list sources take more than %d KiB", maxContainers>>10)
	}
	return ""
}
