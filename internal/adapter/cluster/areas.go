package cluster

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Areas are watches by namespace, or one that watches all namespaces together.
type Areas[A comparable] struct {
	mu sync.RWMutex
	by map[string]A
}

// Of returns the watches that cover a namespace.
func (s *Areas[A]) Of(namespace string) (A, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a, ok := s.by[namespace]; ok {
		return a, true
	}
	a, ok := s.by[corev1.NamespaceAll]
	return a, ok
}

// All returns every area, by the name of its namespace.
func (s *Areas[A]) All() []A {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]A, 0, len(s.by))
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		all = append(all, s.by[name])
	}
	return all
}

// Put sets the area of a namespace, or of all namespaces.
func (s *Areas[A]) Put(namespace string, a A) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]A{}
	}
	s.by[namespace] = a
}

// Remove removes an area, unless its namespace already has another one.
func (s *Areas[A]) Remove(namespace string, a A) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[namespace] == a {
		delete(s.by, namespace)
	}
}
