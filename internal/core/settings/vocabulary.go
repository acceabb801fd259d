package settings

import "strings"

// Vocabulary is a language in which people ask for things: ours, or that of a
// tool whose place we take.
type Vocabulary interface {
	// Knows reports whether the annotation belongs to the language.
	Knows(key string) bool
	// Intent reads what is asked for a workload.
	Intent(workload, namespace map[string]string) Intent
}

// Native is our own language.
type Native struct {
	Defaults Defaults
}

// Knows implements Vocabulary.
func (n Native) Knows(key string) bool {
	return strings.HasPrefix(key, Prefix) && key != MovedBy || isForImages(key)
}

// Intent implements Vocabulary.
func (n Native) Intent(workload, namespace map[string]string) Intent {
	return ForWorkload(workload, namespace, n.Defaults)
}
