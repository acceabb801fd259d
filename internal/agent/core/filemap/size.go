package filemap

import (
	"fmt"
	"slices"
	"strconv"
)

// block is the least space that a file takes on a disk.
const block = 4096

// Weight is how much a value counts towards Rules.MaxBytes: whole blocks, and at least one,
// so the limit bounds the number of files too.
func Weight(size int64) int64 { return max(1, (size+block-1)/block) * block }

// Weight is how much the object counts towards Rules.MaxBytes. An empty object counts like an
// empty file.
func (o Object) Weight() int64 {
	if o.Omitted > 0 {
		return o.Omitted
	}
	var weight int64
	for _, e := range o.Entries {
		weight += Weight(e.Size)
	}
	return max(weight, block)
}

// Bytes is a number of bytes that is written for users: 256.0 MiB.
type Bytes int64

// String returns the number in KiB or MiB.
func (b Bytes) String() string {
	if b < 1<<20 {
		return strconv.FormatFloat(float64(b)/(1<<10), 'f', 1, 64) + " KiB"
	}
	return strconv.FormatFloat(float64(b)/(1<<20), 'f', 1, 64) + " MiB"
}

// SizeError reports that the sources exceed Rules.MaxBytes.
type SizeError struct {
	Total, Limit Bytes
	// Largest is the object with the greatest weight.
	Largest       Ref
	LargestWeight Bytes
}

// Error names the sizes, the largest object and what to do.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the sources total %s and the limit is %s; the largest is %s with %s: make the sources smaller or raise the limit",
		e.Total, e.Limit, e.Largest, e.LargestWeight)
}

// Fits reports whether objects of this total weight fit, of which those of one namespace weigh
// so much.
func (r Rules) Fits(namespace, total int64) bool {
	return (r.MaxBytes == 0 || total <= r.MaxBytes) && (r.Share == 0 || namespace <= r.Share)
}

// SkipsLarge reports whether objects that don't fit are left out, so other objects don't wait for
// them. In a set of several namespaces that includes the first set: a pod must start even if one
// tenant's objects are too large.
func (r Rules) SkipsLarge() bool { return r.LeaveOut || r.Shared }

// omission explains why an object is left out.
func (r Rules) omission(o Object) error {
	if r.Share > 0 && o.Namespace != "" {
		return fmt.Errorf("%s is left out: its %s would take the set over %s, or namespace %s over its share of %s", o.Ref, Bytes(o.Omitted), Bytes(r.MaxBytes), o.Namespace, Bytes(r.Share))
	}
	return fmt.Errorf("%s is left out: its %s would take the set over %s", o.Ref, Bytes(o.Omitted), Bytes(r.MaxBytes))
}

// tooLarge returns an error when contents were omitted.
func (r Rules) tooLarge(objects []Object) error {
	if r.SkipsLarge() || !slices.ContainsFunc(objects, func(o Object) bool { return o.Omitted > 0 }) {
		return nil
	}
	e := &SizeError{Limit: Bytes(r.MaxBytes)}
	for _, o := range objects {
		weight := Bytes(o.Weight())
		e.Total += weight
		if weight > e.LargestWeight {
			e.Largest, e.LargestWeight = o.Ref, weight
		}
	}
	return e
}
