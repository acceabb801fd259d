package settings

import "strings"

// ForNamespaces are the annotations that have a meaning on a namespace.
func ForNamespaces() []string {
	return []string{Reload, Observe, Hold, Window, MaxRolling, Notify}
}

// ForSources are the annotations that have a meaning on a ConfigMap or Secret.
func ForSources() []string { return []string{Reload, Hold, Ramp, Resume} }

// LabelsForSources are the labels that have a meaning on a ConfigMap or Secret.
func LabelsForSources() []string { return []string{Revisioned} }

// Written are the keys that Lockstep writes, and users don't.
func Written() []string { return []string{Inputs, RolledOutBy, StateLabel, Version} }

// IsOurs reports whether a key begins like one of ours, whether or not that key exists.
func IsOurs(key string) bool { return strings.HasPrefix(key, Prefix) || isForImages(key) }

// ImageContainer is the container that an annotation about an image is for.
func ImageContainer(key string) (container string, ok bool) {
	if container, ok = strings.CutPrefix(key, ImagePrefix); ok {
		return container, true
	}
	return strings.CutPrefix(key, PlatformPrefix)
}
