// Package turns is the order in which a queue serves namespaces.
package turns

import (
	"slices"
	"sync"
)

// Turns is the storage of a work queue that serves namespaces in turn. A namespace with
// thousands of waiting keys delays another one by a single key, and one whose keys take long
// leaves some workers to the others.
type Turns[K comparable] struct {
	namespaceOf func(K) string
	// most is how many keys of a namespace are worked on at the same time.
	most int

	mu sync.Mutex
	// waiting lists the keys of each namespace, busy counts those that are worked on, and next
	// lists the namespaces in the order in which they are served: those that have a waiting
	// key and may have another worker.
	waiting map[string][]K
	busy    map[string]int
	next    []string
}

// New makes an empty queue. At most so many keys of a namespace are worked on at the same time.
func New[K comparable](most int, namespaceOf func(K) string) *Turns[K] {
	return &Turns[K]{namespaceOf: namespaceOf, most: most, waiting: map[string][]K{}, busy: map[string]int{}}
}

// Touch implements workqueue.Queue. A key that is added again keeps its place.
func (t *Turns[K]) Touch(K) {}

// Push implements workqueue.Queue.
func (t *Turns[K]) Push(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := t.namespaceOf(key)
	t.waiting[namespace] = append(t.waiting[namespace], key)
	if len(t.waiting[namespace]) == 1 && t.busy[namespace] < t.most {
		t.next = append(t.next, namespace)
	}
}

// Len implements workqueue.Queue. It is positive when a key can be served.
func (t *Turns[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.next)
}

// Pop implements workqueue.Queue. The queue calls it only while Len is positive.
func (t *Turns[K]) Pop() K {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := t.next[0]
	t.next = t.next[1:]
	keys := t.waiting[namespace]
	key := keys[0]
	if len(keys) == 1 {
		delete(t.waiting, namespace)
	} else {
		t.waiting[namespace] = keys[1:]
	}
	t.busy[namespace]++
	if len(keys) > 1 && t.busy[namespace] < t.most {
		t.next = append(t.next, namespace)
	}
	return key
}

// Remove removes a waiting key, if it is there.
func (t *Turns[K]) Remove(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := t.namespaceOf(key)
	keys := t.waiting[namespace]
	at := slices.Index(keys, key)
	switch {
	case at < 0:
	case len(keys) > 1:
		t.waiting[namespace] = slices.Delete(keys, at, at+1)
	default:
		delete(t.waiting, namespace)
		t.next = slices.DeleteFunc(t.next, func(n string) bool { return n == namespace })
	}
}

// Empty reports whether no key waits or is worked on.
func (t *Turns[K]) Empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)+len(t.busy)+len(t.next) == 0
}

// Done gives back the worker of a key. The namespace may have waited only for that.
func (t *Turns[K]) Done(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := t.namespaceOf(key)
	if t.busy[namespace] == t.most && len(t.waiting[namespace]) > 0 {
		t.next = append(t.next, namespace)
	}
	if t.busy[namespace]--; t.busy[namespace] == 0 {
		delete(t.busy, namespace)
	}
}
