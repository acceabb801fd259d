package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// namespaces are those that exist, with their settings and labels; nil when they could not be
// listed.
type namespaces map[string]struct {
	annotations map[string]string
	labels      labels.Set
}

func (n namespaces) has(name string) bool {
	_, exists := n[name]
	return exists
}

// chosen are the notification targets that namespaces choose.
func (n namespaces) chosen() map[string]string {
	all := map[string]string{}
	for name, one := range n {
		if target := settings.ForWorkload(nil, one.annotations, settings.Defaults{}).Notify; target != "" {
			all[name] = target
		}
	}
	return all
}

func (f *Facts) readNamespaces(ctx context.Context, o Options) namespaces {
	all := namespaces{}
	err := everyPage(ctx, o.Client, metadataList(corev1.SchemeGroupVersion.WithKind("Namespace")), "", func(object client.Object) error {
		one := all[object.GetName()]
		one.annotations, one.labels = ours(object.GetAnnotations()), object.GetLabels()
		all[object.GetName()] = one
		return nil
	})
	if err != nil {
		f.Namespaces.Err = fmt.Errorf("list namespaces: %w", err)
		return nil
	}
	return all
}

// within are the namespaces to list in: those that a user names, otherwise those that the
// controller watches. One stands for all. Those that don't exist are recorded in the
// facts.
func (f *Facts) within(named []string, c installation.Configured, all namespaces) []string {
	watched := watches(c, all)
	list := slices.Concat(named)
	if len(list) == 0 {
		list = watched
	}
	if i := slices.IndexFunc(named, func(name string) bool {
		return !slices.Contains(watched, name) && !slices.Contains(watched, corev1.NamespaceAll)
	}); i >= 0 {
		f.Namespaces.Unwatched = named[i]
	}
	for name, one := range all {
		if slices.Contains(list, name) || slices.Contains(list, corev1.NamespaceAll) {
			f.note("namespace/"+name, review.OfNamespace(one.annotations, ours(one.labels), f.Hints.Nearest))
		}
	}
	if all == nil {
		return list
	}
	return slices.DeleteFunc(list, func(name string) bool {
		absent := !all.has(name) && name != corev1.NamespaceAll
		if absent {
			f.Namespaces.Absent = append(f.Namespaces.Absent, name)
		}
		return absent
	})
}

// watches are the namespaces that a controller watches, of those that exist. One stands for all.
func watches(c installation.Configured, all namespaces) []string {
	switch {
	case len(c.Watched) > 0:
		return slices.Clone(c.Watched)
	case c.Selector == nil || all == nil:
		return []string{corev1.NamespaceAll}
	}
	list := []string{}
	for _, name := range sortedKeys(all) {
		if c.Watches(name, all[name].labels) {
			list = append(list, name)
		}
	}
	return list
}

// share reports whether two controllers watch a common namespace. An unknown selector counts as
// all namespaces.
func share(c, other installation.Configured, all namespaces) bool {
	mine, theirs := watches(c, all), watches(other, all)
	return slices.ContainsFunc(mine, func(name string) bool {
		return slices.Contains(theirs, name) || slices.Contains(theirs, corev1.NamespaceAll) || name == corev1.NamespaceAll && len(theirs) > 0
	})
}

// note records the mistakes in an object's metadata.
func (f *Facts) note(object string, found []review.Mistake) {
	for _, finding := range found {
		f.Notes = append(f.Notes, Note{Object: object, Mistake: finding})
	}
}
