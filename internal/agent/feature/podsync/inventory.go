package podsync

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Store keeps contents until a generation uses them.
type Store interface {
	Keep(value []byte) (filemap.Digest, error)
	Unpin(entries []filemap.Entry)
}

// Inventory lists the names and digests that the sources currently hold. Any goroutine may
// call its methods.
type Inventory struct {
	opts  Options
	store Store
	now   func() time.Time
	wake  func()

	mu      sync.Mutex
	sources map[string]*sourceState
	used    int64            // the weight of all objects that were admitted
	usedBy  map[string]int64 // the same for each namespace
	first   time.Time
	last    time.Time
	version int
}

// sourceState is one source's part of the inventory.
type sourceState struct {
	Source
	read    bool
	had     bool // the source held an object at some point, so a named one existed
	objects map[filemap.Ref]filemap.Object
	// admitted are the weights of the objects, and of those on their way to the inventory.
	admitted map[filemap.Ref]int64
	deleted  map[filemap.Ref]bool
	failure  string
	failing  time.Time // since when
}

// NewInventory returns an inventory in which no source was read yet. It calls wake after
// every change.
func NewInventory(opts Options, store Store, now func() time.Time, wake func()) *Inventory {
	inv := &Inventory{opts: opts, store: store, now: now, wake: wake, sources: map[string]*sourceState{}, usedBy: map[string]int64{}}
	for _, s := range opts.Sources {
		inv.sources[s.Name] = &sourceState{
			Source: s, objects: map[filemap.Ref]filemap.Object{}, admitted: map[filemap.Ref]int64{}, deleted: map[filemap.Ref]bool{},
		}
	}
	return inv
}

// Admitted is an object that has room within the size limit.
type Admitted struct {
	filemap.Ref

	Weight int64 `json:"weight"`
}

// Admitted lists the objects of each source that have room, in a fixed order.
func (inv *Inventory) Admitted() map[string][]Admitted {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	all := map[string][]Admitted{}
	for name, s := range inv.sources {
		for ref, weight := range s.admitted {
			all[name] = append(all[name], Admitted{ref, weight})
		}
		slices.SortFunc(all[name], func(a, b Admitted) int { return cmp.Compare(a.String(), b.String()) })
	}
	return all
}

// Reserve keeps room for objects that an earlier agent admitted, as far as the limits still allow
// it, until their sources are read. Otherwise the order of the first list would decide.
func (inv *Inventory) Reserve(admitted map[string][]Admitted) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, source := range inv.opts.Sources {
		for _, o := range admitted[source.Name] {
			if inv.fits(o.Namespace, o.Weight) {
				inv.weigh(inv.sources[source.Name], o.Ref, o.Weight)
			}
		}
	}
}

// Admit reports whether an object of this weight fits beside all others, and beside those of its
// namespace, and reserves room for it. The first one wins. The contents of an object that doesn't
// fit are not kept; Put and Replace receive it with Omitted instead. Until the next Put or Replace an object counts with the larger of its
// versions, because a list that fails leaves the old one in place.
func (inv *Inventory) Admit(source string, ref filemap.Ref, weight int64) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	s := inv.sources[source]
	if s == nil || weight <= s.admitted[ref] {
		return true
	}
	if !inv.fits(ref.Namespace, weight-s.admitted[ref]) {
		return false
	}
	inv.weigh(s, ref, weight)
	return true
}

// fits reports whether a namespace can have that much more. Shares are for namespaces; a directory
// belongs to the pod.
func (inv *Inventory) fits(namespace string, more int64) bool {
	if namespace == "" {
		return inv.opts.Rules.Fits(0, inv.used+more)
	}
	return inv.opts.Rules.Fits(inv.usedBy[namespace]+more, inv.used+more)
}

// weigh sets the admitted weight of an object.
func (inv *Inventory) weigh(s *sourceState, ref filemap.Ref, weight int64) {
	inv.used += weight - s.admitted[ref]
	inv.usedBy[ref.Namespace] += weight - s.admitted[ref]
	if inv.usedBy[ref.Namespace] == 0 {
		delete(inv.usedBy, ref.Namespace)
	}
	s.admitted[ref] = weight
	if weight == 0 {
		delete(s.admitted, ref)
	}
}

// Readmits reports whether a source has to be read again, because omitted objects fit now: all
// of them together, or one of them if the set does without the others.
func (inv *Inventory) Readmits(source string) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	var all int64
	omitted, one := false, false
	for name, s := range inv.sources {
		for ref, o := range s.objects {
			all += o.Omitted
			if name == source && o.Omitted > 0 {
				omitted, one = true, one || inv.fits(ref.Namespace, o.Omitted)
			}
		}
	}
	if inv.opts.Rules.SkipsLarge() {
		return one
	}
	return omitted && inv.opts.Rules.Fits(0, inv.used+all)
}

// Weight is what the sources hold, as Rules.MaxBytes counts it.
func (inv *Inventory) Weight() int64 {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	weight := inv.used
	for _, s := range inv.sources {
		for _, o := range s.objects {
			weight += o.Omitted
		}
	}
	return weight
}

// Keep stores one value on the disk.
func (inv *Inventory) Keep(value []byte) (filemap.Digest, error) { return inv.store.Keep(value) }

// Unpin releases values that were kept and never listed.
func (inv *Inventory) Unpin(entries []filemap.Entry) { inv.store.Unpin(entries) }

// Replace sets all objects of a source. Any other object was deleted while the agent didn't
// watch.
func (inv *Inventory) Replace(source string, objects []filemap.Object) {
	inv.change(source, func(s *sourceState) {
		present := map[filemap.Ref]bool{}
		for _, o := range objects {
			present[o.Ref] = true
			inv.put(s, o)
		}
		for _, ref := range slices.Collect(maps.Keys(s.objects)) {
			if !present[ref] {
				inv.remove(s, ref)
			}
		}
		for _, ref := range slices.Collect(maps.Keys(s.admitted)) {
			if _, arrived := s.objects[ref]; !arrived {
				inv.weigh(s, ref, 0)
			}
		}
		s.read = true
	})
	for _, o := range objects {
		inv.store.Unpin(o.Entries)
	}
}

// Put sets one new or changed object.
func (inv *Inventory) Put(source string, object filemap.Object) {
	inv.change(source, func(s *sourceState) { inv.put(s, object) })
	inv.store.Unpin(object.Entries)
}

// Remove reports that an object was deleted.
func (inv *Inventory) Remove(source string, ref filemap.Ref) {
	inv.change(source, func(s *sourceState) { inv.remove(s, ref) })
}

// Failed reports why a source can't be read at the moment. It returns whether the error is
// new.
func (inv *Inventory) Failed(source string, err error) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	s := inv.sources[source]
	if s == nil || s.failure == err.Error() {
		return false
	}
	if s.failure == "" {
		s.failing = inv.now()
	}
	s.failure = err.Error()
	inv.wake()
	return true
}

// Recovered reports that a source can be read again and is unchanged. It returns whether the
// source was failing before.
func (inv *Inventory) Recovered(source string) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	s := inv.sources[source]
	if s == nil || s.failure == "" {
		return false
	}
	s.failure = ""
	inv.wake()
	return true
}

// Failing is the source that could not be read for the longest time, for how long, and why.
// It is empty when all sources can be read.
func (inv *Inventory) Failing() (source string, age time.Duration, why string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for name, s := range inv.sources {
		if since := inv.now().Sub(s.failing); s.failure != "" && (source == "" || since > age) {
			source, age, why = name, since, s.failure
		}
	}
	return source, age, why
}

func (inv *Inventory) change(source string, apply func(*sourceState)) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	s := inv.sources[source]
	if s == nil {
		return
	}
	apply(s)
	s.failure = ""
	inv.version++
	inv.last = inv.now()
	if inv.first.IsZero() {
		inv.first = inv.last
	}
	inv.wake()
}

func (inv *Inventory) put(s *sourceState, o filemap.Object) {
	s.objects[o.Ref] = o
	s.had = true
	inv.weigh(s, o.Ref, o.Weight()-o.Omitted)
	delete(s.deleted, o.Ref)
}

func (inv *Inventory) remove(s *sourceState, ref filemap.Ref) {
	o, known := s.objects[ref]
	if !known {
		return
	}
	// An omitted object that left a selection has no files that could be kept.
	keep := s.Named && inv.opts.OnDelete == DeleteAuto || inv.opts.OnDelete == DeleteKeeps && (s.Named || o.Omitted == 0)
	if keep {
		s.deleted[ref] = true
		return
	}
	delete(s.objects, ref)
	inv.weigh(s, ref, 0)
}

// Snapshot is the inventory at one moment.
type Snapshot struct {
	Objects []filemap.Object
	// Unread lists sources that were not read yet, Missing named objects that never existed, and
	// Deleted objects whose files are kept.
	Unread, Missing, Deleted []string
	// Failures maps a source to the reason why it can't be read.
	Failures map[string]string
	// FirstChange and LastChange bound the changes since the last Settle.
	FirstChange, LastChange time.Time
	// Version grows with every change.
	Version int
}

// Complete reports that every source was read and every required object exists.
func (s Snapshot) Complete() bool { return len(s.Unread) == 0 && len(s.Missing) == 0 }

// Snapshot copies the inventory.
func (inv *Inventory) Snapshot() Snapshot {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	snap := Snapshot{Failures: map[string]string{}, FirstChange: inv.first, LastChange: inv.last, Version: inv.version}
	for name, s := range inv.sources {
		if s.failure != "" {
			snap.Failures[name] = s.failure
		}
		switch {
		case !s.read:
			snap.Unread = append(snap.Unread, name)
		case s.Named && !s.had:
			snap.Missing = append(snap.Missing, name)
		}
	}
	snap.Objects, snap.Deleted = inv.objects()
	slices.Sort(snap.Unread)
	slices.Sort(snap.Missing)
	slices.Sort(snap.Deleted)
	return snap
}

// objects lists every object once, even when two sources select it, and names the objects
// that all sources have deleted. A live object replaces the copy that another source keeps
// of it after its deletion, because an object may move from one selection to another.
func (inv *Inventory) objects() (all []filemap.Object, deleted []string) {
	live, kept := map[filemap.Ref]filemap.Object{}, map[filemap.Ref]filemap.Object{}
	for _, source := range inv.opts.Sources { // a fixed order, so the same copy is used each time
		s := inv.sources[source.Name]
		for ref, o := range s.objects {
			switch {
			case s.deleted[ref]:
				kept[ref] = o
			case o.Omitted == 0 || live[ref].Name == "": // the copy whose contents were kept
				live[ref] = o
			}
		}
	}
	for ref, o := range kept {
		if _, found := live[ref]; !found {
			live[ref] = o
			deleted = append(deleted, ref.String())
		}
	}
	return slices.Collect(maps.Values(live)), deleted
}

// Settle reports that the changes up to a version are being published. Later changes start a
// new burst.
func (inv *Inventory) Settle(version int) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.first = time.Time{}
	if inv.version > version {
		inv.first = inv.last
	}
}

// Live lists the contents that the sources refer to.
func (inv *Inventory) Live() map[filemap.Digest]bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	live := map[filemap.Digest]bool{}
	for _, s := range inv.sources {
		for _, o := range s.objects {
			for _, e := range o.Entries {
				live[e.Digest] = true
			}
		}
	}
	return live
}

// MissingError reports that a named object does not exist.
type MissingError struct{ Sources []string }

// Error names the objects and what to do.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found: create it", strings.Join(e.Sources, ", "))
}
