package cluster

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Followers visits each workload that follows the input of a change, whichever version of it the
// workload has: in the change's namespace, or in all namespaces that have the input when they
// share it. It holds no lock while it visits.
func (c *Cache) Followers(of input.Change, visit func(*kube.Workload)) {
	if of.ID.Kind == input.KindImage {
		c.eachIn(of.Namespace, func(w *kube.Workload) {
			if c.requests(w, of.ID.Name) {
				visit(w)
			}
		})
		return
	}
	namespaces := []string{of.Namespace}
	if of.IsShared() {
		namespaces = nil
		c.Copies(of, func(s *kube.Source) { namespaces = append(namespaces, s.Namespace) })
		slices.Sort(namespaces)
	}
	for _, namespace := range namespaces {
		seen := map[kube.Key]bool{}
		for _, user := range c.Users(namespace, of.ID) {
			for _, key := range append(c.lending.borrowersOf(user), user) {
				w, ok := c.Workload(key)
				if ok && !seen[key] && c.follows(w, of.ID) {
					visit(w)
				}
				seen[key] = true
			}
		}
	}
}

// eachIn visits the workloads of a namespace, or of all when it is empty, with the templates that
// they borrow.
func (c *Cache) eachIn(namespace string, visit func(*kube.Workload)) {
	resolved := func(w *kube.Workload) {
		if w, ok := c.Workload(w.Key); ok {
			visit(w)
		}
	}
	if namespace == "" {
		c.EachWorkload(resolved)
		return
	}
	if a, ok := c.areas.Of(namespace); ok {
		for _, m := range a.workloads {
			m.EachIn(namespace, resolved)
		}
	}
}

// Copies visits the source of a change: that of its namespace, or those of all namespaces when they share it.
func (c *Cache) Copies(of input.Change, visit func(*kube.Source)) {
	if !of.IsShared() {
		if s, ok := c.Source(of.Namespace, of.ID); ok {
			visit(s)
		}
		return
	}
	for _, a := range c.areas.All() {
		if sources := a.sources[of.ID.Kind]; sources != nil {
			sources.Each(func(s *kube.Source) {
				if s.ID == of.ID {
					visit(s)
				}
			})
		}
	}
}

// ListsAll reports whether everything in a namespace, or in all of them without a name, has been listed: it is watched,
// and no kind of workload or source is missing, unless it isn't installed.
func (c *Cache) ListsAll(namespace string) bool {
	areas := c.areas.All()
	if namespace != "" {
		a, ok := c.areas.Of(namespace)
		if !ok {
			return false
		}
		areas = []*area{a}
	}
	for _, a := range areas {
		for s := range a.status() {
			if !s.Synced && !s.NotInstalled() {
				return false
			}
		}
	}
	return len(areas) > 0
}

// follows reports whether the workload follows a source by reference, by name or by pattern. A
// token is followed by its exact name only.
func (c *Cache) follows(w *kube.Workload, id input.ID) bool {
	var own settings.Source
	if s, ok := c.Source(w.Key.Namespace, id); ok {
		if own = settings.ForSource(s.Annotations); s.Token {
			own.Mode = settings.Never
		}
	}
	referenced := slices.ContainsFunc(w.Refs, func(r podrefs.Ref) bool { return r.Source == id })
	return !w.Deleting && c.intent(w).Follows(id, referenced, own)
}

// requests reports whether the workload requests an image of the repository for one of its
// containers.
func (c *Cache) requests(w *kube.Workload, repository string) bool {
	return !w.Deleting && slices.ContainsFunc(c.intent(w).Images, func(r settings.ImageRequest) bool {
		_, exists := w.ImageOf(r.Container)
		return exists && r.Image.Repository.String() == repository
	})
}

func (c *Cache) intent(w *kube.Workload) settings.Intent {
	var defaults map[string]string
	if ns, ok := c.Namespace(w.Key.Namespace); ok {
		defaults = ns.Annotations
	}
	return c.options.Vocabulary.Intent(w.Annotations, defaults)
}
