package mirror

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// link knows whether a mirror hears from the API server.
type link struct {
	// changed is called when that changes.
	changed func()

	mu      sync.Mutex
	hasList bool
	err     error
}

// report takes a list that failed or the outcome of opening a watch, and returns it.
func (l *link) report(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	l.set(func() { l.err = err })
	return err
}

// synced is called when a first or further list is complete. What failed before is
// over only when a watch is open: whoever may list and not watch would be following
// for a moment after each list.
func (l *link) synced() {
	l.set(func() { l.hasList = true })
}

// set changes the link and tells of it, unless it is still the same.
func (l *link) set(change func()) {
	l.mu.Lock()
	before := Sync{Synced: l.hasList, Err: l.err}
	change()
	same := before.Synced == l.hasList && sameError(before.Err, l.err)
	l.mu.Unlock()
	if !same && l.changed != nil {
		l.changed()
	}
}

// sameError compares by class: the text of an outage differs at each attempt.
func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && apierrors.ReasonForError(a) == apierrors.ReasonForError(b)
}

func (l *link) status() Sync {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Sync{Synced: l.hasList, Err: l.err}
}

// Sync is how well one resource can be followed.
type Sync struct {
	// Resource for people: "deployments" or "secrets in shop".
	Resource string
	// Role is what the resource is needed for.
	Role Role
	// Synced is true once a first list was complete.
	Synced bool
	// Err is the latest failure, nil while everything works.
	Err error
}

// Role is what a resource is needed for.
type Role int

const (
	// RoleSource is for what changes come from.
	RoleSource Role = iota
	// RoleWorkload is for what changes go to.
	RoleWorkload
	// RoleSettings is for defaults; work goes on without them.
	RoleSettings
	// RoleRecord is for what was delivered.
	RoleRecord
)

// Works reports whether the resource is followed right now.
func (s Sync) Works() bool {
	return s.Synced && s.Err == nil
}

// Answered reports whether the API server has said what there is to know: a
// list, a refusal, or that the kind is not installed.
func (s Sync) Answered() bool {
	return s.Synced || s.Forbidden() || s.NotInstalled()
}

// Broken reports whether the resource was asked for in vain: a conversion webhook
// or an aggregated API is down, a Secret cannot be decrypted. That can last for
// days and concern this resource only.
func (s Sync) Broken() bool {
	return !s.Answered() && s.Err != nil
}

// Forbidden reports whether a permission is missing.
func (s Sync) Forbidden() bool {
	return apierrors.IsForbidden(s.Err)
}

// NotInstalled reports whether the cluster does not have the kind.
func (s Sync) NotInstalled() bool {
	return meta.IsNoMatchError(s.Err) || apierrors.IsNotFound(s.Err)
}
