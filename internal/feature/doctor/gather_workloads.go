package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// everyPage lists objects in pages, none for a kind that isn't installed.
func everyPage(ctx context.Context, c client.Reader, list client.ObjectList, namespace string, each func(client.Object) error) error {
	for o, err := range pages.Items(ctx, c, list, client.InNamespace(namespace)) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = each(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readWorkloads lists the workloads with their namespaces' settings.
func (f *Facts) readWorkloads(ctx context.Context, o Options, c installation.Configured, namespaces namespaces) {
	for _, kind := range c.Kinds {
		for _, ns := range o.Watched {
			err := everyPage(ctx, o.Client, kind.NewList(), ns, func(object client.Object) error {
				if w, ok := workloadOf(kind, object, c.Words, namespaces[object.GetNamespace()].annotations); ok {
					for _, name := range w.Intent.After {
						w.After = append(w.After, kube.NameOf(c.Kinds, name))
					}
					f.Workloads.All = append(f.Workloads.All, w)
				}
				return nil
			})
			if err != nil {
				f.Workloads.Errs = append(f.Workloads.Errs, fmt.Errorf("list %s: %w", kind.ResourceName(ns), err))
			}
		}
	}
}

// readBeyond searches for workloads that ask to be followed in namespaces that the controller
// doesn't watch, as far as they can be listed. A user who names a namespace isn't interested in
// others.
func (f *Facts) readBeyond(ctx context.Context, o Options, c installation.Configured, all namespaces) {
	if o.named || all == nil || len(c.Watched) == 0 && c.Selector == nil {
		return
	}
	found := map[string]bool{}
	for _, kind := range c.Kinds {
		_ = everyPage(ctx, o.Client, metadataList(kind.GroupVersionKind), corev1.NamespaceAll, func(object client.Object) error {
			if ns := object.GetNamespace(); all.asks(object) && !c.Watches(ns, all[ns].labels) {
				found[ns] = true
			}
			return nil
		})
	}
	f.Namespaces.Beyond = sortedKeys(found)
}

// readOff searches for workloads that ask to be followed and whose kind is switched off, as far
// as they can be listed.
func (f *Facts) readOff(ctx context.Context, o Options, c installation.Configured, all namespaces) {
	for _, kind := range kube.Off(c.Kinds) {
		f.Kinds.Off = append(f.Kinds.Off, kind.Name())
		for _, ns := range o.Watched {
			_ = everyPage(ctx, o.Client, metadataList(kind.GroupVersionKind), ns, func(object client.Object) error {
				if all.asks(object) {
					f.Kinds.Asking = append(f.Kinds.Asking, objectname.Full(kind.GroupKind(), object.GetNamespace(), object.GetName()))
				}
				return nil
			})
		}
	}
}

// asks reports whether a workload asks to be followed, or its namespace does.
func (n namespaces) asks(workload client.Object) bool {
	intent := settings.Native{}.Intent(ours(workload.GetAnnotations()), ours(n[workload.GetNamespace()].annotations))
	return intent.Mode == settings.Follow || len(intent.Images) > 0
}

// workloadOf keeps the parts that the checks need. It is false for an object that can't
// be parsed.
func workloadOf(kind kube.Kind, o client.Object, words settings.Vocabulary, namespace map[string]string) (Workload, bool) {
	read, err := kind.Read(o)
	if err != nil {
		return Workload{}, false
	}
	w := Workload{
		Namespace: o.GetNamespace(), Name: kind.Name() + "/" + o.GetName(), RolledOutBy: o.GetAnnotations()[settings.RolledOutBy],
		Tools: toolsOf(o.GetAnnotations(), o.GetLabels(), words),
		Review: review.Workload{
			Kind: kind.Kind, Words: words, Namespace: ours(namespace),
			Annotations: known(o.GetAnnotations(), o.GetLabels(), words), Labels: ours(o.GetLabels()),
		},
	}
	template, err := kind.PodTemplate(read)
	if err != nil {
		w.Review.NoTemplate = kind.Template + " isn't a pod template"
		w.Intent = w.Review.Intent()
		return w, true
	}
	w.Review.TemplateAnnotations, w.Review.TemplateLabels = known(template.Annotations, nil, words), ours(template.Labels)
	w.Intent = w.Review.Intent()
	w.Review.Refs = podrefs.Extract(&template.Spec)
	for _, container := range slices.Concat(template.Spec.Containers, template.Spec.InitContainers) {
		w.Review.Containers = append(w.Review.Containers, container.Name)
	}
	w.Unprobed = !kind.StartsPods() && isUnprobed(template.Spec.Containers)
	if lender := kind.Lender(read); lender != (kube.Key{}) {
		w.Review.Partial, w.Lender = true, lender.String()
	}
	return w, true
}

// isUnprobed reports whether no container has a readiness probe. Beside one with a probe, the others
// are often helpers that don't need one. A borrowed template is empty here.
func isUnprobed(containers []corev1.Container) bool {
	return len(containers) > 0 && !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil })
}

// ours are the keys that begin like ours.
func ours(set map[string]string) map[string]string {
	return filtered(set, settings.IsOurs)
}

// known are those, and the ones that the vocabulary knows.
func known(set, labels map[string]string, words settings.Vocabulary) map[string]string {
	return filtered(set, func(key string) bool { return settings.IsOurs(key) || words.Knows(key, labels) })
}

func filtered(set map[string]string, keep func(string) bool) map[string]string {
	var kept map[string]string
	for key, value := range set {
		if keep(key) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// readSources lists the ConfigMaps and Secrets by their metadata: it doesn't read
// content.
func (f *Facts) readSources(ctx context.Context, o Options) {
	f.Sources.Exist = map[SourceKey]bool{}
	for _, kind := range []input.Kind{input.KindConfigMap, input.KindSecret} {
		for _, ns := range o.Watched {
			err := everyPage(ctx, o.Client, metadataList(corev1.SchemeGroupVersion.WithKind(string(kind))), ns, func(object client.Object) error {
				id := input.ID{Kind: kind, Name: object.GetName()}
				f.Sources.Exist[SourceKey{object.GetNamespace(), id}] = true
				f.note(objectname.In(id.String(), object.GetNamespace()), review.OfSource(string(kind), ours(object.GetAnnotations()), ours(object.GetLabels()), o.Nearest))
				return nil
			})
			if err != nil {
				f.Sources.Err = fmt.Errorf("list %s: %w", kube.ResourceName(string(kind), ns), err)
				return
			}
		}
	}
}

// metadataList is a list of the metadata of a kind.
func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
