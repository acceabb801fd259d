package input

// Change is one version of an input, whichever workloads use it. Ramp, budget and stop
// count changes.
type Change struct {
	// Namespace is empty for a change that all namespaces share.
	Namespace string
	// ID is the ConfigMap or Secret. For an image it names the repository instead of the
	// container: Image("registry.example/web").
	ID ID
	// Version is the beginning of the digest of the whole content, or of the image. That
	// of a shared Secret is keyed and must not be shown.
	Version string
}

// IsZero reports whether there is no change to take a turn for: the source doesn't exist,
// or a healthy image is restored.
func (c Change) IsZero() bool {
	return c == Change{}
}

// Subject is the change without its version.
func (c Change) Subject() Change {
	c.Version = ""
	return c
}

// IsShared reports whether all namespaces share the change.
func (c Change) IsShared() bool {
	return c.Namespace == "" && c.ID != ID{}
}

// IsHidden reports whether nothing shows the version: that of a shared Secret is a keyed digest that is the same in all
// namespaces.
func (c Change) IsHidden() bool {
	return c.IsShared() && c.ID.Kind == KindSecret
}

// String is for users: "configmap/app 77ab01c9de".
func (c Change) String() string {
	if c.Version == "" || c.IsHidden() {
		return c.ID.String()
	}
	return c.ID.String() + " " + c.Version
}
