package ui

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

const (
	// gather is how long a change waits for those that come with it.
	gather = 100 * time.Millisecond
	// longestRest is how long a busy record is left alone at most.
	longestRest = time.Second
	// refreshEvery is how old a status gets while somebody looks: not everything is watched.
	refreshEvery = 10 * time.Second
	// readTimeout limits reading the record of a large cluster.
	readTimeout = 30 * time.Second
	// kindsEvery is how often the controller's Deployment is read for further kinds.
	kindsEvery = time.Minute
	// beatEvery and beatTimeout are how soon a page says that the cluster doesn't answer.
	beatEvery   = 2 * time.Second
	beatTimeout = 3 * time.Second
	// lookedAt is how long a request counts as somebody who looks.
	lookedAt = 30 * time.Second
)

// board keeps the status of all workloads, for all pages that are open. Nothing is read while
// nobody looks.
type board struct {
	status  func(context.Context, ask.Scope, []cluster.Header) (ask.Status, error)
	kinds   func(context.Context) []kube.Kind
	beat    func(context.Context) error
	watches *watches
	now     func() time.Time
	scope   ask.Scope
	// woken has an element when something changed.
	woken chan struct{}

	mu      sync.Mutex
	current *snapshot
	// published is closed when current is replaced, or the cluster stops to answer.
	published chan struct{}
	listeners map[*listener]bool
	asked     time.Time
	// silence is why the cluster seems not to answer, and failing is since when a watch fails.
	silence error
	failing time.Time
}

// snapshot is the status at a time. It is never changed.
type snapshot struct {
	ask.Status

	entries    []entry
	namespaces []string
	sources    []string
	// err is the cluster's answer if there is no status.
	err error
}

func newBoard(o Options) *board {
	b := &board{
		status: o.Reader.StatusOf, kinds: o.Reader.InstalledKinds, scope: o.Scope, now: o.Reader.Now,
		woken: make(chan struct{}, 1), published: make(chan struct{}), listeners: map[*listener]bool{},
	}
	b.watches = &watches{
		client: o.Reader.Client, scope: o.Scope, own: o.Reader.Own.Namespace, now: o.Reader.Now,
		changed: b.changed, mirrors: map[schema.GroupKind]*mirror.Mirror[*copied]{},
	}
	b.beat = func(ctx context.Context) error {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		return o.Reader.Client.Get(ctx, client.ObjectKey{Namespace: o.Reader.Own.Namespace, Name: settings.StopName}, object)
	}
	return b
}

// run keeps the status until the context ends.
func (b *board) run(ctx context.Context) {
	defer b.watches.running.Wait()
	b.watches.start(ctx)
	b.watches.running.Go(func() { b.keepBeating(ctx) })
	b.loop(ctx)
}

// loop reads once, and then whenever somebody looks and something may be another one.
func (b *board) loop(ctx context.Context) {
	var kindsRead time.Time
	for ctx.Err() == nil {
		if b.isLookedAt() || kindsRead.IsZero() {
			if b.now().Sub(kindsRead) > kindsEvery {
				within, cancel := context.WithTimeout(ctx, patience)
				b.watches.follow(ctx, b.kinds(within))
				cancel()
				kindsRead = b.now()
			}
			b.read(ctx)
		}
		b.await(ctx)
	}
}

// read makes a new status, and rests in proportion.
func (b *board) read(ctx context.Context) {
	headers, notes, whole, err := b.watches.headers()
	if !whole && b.gone() == "" {
		return // The missing answer wakes us.
	}
	began := b.now()
	var status ask.Status
	if err == nil {
		within, cancel := context.WithTimeout(ctx, readTimeout)
		status, err = b.status(within, b.scope, headers)
		cancel()
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && isUnanswered(err):
		b.setSilence(err)
	default:
		status.Notes = slices.Concat(notes, status.Notes)
		b.publish(newSnapshot(status, err))
	}
	pause(ctx, min(longestRest, b.now().Sub(began)/2))
}

// await waits until something changed, or the status is old.
func (b *board) await(ctx context.Context) {
	select {
	case <-b.woken:
		pause(ctx, gather)
	case <-time.After(refreshEvery):
	case <-ctx.Done():
	}
}

func (b *board) wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}

// changed is called by the watches.
func (b *board) changed(namespace string, decides bool) {
	if decides {
		b.wake()
	}
	b.tell(func(l *listener) bool {
		return !l.ofBoard && (namespace == "" || l.namespace == "" || l.namespace == namespace)
	})
}

func (b *board) publish(s *snapshot) {
	b.mu.Lock()
	b.current = s
	close(b.published)
	b.published = make(chan struct{})
	b.mu.Unlock()
	b.tell(func(l *listener) bool { return l.ofBoard })
}

// get returns the status that the board keeps. It waits for a first one, and for a new one if
// nobody looked for a while.
func (b *board) get(ctx context.Context) (*snapshot, error) {
	isKept := b.isLookedAt()
	for {
		b.mu.Lock()
		b.asked = b.now()
		s, published, silence := b.current, b.published, b.silence
		b.mu.Unlock()
		switch {
		case s != nil && (isKept || silence != nil):
			return s, s.err
		case silence != nil:
			return nil, silence
		}
		b.wake()
		select {
		case <-published:
			isKept = true
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the workloads: %w", ctx.Err())
		}
	}
}

// isLookedAt reports whether a page is open, or was asked for just now.
func (b *board) isLookedAt() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners) > 0 || b.now().Sub(b.asked) < lookedAt
}

// gone says that the cluster doesn't answer; it is empty while it does.
func (b *board) gone() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silence == nil {
		return ""
	}
	return goneWords(b.silence)
}

// keepBeating asks the cluster for something small while somebody looks: a watch doesn't notice
// an API server that hangs.
func (b *board) keepBeating(ctx context.Context) {
	for ctx.Err() == nil {
		if b.isLookedAt() {
			within, cancel := context.WithTimeout(ctx, beatTimeout)
			err := b.beat(within)
			cancel()
			if ctx.Err() == nil {
				b.heard(err)
			}
		}
		pause(ctx, beatEvery)
	}
}

// heard takes the answer to a beat. A watch that fails for longer than it takes to open it again
// counts too: without it the page would be out of date.
func (b *board) heard(answer error) {
	silence := b.watches.problem()
	b.mu.Lock()
	switch {
	case silence == nil:
		b.failing = time.Time{}
	case b.failing.IsZero():
		b.failing = b.now()
	}
	if b.now().Sub(b.failing) < beatTimeout {
		silence = nil
	}
	b.mu.Unlock()
	if answer != nil && isUnanswered(answer) {
		silence = answer
	}
	b.setSilence(silence)
}

// setSilence tells all pages when the cluster stops to answer, or answers again.
func (b *board) setSilence(err error) {
	b.mu.Lock()
	isOther := (err == nil) != (b.silence == nil)
	b.silence = err
	if isOther {
		close(b.published)
		b.published = make(chan struct{})
	}
	b.mu.Unlock()
	if isOther {
		b.wake()
		b.tell(func(*listener) bool { return true })
	}
}

// listener is a page that is open.
type listener struct {
	// changed has an element when the page may be another one.
	changed chan struct{}
	// ofBoard is true if only the status counts, otherwise changes in the namespace do.
	ofBoard   bool
	namespace string
}

// listen tells of all changes until stop is called, or only of those that matter once the page is
// known.
func (b *board) listen() (l *listener, stop func()) {
	l = &listener{changed: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[l] = true
	return l, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, l)
		b.asked = b.now() // A user who goes to the next page still looks.
	}
}

// narrow says what the listener's page is about.
func (b *board) narrow(l *listener, p page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.ofBoard, l.namespace = p.ofBoard, p.namespace
}

func (b *board) tell(concerns func(*listener) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		if concerns(l) {
			l.wake()
		}
	}
}

func (l *listener) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
