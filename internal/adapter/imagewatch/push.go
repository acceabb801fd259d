package imagewatch

import (
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// betweenPushes is the minimum pause between the first checks after two pushes.
const betweenPushes = time.Second

// looks are the pauses before each check after a push. Docker distribution reports a push before
// it has updated the tag, which takes a moment, and longer with slow storage.
func looks() []time.Duration {
	return []time.Duration{100 * time.Millisecond, time.Second, 4 * time.Second}
}

// push is a reported push, until the last check after it.
type push struct {
	next   int // index of the next check
	timer  *time.Timer
	looked time.Time // when the last first check ran
}

// Check checks a repository soon, because of a push to it; false if no question about it is
// watched. However many pushes are reported, their first checks are at least betweenPushes
// apart.
func (r *Resolver) Check(repository tagspec.Repository) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watches(repository) {
		return false
	}
	p := r.pushes[repository.String()]
	switch {
	case p == nil:
		p = &push{}
		r.pushes[repository.String()] = p
	case p.next == 0:
		return true // The planned check covers this push too.
	default:
		p.timer.Stop()
		p.next = 0
	}
	r.plan(repository, p, max(looks()[0], time.Until(p.looked.Add(betweenPushes))))
	return true
}

func (r *Resolver) watches(repository tagspec.Repository) bool {
	for key := range r.subjects {
		if isAbout(key, repository) {
			return true
		}
	}
	return false
}

// isAbout reports whether the key of a question or shared response belongs to a repository.
func isAbout(key string, repository tagspec.Repository) bool {
	rest, found := strings.CutPrefix(key, repository.String())
	return found && strings.HasPrefix(rest, "\n")
}

// plan schedules the remaining checks of a repository, the first after a pause.
func (r *Resolver) plan(repository tagspec.Repository, p *push, pause time.Duration) {
	p.timer = time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pushes[repository.String()] != p {
			return // It was already being stopped.
		}
		if p.next == 0 {
			p.looked = time.Now()
		}
		r.look(repository)
		p.next++
		if p.next == len(looks()) {
			delete(r.pushes, repository.String())
			return
		}
		r.plan(repository, p, looks()[p.next])
	})
}

// look checks all watched questions about a repository now. A running check is repeated
// afterwards.
func (r *Resolver) look(repository tagspec.Repository) {
	r.forget(repository)
	for key, s := range r.subjects {
		switch {
		case !isAbout(key, repository):
		case s.checking:
			s.again = true
		default:
			s.failures = 0 // A push is no further failure: it must not make the next pause longer.
			r.schedule(s, 0)
		}
	}
}

// forget drops the shared responses about a repository.
func (r *Resolver) forget(repository tagspec.Repository) {
	ours := func(key string, _ time.Time) bool { return isAbout(key, repository) }
	r.heads.Forget(ours)
	r.lists.Forget(ours)
}
