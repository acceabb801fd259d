// Package timeline knows in which order things happened to a workload and its inputs,
// as far as that can be known.
package timeline

import (
	"math"
	"strconv"
)

// Bounds limit when something was written, in resource versions: not before Min, not
// after Max. Resource versions are one sequence over all objects of a cluster, so they
// order writes of different objects where clocks cannot: timestamps have a resolution of
// a second, may be stripped, and may come from a clock that is off.
//
// A write that a watch delivered has Min = Max. One that happened before the first list
// is only known not to be newer than the object itself.
type Bounds struct {
	Min, Max uint64
}

// After reports whether the write certainly came after the other one.
func (b Bounds) After(other Bounds) bool {
	return b.Min > other.Max
}

// Exact reports whether the write is known exactly: a watch delivered it.
func (b Bounds) Exact() bool {
	return b.Min == b.Max
}

// Later returns bounds for the later one of the two writes.
func (b Bounds) Later(other Bounds) Bounds {
	return Bounds{Min: max(b.Min, other.Min), Max: max(b.Max, other.Max)}
}

// unknownWrite is a write about which nothing is known.
func unknownWrite() Bounds {
	return Bounds{Min: 0, Max: math.MaxUint64}
}

// WrittenUpTo bounds a write by the object that shows it.
func WrittenUpTo(resourceVersion string) Bounds {
	rv, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return unknownWrite()
	}
	return Bounds{Max: rv}
}

// WrittenBetween bounds a write by the last object without it and the first one
// with it. A watch delivers every write, so there the two are one step apart
// and the newer version is exact.
func WrittenBetween(before, after string, watched bool) Bounds {
	b := WrittenUpTo(after)
	if b.Max == math.MaxUint64 {
		return b
	}
	if watched {
		return Bounds{Min: b.Max, Max: b.Max}
	}
	if old, err := strconv.ParseUint(before, 10, 64); err == nil {
		b.Min = old + 1
	}
	return b
}
