// Package sorting sorts lists of any type with one compiled algorithm.
package sorting

import (
	"maps"
	"slices"
	"sort"
)

// By sorts the list; equal elements keep their order. slices.SortStableFunc does the same and is
// faster, but each type of element adds 20 kB to the program.
func By[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Keys are the sorted keys of a map.
func Keys[K comparable, V any](of map[K]V, compare func(a, b K) int) []K {
	keys := slices.Collect(maps.Keys(of))
	By(keys, compare)
	return keys
}
