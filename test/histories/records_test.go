package histories_test

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// cached is a process's view of the cluster.
type cached struct {
	workloads *mirror.Mirror[*kube.Workload]
	// lenders are the Deployments whose templates Rollouts use, nil without any.
	lenders    *mirror.Mirror[*kube.Workload]
	sources    map[input.Kind]*mirror.Mirror[*kube.Source]
	namespaces *mirror.Mirror[*kube.Namespace]
	// digests are made with the key of the installation.
	digests kube.Hashers
}

func (c *cached) Workload(key kube.Key) (*kube.Workload, bool) {
	w, ok := c.workloads.Get(key.Namespace, key.Name)
	if !ok || c.lenders == nil {
		return w, ok
	}
	return w.Resolved(func(lender kube.Key) (*kube.Workload, bool) { return c.lenders.Get(lender.Namespace, lender.Name) }), true
}

func (c *cached) Source(namespace string, id input.ID) (*kube.Source, bool) {
	return c.sources[id.Kind].Get(namespace, id.Name)
}

func (c *cached) SourcesMatching(namespace string, p settings.Pattern) iter.Seq[input.ID] {
	return func(yield func(input.ID) bool) {
		var all []input.ID
		c.sources[p.Kind].EachIn(namespace, func(s *kube.Source) {
			if p.Matches(s.ID) {
				all = append(all, s.ID)
			}
		})
		slices.SortFunc(all, func(a, b input.ID) int { return cmp.Compare(a.Name, b.Name) })
		for _, id := range all {
			if !yield(id) {
				return
			}
		}
	}
}

func (c *cached) Namespace(name string) (*kube.Namespace, bool) { return c.namespaces.Get("", name) }
func (c *cached) Knows(input.Kind, string) bool                 { return true }
func (c *cached) Lists(kube.Key) bool                           { return true }
func (c *cached) KnowsNamespaces() bool                         { return true }
func (c *cached) LacksNamespace(string) bool                    { return false }

func (c *cached) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return c.digests.Kinds[kind].AbsentVersion(keys)
}

// Followers visits the workloads that use the source of a change, in its namespace or in all.
func (c *cached) Followers(of input.Change, visit func(*kube.Workload)) {
	var all []*kube.Workload
	c.workloads.Each(func(w *kube.Workload) {
		if (of.Namespace == "" || of.Namespace == w.Key.Namespace) && uses(w, of.ID) {
			all = append(all, w)
		}
	})
	slices.SortFunc(all, func(a, b *kube.Workload) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	for _, w := range all {
		visit(w)
	}
}

func uses(w *kube.Workload, id input.ID) bool {
	return slices.ContainsFunc(w.Refs, func(r podrefs.Ref) bool { return r.Source == id }) ||
		w.Annotations[settings.Reload] != "auto" && slices.ContainsFunc(settings.Native{}.Intent(w.Annotations, nil).Listed, func(p settings.Pattern) bool { return p.Matches(id) })
}

// disk is a record as it was last written.
type disk struct {
	entries map[kube.Key]string
	// failures are by version, series by source.
	failures, series map[input.Change]string
	// writtenAt is when the server last stored entries.
	writtenAt *time.Time
}

func newDisk() disk {
	return disk{entries: map[kube.Key]string{}, failures: map[input.Change]string{}, series: map[input.Change]string{}, writtenAt: &time.Time{}}
}

// texts are one part of a record: those on disk, and those that were put there since.
type texts[K comparable] struct {
	disk   map[K]string
	memory map[K]*string
	// writtenAt is set at each write to the disk, nil when nothing needs it.
	writtenAt *time.Time
}

func (t *texts[K]) get(k K) (text string, ok bool) {
	if put, changed := t.memory[k]; changed {
		if put == nil {
			return "", false
		}
		return *put, true
	}
	text, ok = t.disk[k]
	return text, ok
}

// flush writes to the disk.
func (t *texts[K]) flush() {
	for k, text := range t.memory {
		if text == nil {
			delete(t.disk, k)
		} else {
			t.disk[k] = *text
		}
	}
	t.memory = map[K]*string{}
	if t.writtenAt != nil {
		*t.writtenAt = now().Time
	}
}

// records are a process's entries in their written form.
type records struct {
	entries          texts[kube.Key]
	failures, series texts[input.Change]
	// decoded are the texts that were decoded last. All looks share their entries, as those of
	// the product do.
	decoded map[kube.Key]*decoded
}

func newRecords(d disk) records {
	return records{
		entries:  texts[kube.Key]{d.entries, map[kube.Key]*string{}, d.writtenAt},
		failures: texts[input.Change]{d.failures, map[input.Change]*string{}, nil}, series: texts[input.Change]{d.series, map[input.Change]*string{}, nil},
		decoded: map[kube.Key]*decoded{},
	}
}

// decoded is a text with its entry; copied shows whether a look has changed the entry.
type decoded struct {
	text          string
	entry, copied record.Entry
}

func (r *records) Entry(k kube.Key) (record.Entry, bool) {
	text, ok := r.entries.get(k)
	if !ok {
		return record.Entry{}, false
	}
	read := r.decoded[k]
	if read == nil || text != read.text {
		e, err := record.Decode(text)
		if err != nil {
			panic(err)
		}
		read = &decoded{text: text, entry: e, copied: e.Clone()}
		r.decoded[k] = read
	}
	if !read.entry.Equal(read.copied) {
		panic("a look has changed the entry that others share")
	}
	e := read.entry
	if _, unwritten := r.entries.memory[k]; !unwritten {
		e.WrittenAt = *r.entries.writtenAt
	}
	return e, true
}

// Failure is what is on record of a version.
func (r *records) Failure(c input.Change) record.Failure {
	text, ok := r.failures.get(record.Published(c))
	if !ok {
		return record.Failure{}
	}
	return must(record.DecodeFailure(text))
}

// Failures are those on record.
func (r *records) Failures() map[input.Change]record.Failure {
	all := map[input.Change]record.Failure{}
	for _, texts := range []iter.Seq[input.Change]{maps.Keys(r.failures.disk), maps.Keys(r.failures.memory)} {
		for of := range texts {
			if text, ok := r.failures.get(of); ok {
				all[of] = must(record.DecodeFailure(text))
			}
		}
	}
	return all
}

// Series is what is on record of a source.
func (r *records) Series(of input.Change) (record.Series, bool) {
	text, ok := r.series.get(of)
	if !ok {
		return record.Series{}, false
	}
	version, rest, _ := strings.Cut(text, " ")
	return must(record.DecodeSeries(version, rest)), true
}

func must[T any](decoded T, err error) T {
	if err != nil {
		panic(err)
	}
	return decoded
}
