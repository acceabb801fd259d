package ledger

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// None is the record of a program that doesn't keep one: only the templates show delivered
// versions.
type None struct{}

// Entry reports that a workload may have been followed before, and that its delivered versions
// are unknown.
func (None) Entry(kube.Key) (record.Entry, bool) {
	return record.Entry{Unstored: record.Unstored{Lost: true}}, true
}

// Put does nothing.
func (None) Put(kube.Key, record.Entry) error { return nil }

// Forget does nothing.
func (None) Forget(kube.Key) {}

// Status is always synced: there is nothing to wait for.
func (None) Status() mirror.Sync {
	return mirror.Sync{Resource: "record (off)", Role: mirror.RoleRecord, Synced: true}
}
