package ledger

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// None is the record of a program that keeps none: what the templates have is all that is
// known.
type None struct{}

// Entry says that a workload may have been followed before, and that it is not known what
// it was given.
func (None) Entry(kube.Key) (record.Entry, bool) {
	return record.Entry{Unstored: record.Unstored{Lost: true}}, true
}

// Put remembers nothing.
func (None) Put(kube.Key, record.Entry) error { return nil }

// Forget has nothing to forget.
func (None) Forget(kube.Key) {}

// Status is that there is nothing to wait for.
func (None) Status() mirror.Sync {
	return mirror.Sync{Resource: "record (none is kept)", Role: mirror.RoleRecord, Synced: true}
}
