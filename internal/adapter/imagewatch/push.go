package imagewatch

import (
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// betweenPushes is the least pause between the first looks after two pushes.
const betweenPushes = time.Second

// looks are the pauses before each look after a push. Docker distribution tells of one
// before it has moved the tag, which takes a moment, and longer where the storage is slow.
func looks() []time.Duration {
	return []time.Duration{100 * time.Millisecond, time.Second, 4 * time.Second}
}

// push is one that was told, until the last look after it.
type push struct {
	next   int // which of the looks is next
	timer  *time.Timer
	looked time.Time // when the first look was that came last
}

// Check looks at a repository soon, because something was pushed to it; false if no
// question about it is watched. However many pushes are told, the first look after one
// is at least betweenPushes after that of another.
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
		return true // The look that is planned is for this one, too.
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

// isAbout tells whether the key of a question or of a shared answer is of a repository.
func isAbout(key string, repository tagspec.Repository) bool {
	rest, found := strings.CutPrefix(key, repository.String())
	return found && strings.HasPrefix(rest, "\n")
}

// plan has a repository looked at after a pause, and as often as is left.
func (r *Resolver) plan(repository tagspec.Repository, p *push, pause time.Duration) {
	p.timer = time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pushes[repository.String()] != p {
			return // It was about to be stopped.
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

// look asks all watched questions about a repository now. One that is being asked is
// asked again afterwards.
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

// forget drops the answers about a repository that are shared.
func (r *Resolver) forget(repository tagspec.Repository) {
	ours := func(key string, _ time.Time) bool { return isAbout(key, repository) }
	r.heads.Forget(ours)
	r.lists.Forget(ours)
}
