package loop

// turns is the storage of a work queue that serves namespaces in turn. A namespace with
// thousands of waiting keys delays another one by a single key.
type turns[K comparable] struct {
	namespaceOf func(K) string
	// waiting lists the keys of each namespace, and next the namespaces in the order in
	// which they are served. A namespace is in both while a key of it waits.
	waiting map[string][]K
	next    []string
	keys    int
}

func newTurns[K comparable](namespaceOf func(K) string) *turns[K] {
	return &turns[K]{namespaceOf: namespaceOf, waiting: map[string][]K{}}
}

// Touch implements workqueue.Queue. A key that is added again keeps its place.
func (t *turns[K]) Touch(K) {}

// Push implements workqueue.Queue.
func (t *turns[K]) Push(key K) {
	namespace := t.namespaceOf(key)
	if len(t.waiting[namespace]) == 0 {
		t.next = append(t.next, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], key)
	t.keys++
}

// Len implements workqueue.Queue.
func (t *turns[K]) Len() int { return t.keys }

// Pop implements workqueue.Queue. The queue calls it only while a key waits.
func (t *turns[K]) Pop() K {
	namespace := t.next[0]
	t.next = t.next[1:]
	keys := t.waiting[namespace]
	key := keys[0]
	if len(keys) == 1 {
		delete(t.waiting, namespace)
	} else {
		t.waiting[namespace] = keys[1:]
		t.next = append(t.next, namespace)
	}
	t.keys--
	return key
}
