package mirror

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// link tracks whether a mirror is connected to the API server.
type link struct {
	// changed is called when that changes.
	changed func()

	mu      sync.Mutex
	hasList bool
	err     error
}

// report records a failed list or the result of opening a watch, and returns it.
func (l *link) report(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	l.set(func() { l.err = err })
	return err
}

// synced is called when a list is complete. Only an open watch clears an earlier error:
// otherwise a process that may list but not watch would appear to work for a moment after each
// list.
func (l *link) synced() {
	l.set(func() { l.hasList = true })
}

// set changes the link and reports the change, unless nothing changed.
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

// sameError compares by class: an outage has a different text at each attempt.
func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && apierrors.ReasonForError(a) == apierrors.ReasonForError(b)
}

func (l *link) status() Sync {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Sync{Synced: l.hasList, Err: l.err}
}

// Sync is how well one resource can be watched.
type Sync struct {
	// Resource is the name for users: "deployments" or "secrets in shop".
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
	// RoleSource is for the sources of changes.
	RoleSource Role = iota
	// RoleWorkload is for the workloads that changes are delivered to.
	RoleWorkload
	// RoleSettings is for defaults; Lockstep works without them.
	RoleSettings
	// RoleRecord is for the record of delivered versions.
	RoleRecord
)

// Works reports whether the resource is currently being watched.
func (s Sync) Works() bool {
	return s.Synced && s.Err == nil
}

// Answered reports whether the API server has given a definite response: a list, a refusal, or
// that the kind isn't installed.
func (s Sync) Answered() bool {
	return s.Synced || s.Forbidden() || s.NotInstalled()
}

// Broken reports whether reading the resource fails: a conversion webhook or an aggregated API
// is down, or a Secret cannot be decrypted. That can last for days and affect only this
// resource.
func (s Sync) Broken() bool {
	return !s.Answered() && s.Err != nil
}

// Forbidden reports whether a permission is missing.
func (s Sync) Forbidden() bool {
	return apierrors.IsForbidden(s.Err)
}

// Unauthorized reports whether the API server doesn't accept the credentials. A token that is
// renewed ends that, so it isn't an answer.
func (s Sync) Unauthorized() bool {
	return apierrors.IsUnauthorized(s.Err)
}

// NotInstalled reports whether the cluster lacks the kind.
func (s Sync) NotInstalled() bool {
	return meta.IsNoMatchError(s.Err) || apierrors.IsNotFound(s.Err)
}
