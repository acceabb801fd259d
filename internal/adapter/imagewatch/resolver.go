package imagewatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/answers"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/core/turns"
)

const (
	// firstRetry is the pause after a failure; it doubles up to the interval.
	firstRetry = 5 * time.Second
	// longestPause is the pause after many answers that were too large.
	longestPause = time.Hour
	// leastPause is the minimum pause between two checks of a question.
	leastPause = time.Second

	// maxChecks limits the checks of watched questions at the same time. Others wait in a queue that
	// serves namespaces in turn.
	maxChecks = 64
	// maxChecksOf limits those of one namespace. They can't take all slots of a registry, nor the
	// room for large answers, so a namespace whose registries are slow doesn't delay another one.
	maxChecksOf = 6
)

// Resolver answers questions, and checks watched ones again at every interval.
type Resolver struct {
	options Options
	client  *registry.Client
	heads   answers.Cache[string]
	lists   answers.Cache[listing]
	images  answers.Cache[registry.Image]

	mu       sync.Mutex
	start    func(*subject, memory) // starts a check while Run runs, otherwise nil
	checks   sync.WaitGroup
	running  int // how many checks
	asked    map[asked]int
	due      *turns.Turns[*subject]
	subjects map[string]*subject
	pushes   map[string]*push // by repository, those reported recently
}

// New makes a resolver. It checks watched questions while Run runs.
func New(options Options) *Resolver {
	options = options.withDefaults()
	return &Resolver{
		options: options, client: registry.NewClient(options.Registries), subjects: map[string]*subject{}, pushes: map[string]*push{},
		asked: map[asked]int{},
		due:   turns.New(maxChecksOf, func(s *subject) string { return s.question.Namespace }),
		heads: answers.Cache[string]{Timeout: checkTimeout}, lists: answers.Cache[listing]{Timeout: checkTimeout},
		images: answers.Cache[registry.Image]{
			Timeout: checkTimeout, Room: maxPlatforms, Weigh: func(i registry.Image) int { return 1 + len(i.Platforms) },
			Dropped: func() { options.Exceeded(registry.CachedPlatforms) },
		},
	}
}

// asked is a registry that is queried for a namespace.
type asked struct{ namespace, host string }

// subject is one watched question.
type subject struct {
	question Question
	watchers map[*Watch]struct{}
	view     View
	memory   memory
	timer    *time.Timer
	waiting  bool // for its turn
	checking bool
	again    bool // a check was requested while another one ran
	failures int
}

func (s *subject) asks() asked { return asked{s.question.Namespace, s.question.Repository.Host} }

// Watch is one watcher of a question.
type Watch struct {
	resolver *Resolver
	key      string
	subject  *subject
	wake     func()
}

// Watch checks a question now and at every interval, and calls wake when the answer changes:
// another tag or digest, another kind of failure, or the end of a failure. Wake must return
// quickly; it may be called once more while Stop runs.
func (r *Resolver) Watch(q Question, wake func()) *Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := q.Key()
	s := r.subjects[key]
	if s == nil {
		s = &subject{question: q, watchers: map[*Watch]struct{}{}}
		r.subjects[key] = s
		r.schedule(s, 0)
	}
	w := &Watch{resolver: r, key: key, subject: s, wake: wake}
	s.watchers[w] = struct{}{}
	return w
}

// View returns the current state.
func (w *Watch) View() View {
	w.resolver.mu.Lock()
	defer w.resolver.mu.Unlock()
	return w.subject.view
}

// Stop ends the watch. A question without watchers isn't checked any more.
func (w *Watch) Stop() {
	r := w.resolver
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(w.subject.watchers, w)
	if len(w.subject.watchers) > 0 || r.subjects[w.key] != w.subject {
		return
	}
	delete(r.subjects, w.key)
	r.due.Remove(w.subject)
	if w.subject.timer != nil {
		w.subject.timer.Stop()
	}
}

// Run checks the watched questions until the context ends.
func (r *Resolver) Run(ctx context.Context) {
	r.mu.Lock()
	r.start = func(s *subject, m memory) { r.checks.Go(func() { r.ask(ctx, s, m) }) }
	for _, s := range r.subjects {
		r.schedule(s, 0)
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.start = nil
	for _, s := range r.subjects {
		if s.timer != nil {
			s.timer.Stop()
		}
	}
	r.mu.Unlock()
	r.checks.Wait()
}

// Resolve answers one question, using responses that other questions share.
func (r *Resolver) Resolve(ctx context.Context, q Question) (Resolution, error) {
	return r.check(ctx, q, &memory{})
}

// schedule starts a check after a pause.
func (r *Resolver) schedule(s *subject, pause time.Duration) {
	if r.start == nil {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.view.Next = time.Now().Add(pause)
	s.timer = time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !s.waiting && !s.checking && len(s.watchers) > 0 {
			s.waiting = true
			r.due.Push(s)
		}
		r.begin()
	})
}

// begin starts checks that are due, as many as may run. A registry that is down gets only one of a
// namespace's checks, so images from other registries don't wait.
func (r *Resolver) begin() {
	for r.start != nil && r.running < maxChecks && r.due.Len() > 0 {
		s := r.due.Pop()
		s.waiting = false
		if r.asked[s.asks()] > 0 && r.client.MayBeDown(s.question.Repository.Host) {
			r.due.Done(s)
			r.schedule(s, r.options.Jitter(firstRetry)) // One check shows whether the registry answers again.
			continue
		}
		s.checking = true
		r.running++
		r.asked[s.asks()]++
		r.start(s, s.memory)
	}
}

// ask checks a question.
func (r *Resolver) ask(ctx context.Context, s *subject, m memory) {
	found, err := r.check(ctx, s.question, &m)
	if ctx.Err() == nil {
		r.options.Checked(s.question.Repository.Host, err)
	}
	for _, wake := range r.finish(s, m, found, err) {
		wake()
	}
}

// finish records an answer, schedules the next check, and returns the wake functions to call.
func (r *Resolver) finish(s *subject, m memory, found Resolution, err error) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := s.view
	s.checking, s.memory = false, m
	r.running--
	if r.asked[s.asks()]--; r.asked[s.asks()] == 0 {
		delete(r.asked, s.asks())
	}
	r.due.Done(s)
	defer r.begin()
	s.view.Asked, s.view.Err = time.Now(), err
	if err == nil {
		s.view.Resolution, s.memory.last, s.failures = found, found, 0
	} else {
		s.failures++
	}
	pause := r.pause(s)
	if s.again {
		s.again, s.failures, pause = false, 0, 0
	}
	if len(s.watchers) > 0 {
		r.schedule(s, pause)
	}
	if sameAnswer(before, s.view) {
		return nil
	}
	wakes := make([]func(), 0, len(s.watchers))
	for w := range s.watchers {
		wakes = append(wakes, w.wake)
	}
	return wakes
}

// pause is the time until the next check. A shared response is due for renewal when it is an
// interval old.
func (r *Resolver) pause(s *subject) time.Duration {
	now := time.Now()
	switch registry.KindOf(s.view.Err) {
	case "": // an answer
		return max(r.options.Jitter(max(r.options.Interval, r.options.TTL))-now.Sub(s.view.At), leastPause)
	case registry.Unreachable, registry.Broken, registry.Limited:
		pause := min(firstRetry<<min(s.failures-1, 16), r.options.Interval)
		if e, ok := errors.AsType[*registry.Error](s.view.Err); ok && e.Until.Sub(now) > pause {
			pause = e.Until.Sub(now)
		}
		return r.options.Jitter(pause)
	case registry.TooLarge: // It costs much, and rarely becomes smaller.
		return r.options.Jitter(min(r.options.Interval<<min(s.failures-1, 10), max(r.options.Interval, longestPause)))
	default: // It is as definite as an answer.
		return r.options.Jitter(r.options.Interval)
	}
}

func sameAnswer(a, b View) bool {
	return a.Tag == b.Tag && a.Digest == b.Digest && registry.KindOf(a.Err) == registry.KindOf(b.Err) && (a.Err == nil) == (b.Err == nil)
}
