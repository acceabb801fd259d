package reloader

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// PodStatus is the kind that shows the versions of a SecretProviderClass in a pod, and Class that
// class.
func PodStatus() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Kind: "SecretProviderClassPodStatus"}
}

// Class is the kind of SecretProviderClasses.
func Class() schema.GroupVersionKind {
	return PodStatus().GroupVersion().WithKind("SecretProviderClass")
}

// area is the watch of one type of sources in one namespace, or in all of them.
type area struct {
	of        stakater.Type
	namespace string
	mirror    *mirror.Mirror[*source]
	// compared is true once its sources were compared with the record.
	compared atomic.Bool
}

// name is the area in the record.
func (a *area) name() string { return string(a.of) + "/" + a.namespace }

// has reports whether a namespace is in the area.
func (a *area) has(namespace string) bool { return a.namespace == "" || a.namespace == namespace }

func newAreas(r *Reloader) []*area {
	var all []*area
	namespaces := r.Scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{corev1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		for _, of := range r.Scope.types() {
			a := &area{of: of, namespace: namespace}
			a.mirror = mirror.New(mirror.Options[*source]{
				Name: kube.ResourceName(kindOf(of), namespace), Role: mirror.RoleSource,
				Slim: slim(r.Words), Changed: r.changed, Now: r.Now, Report: r.Report,
			})
			all = append(all, a)
		}
	}
	return all
}

func (s Scope) types() []stakater.Type {
	var all []stakater.Type
	for of, watched := range map[stakater.Type]bool{stakater.ConfigMap: s.ConfigMaps, stakater.Secret: s.Secrets, stakater.SecretProviderClass: s.Classes} {
		if watched {
			all = append(all, of)
		}
	}
	slices.Sort(all)
	return all
}

// kindOf is the kind of the objects that are watched.
func kindOf(of stakater.Type) string {
	switch of {
	case stakater.ConfigMap:
		return "ConfigMap"
	case stakater.Secret:
		return "Secret"
	default:
		return PodStatus().Kind
	}
}

func (a *area) list() client.ObjectList {
	switch a.of {
	case stakater.ConfigMap:
		return &corev1.ConfigMapList{}
	case stakater.Secret:
		return &corev1.SecretList{}
	default:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(PodStatus())
		return list
	}
}

// Watch keeps the copies of sources in step until the context ends.
func (r *Reloader) Watch(ctx context.Context) error {
	var watches sync.WaitGroup
	watches.Go(func() { r.chosen.run(ctx, r.Client) })
	for _, a := range r.areas {
		scope := mirror.Scope{List: a.list(), Namespace: a.namespace, Selector: r.Scope.ResourceSelector}
		if a.of == stakater.SecretProviderClass {
			scope.Selector = nil // The driver writes these objects, and no user labels them.
		}
		watches.Go(func() { a.mirror.Run(ctx, r.Client, scope) })
	}
	watches.Wait()
	return nil
}

// newestOf are the sources among all copies, by namespace. Several pods can have a status of the same
// class, of which the last one counts.
func newestOf(each func(visit func(*source))) map[string]map[id]*source {
	newest := map[string]map[id]*source{}
	each(func(s *source) {
		if s.own {
			return
		}
		if newest[s.namespace] == nil {
			newest[s.namespace] = map[id]*source{}
		}
		if known := newest[s.namespace][s.id()]; known == nil || known.number() < s.number() {
			newest[s.namespace][s.id()] = s
		}
	})
	return newest
}

// chosen are the namespaces that are followed.
type chosen struct {
	ignored []string
	scope   Scope
	// mirror has the namespaces with the labels, nil without a selector.
	mirror *mirror.Mirror[*kube.Namespace]
}

func newChosen(s Scope, d Dependencies) *chosen {
	c := &chosen{scope: s}
	if len(s.Namespaces) > 0 {
		return c
	}
	c.ignored = s.IgnoredNamespaces
	if s.NamespaceSelector != nil {
		c.mirror = mirror.New(mirror.Options[*kube.Namespace]{
			Name: "namespaces", Role: mirror.RoleSource, Slim: kube.SlimNamespace, Now: d.Now,
			Report: d.Report,
		})
	}
	return c
}

func (c *chosen) run(ctx context.Context, cl client.WithWatch) {
	if c.mirror != nil {
		c.mirror.Run(ctx, cl, mirror.Scope{List: &corev1.NamespaceList{}, Selector: c.scope.NamespaceSelector})
	}
}

func (c *chosen) status() []mirror.Sync {
	if c.mirror == nil {
		return nil
	}
	return []mirror.Sync{c.mirror.Status()}
}

// has reports whether the namespace is followed.
func (c *chosen) has(name string) bool {
	if slices.Contains(c.ignored, name) {
		return false
	}
	if c.mirror == nil {
		return true
	}
	_, ok := c.mirror.Get("", name)
	return ok
}
