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
	sort.Stable(positions{
		len(list),
		func(i, j int) bool { return compare(list[i], list[j]) < 0 },
		func(i, j int) { list[i], list[j] = list[j], list[i] },
	})
}

// Keys are the sorted keys of a map.
func Keys[K comparable, V any](of map[K]V, compare func(a, b K) int) []K {
	keys := slices.Collect(maps.Keys(of))
	By(keys, compare)
	return keys
}

// positions is a list of any type, whose elements are known by their positions.
type positions struct {
	n    int
	less func(i, j int) bool
	swap func(i, j int)
}

func (p positions) Len() int           { return p.n }
func (p positions) Less(i, j int) bool { return p.less(i, j) }
func (p positions) Swap(i, j int)      { p.swap(i, j) }
