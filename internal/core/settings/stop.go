package settings

import (
	"maps"
	"slices"
	"strings"
)

// StopName is the ConfigMap in the controller's namespace with which an operator stops
// automatic changes.
const StopName = "lockstep-stop"

// Keys of that ConfigMap. Their values are the reasons.
const (
	// StopAll stops every automatic change.
	StopAll = "all"
	// stopNamespace, followed by a name, stops those in one namespace.
	stopNamespace = "namespace."
)

// StopKey is the key that stops the changes of a namespace, or all when it is empty.
func StopKey(namespace string) string {
	if namespace == "" {
		return StopAll
	}
	return stopNamespace + namespace
}

// Stop is the content of the ConfigMap: which automatic changes an operator has stopped, and
// why. The zero value doesn't stop any.
type Stop struct {
	// All is the reason for which all of them are stopped, nil when they aren't.
	All *string
	// Namespaces are the stopped ones with their reasons.
	Namespaces map[string]string
}

// ParseStop reads the ConfigMap. Operators in a hurry create it without a key, or with
// another one, and expect that everything stops.
func ParseStop(data map[string]string, exists bool) Stop {
	if !exists {
		return Stop{}
	}
	s := Stop{Namespaces: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		reason := Shorten(strings.TrimSpace(data[key]))
		switch namespace, found := strings.CutPrefix(key, stopNamespace); {
		case found && namespace != "":
			s.Namespaces[namespace] = reason
		case s.All == nil || key == StopAll:
			s.All = &reason
		}
	}
	if s.All == nil && len(s.Namespaces) == 0 {
		s.All = new(string)
	}
	return s
}

// For reports whether the changes of a namespace are stopped, and why.
func (s Stop) For(namespace string) (reason string, stopped bool) {
	if s.All != nil {
		return *s.All, true
	}
	reason, stopped = s.Namespaces[namespace]
	return reason, stopped
}
