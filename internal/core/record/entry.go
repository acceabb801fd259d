// Package record knows what Lockstep remembers of one workload: the versions it
// was last given, and how that is written down.
package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// format is raised when older programs would misread an entry.
const format = 1

// Given is one input as the workload was last given it.
type Given struct {
	Version fingerprint.Version
	// Shown is the short digest that the patch put into the template for this
	// input, empty when no patch of ours did. A template that shows another one
	// was taken back.
	Shown string
}

// Entry is what is remembered of one workload. Entries are values: change a
// clone and store it.
type Entry struct {
	// ID names the workload for people and guards against a hash collision of
	// storage keys: "Deployment.apps/shop/web".
	ID string
	// UID of the workload; another UID under the same name is another workload.
	UID string
	// Inputs by source.
	Inputs map[input.ID]Given
	// PendingSince is when the oldest change that has not been delivered was
	// first seen, zero when there is none. The maximum delay counts from it.
	PendingSince time.Time
	// MovedAt is the API server's time of the last patch of ours that the entry takes
	// into account, zero before the first.
	MovedAt time.Time
	// AsOf is the API server's time of the last write by anybody that it takes into
	// account, when versions were taken as given without a patch; zero otherwise.
	AsOf time.Time
	// MovedFrom is the number of the revision that the workload had then, or before
	// the patch; zero when its kind has none.
	MovedFrom int64
	// EvictFor is what a running series of evictions delivers, empty when none
	// runs; EvictSince is the API server's time of that decision. Pods that are
	// younger have what is delivered.
	EvictFor   string
	EvictSince time.Time
	// EvictPods is how many pods there were then, zero where the workload says itself
	// how many it wants.
	EvictPods int
	// Lost is true when there was an entry that cannot be read. It is not stored.
	Lost bool
}

// IsBefore reports whether something was made after all that the entry takes into
// account.
func (e Entry) IsBefore(made time.Time) bool {
	return made.After(e.MovedAt) && made.After(e.AsOf)
}

// Clone returns a copy that shares nothing.
func (e Entry) Clone() Entry {
	e.Inputs = maps.Clone(e.Inputs)
	if e.Inputs == nil {
		e.Inputs = map[input.ID]Given{}
	}
	return e
}

// Equal reports whether both say the same.
func (e Entry) Equal(other Entry) bool {
	return e.ID == other.ID && e.UID == other.UID && maps.Equal(e.Inputs, other.Inputs) &&
		e.PendingSince.Equal(other.PendingSince) && e.MovedAt.Equal(other.MovedAt) && e.AsOf.Equal(other.AsOf) && e.MovedFrom == other.MovedFrom &&
		e.EvictFor == other.EvictFor && e.EvictSince.Equal(other.EvictSince) && e.EvictPods == other.EvictPods
}

// stored is the written form. Versions and digests share one string, because an
// installation with 10,000 workloads stores some 50,000 of them.
type stored struct {
	Format       int               `json:"v"`
	ID           string            `json:"id"`
	UID          string            `json:"uid"`
	Inputs       map[string]string `json:"in,omitempty"`
	PendingSince *time.Time        `json:"pending,omitempty"`
	MovedAt      *time.Time        `json:"moved,omitempty"`
	AsOf         *time.Time        `json:"asOf,omitempty"`
	MovedFrom    int64             `json:"movedFrom,omitempty"`
	EvictFor     string            `json:"evictFor,omitempty"`
	EvictSince   *time.Time        `json:"evictSince,omitempty"`
	EvictPods    int               `json:"evictPods,omitempty"`
}

// Encode writes the entry as text.
func (e Entry) Encode() (string, error) {
	s := stored{Format: format, ID: e.ID, UID: e.UID, Inputs: map[string]string{}, MovedFrom: e.MovedFrom, EvictFor: e.EvictFor, EvictPods: e.EvictPods}
	for source, given := range e.Inputs {
		s.Inputs[source.String()] = strings.TrimSuffix(given.Version.String()+" "+given.Shown, " ")
	}
	s.PendingSince = optionalTime(e.PendingSince)
	s.MovedAt, s.AsOf = optionalTime(e.MovedAt), optionalTime(e.AsOf)
	s.EvictSince = optionalTime(e.EvictSince)
	text, err := json.Marshal(s)
	return string(text), err
}

// Decode reads what Encode wrote. What it cannot read is an error, never a guess:
// the caller takes a new baseline.
func Decode(text string) (Entry, error) {
	var s stored
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	if s.Format != format {
		return Entry{}, fmt.Errorf("decode entry: format %d, this program reads %d", s.Format, format)
	}
	e := Entry{ID: s.ID, UID: s.UID, MovedFrom: s.MovedFrom, EvictFor: s.EvictFor, EvictPods: s.EvictPods, Inputs: make(map[input.ID]Given, len(s.Inputs))}
	for name, value := range s.Inputs {
		source, err := input.ParseSource(name)
		if err != nil {
			return Entry{}, fmt.Errorf("decode entry of %s: %w", s.ID, err)
		}
		version, shown, _ := strings.Cut(value, " ")
		v, err := fingerprint.ParseVersion(version)
		if err != nil {
			return Entry{}, fmt.Errorf("decode entry of %s: %s: %w", s.ID, source, err)
		}
		e.Inputs[source] = Given{Version: v, Shown: shown}
	}
	e.PendingSince, e.MovedAt = deref(s.PendingSince), deref(s.MovedAt)
	e.AsOf, e.EvictSince = deref(s.AsOf), deref(s.EvictSince)
	return e, nil
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
