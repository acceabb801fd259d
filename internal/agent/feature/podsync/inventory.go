package podsync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Store is where contents are kept until a generation takes them.
type Store interface {
	Keep(value []byte) (filemap.Digest, error)
	Unpin(entries []filemap.Entry)
}

// Inventory is what the sources hold at the moment: names and digests. Its
// methods may be called by any goroutine.
type Inventory struct {
	opts  Options
	store Store
	now   func() time.Time
	wake  func()

	mu      sync.Mutex
	sources map[string]*sourceState
	first   time.Time
	last    time.Time
	version int
}

// sourceState is one source's part of the inventory.
type sourceState struct {
	Source
	read    bool
	had     bool // it held an object once: a named one was there
	objects map[filemap.Ref]filemap.Object
	deleted map[filemap.Ref]bool
	failure string
	failing time.Time // since when
}

// NewInventory makes an inventory in which no source was read yet. wake is
// called after every change.
func NewInventory(opts Options, store Store, now func() time.Time, wake func()) *Inventory {
	inv := &Inventory{opts: opts, store: store, now: now, wake: wake, sources: map[string]*sourceState{}}
	for _, s := range opts.Sources {
		inv.sources[s.Name] = &sourceState{Source: s, objects: map[filemap.Ref]filemap.Object{}, deleted: map[filemap.Ref]bool{}}
	}
	return inv
}

// Keep stores one value on the disk.
func (inv *Inventory) Keep(value []byte) (filemap.Digest, error) { return inv.store.Keep(value) }

// Unpin lets go of values that were kept and never listed.
func (inv *Inventory) Unpin(entries []filemap.Entry) { inv.store.Unpin(entries) }

// Replace gives all objects of a source. What is not among them was deleted
// while the agent did not watch.
func (inv *Inventory) Replace(source string, objects []filemap.Object) {
	inv.change(source, func(s *sourceState) {
		present := map[filemap.Ref]bool{}
		for _, o := range objects {
			present[o.Ref] = true
			s.put(o)
		}
		for _, ref := range slices.Collect(maps.Keys(s.objects)) {
			if !present[ref] {
				inv.remove(s, ref)
			}
		}
		s.read = true
	})
	for _, o := range objects {
		inv.store.Unpin(o.Entries)
	}
}

// Put gives one new or changed object.
func (inv *Inventory) Put(source string, object filemap.Object) {
	inv.change(source, func(s *sourceState) { s.put(object) })
	inv.store.Unpin(object.Entries)
}

// Remove tells that an object is gone.
func (inv *Inventory) Remove(source string, ref filemap.Ref) {
	inv.change(source, func(s *sourceState) { inv.remove(s, ref) })
}

// Failed tells why a source cannot be read at the moment. It says whether that
// is news.
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

// Recovered tells that a source can be read again and holds what it held. It
// says whether that is news.
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

// Failing is the source that could not be read for the longest time, for how
// long, and why. No source means that all are well.
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

func (s *sourceState) put(o filemap.Object) {
	s.objects[o.Ref] = o
	s.had = true
	delete(s.deleted, o.Ref)
}

func (inv *Inventory) remove(s *sourceState, ref filemap.Ref) {
	if _, known := s.objects[ref]; !known {
		return
	}
	keep := inv.opts.OnDelete == DeleteKeeps || (inv.opts.OnDelete == DeleteAuto && s.Named)
	if keep {
		s.deleted[ref] = true
		return
	}
	delete(s.objects, ref)
}

// Snapshot is the inventory at one moment.
type Snapshot struct {
	Objects []filemap.Object
	// Unread lists sources that were not read yet, Missing named objects that
	// were never there, Deleted objects whose files are kept.
	Unread, Missing, Deleted []string
	// Failures says why sources cannot be read, by source.
	Failures map[string]string
	// FirstChange and LastChange bound the changes since the last Settle.
	FirstChange, LastChange time.Time
	// Version grows with every change.
	Version int
}

// Complete says that every source was read and everything that has to exist
// exists.
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

// objects lists every object once, although two sources may select the same
// one, and names those that are deleted everywhere. What one source keeps of a
// deleted object gives way to the live one of another: an object may move from
// one selection to the next.
func (inv *Inventory) objects() (all []filemap.Object, deleted []string) {
	live, kept := map[filemap.Ref]filemap.Object{}, map[filemap.Ref]filemap.Object{}
	for _, source := range inv.opts.Sources { // in this order, so that the same copy is taken each time
		s := inv.sources[source.Name]
		for ref, o := range s.objects {
			if s.deleted[ref] {
				kept[ref] = o
			} else {
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

// Settle tells that the changes up to a version are on their way. What came
// after it begins a burst of its own.
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

// MissingError tells that a named object does not exist.
type MissingError struct{ Sources []string }

// Error names the objects and what can be done.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found: create it", strings.Join(e.Sources, ", "))
}
