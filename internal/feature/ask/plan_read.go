package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// readNamespaces reads the current state of the objects' namespaces. It fails when nothing
// can be read.
func (p *planner) readNamespaces(ctx context.Context, objects []manifest.Object) error {
	for _, name := range p.namespaces(objects) {
		if err := p.readNamespace(ctx, name); err != nil {
			return err
		}
	}
	if p.read == 0 && len(p.unread) > 0 {
		return errors.Join(p.unread...)
	}
	for _, err := range p.unread {
		p.note("ignored: " + err.Error())
	}
	return nil
}

// namespaces are those in which a relevant object would change.
func (p *planner) namespaces(objects []manifest.Object) []string {
	var names []string
	for _, o := range objects {
		switch {
		case isNamespace(o.GroupVersionKind()):
			names = append(names, o.GetName())
		case p.matters(o.GroupVersionKind()):
			if o.GetNamespace() == "" {
				o.SetNamespace(p.Namespace)
			}
			names = append(names, o.GetNamespace())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *planner) readNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{}
	switch err := p.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsForbidden(err): // users often don't have this permission
	case apierrors.IsNotFound(err):
		p.read++
		return nil
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", name, err)
	default:
		slim, err := kube.SlimNamespace(namespace)
		if err != nil {
			return err
		}
		p.overlay.AddNamespace(slim)
	}
	for _, kind := range p.Kinds {
		err := p.list(ctx, kind.NewList(), name, func(o runtime.Object) error {
			w, err := kube.SlimWorkload(kind, o, p.Serves.Words(p.Defaults))
			if err == nil {
				p.overlay.AddWorkload(w)
			}
			return err
		})
		if err != nil && !p.leaveUnread(err) {
			return err
		}
	}
	return p.readSources(ctx, name)
}

func (p *planner) readSources(ctx context.Context, namespace string) error {
	for _, kind := range []input.Kind{input.KindConfigMap, input.KindSecret} {
		err := p.list(ctx, kube.NewSourceList(kind), namespace, func(o runtime.Object) error {
			s, err := p.Hashers.Slim(o, p.Serves.Words(p.Defaults))
			if err == nil {
				p.overlay.AddSource(s)
			}
			return err
		})
		if apierrors.IsForbidden(err) {
			p.overlay.HideSources(namespace, kind)
			p.note(fmt.Sprintf("%ss of %s are not visible to you: those that aren't in the files count as unchanged", kind, namespace))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list lists objects of a kind, none for a kind that isn't installed.
func (p *planner) list(ctx context.Context, into client.ObjectList, namespace string, see func(runtime.Object) error) error {
	for o, err := range pages.Items(ctx, p.Client, into, client.InNamespace(namespace)) {
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return nil
		case err == nil:
			err = see(o)
		}
		if err != nil {
			return err
		}
	}
	p.read++
	return nil
}

// leaveUnread reports whether an error is only a missing permission, and notes it.
func (p *planner) leaveUnread(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	p.unread = append(p.unread, err)
	return true
}

func isNamespace(kind schema.GroupVersionKind) bool {
	return kind.GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
}

// sourceKind is an object's kind of source, if it is one.
func sourceKind(kind schema.GroupVersionKind) (input.Kind, bool) {
	if kind.Group != "" {
		return "", false
	}
	found := input.Kind(kind.Kind)
	return found, found == input.KindConfigMap || found == input.KindSecret
}

func (p *planner) workloadKind(kind schema.GroupVersionKind) (kube.Kind, bool) {
	i := slices.IndexFunc(p.Kinds, func(k kube.Kind) bool { return k.GroupKind() == kind.GroupKind() })
	if i < 0 {
		return kube.Kind{}, false
	}
	return p.Kinds[i], true
}

func (p *planner) matters(kind schema.GroupVersionKind) bool {
	_, source := sourceKind(kind)
	_, workload := p.workloadKind(kind)
	return source || workload || isNamespace(kind)
}

// add plans one object of the files.
func (p *planner) add(ctx context.Context, o manifest.Object) error {
	if !p.matters(o.GroupVersionKind()) {
		p.plan.Others[o.GetKind()]++
		return nil
	}
	live, err := p.live(ctx, o)
	unseen := apierrors.IsForbidden(err)
	if err != nil && !unseen {
		return err
	}
	if err := p.addApplied(o, live, unseen); err != nil {
		return &manifest.Error{File: o.File, Line: o.Line, Err: err}
	}
	return nil
}

func (p *planner) addApplied(o manifest.Object, live *unstructured.Unstructured, unseen bool) error {
	applied, err := manifest.Applied(live, o.Unstructured)
	if err != nil {
		return err
	}
	if kind, source := sourceKind(o.GroupVersionKind()); source {
		return p.addSource(input.ID{Kind: kind, Name: o.GetName()}, live, applied, unseen)
	}
	kind, isWorkload := p.workloadKind(o.GroupVersionKind())
	switch {
	case isWorkload && unseen:
		p.unseen = append(p.unseen, PlannedWorkload{
			Workload: kind.Name() + "/" + o.GetName(), Namespace: o.GetNamespace(), Would: WouldUnknown, Because: "it is not visible to you",
		})
		return nil
	case isWorkload:
		return p.addWorkload(kind, live, applied)
	case unseen:
		p.hidesNamespace = true
		p.note(o.Called() + " is not visible to you, and is ignored")
		return nil
	}
	return p.addNamespace(applied)
}

// live is the object in the cluster, nil when there is none.
func (p *planner) live(ctx context.Context, o manifest.Object) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(o.GroupVersionKind())
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(o), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case meta.IsNoMatchError(err):
		p.note(fmt.Sprintf("the cluster doesn't know the kind %s of %s", o.GetKind(), o.GetAPIVersion()))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", objectname.In(o.Called(), o.GetNamespace()), err)
	}
	return found, nil
}

func (p *planner) addWorkload(kind kube.Kind, live, applied *unstructured.Unstructured) error {
	if live != nil {
		was, err := kube.SlimWorkload(kind, live, p.Serves.Words(p.Defaults))
		if err != nil {
			return err
		}
		p.overlay.AddWorkload(was)
	}
	will, err := kube.SlimWorkload(kind, applied, p.Serves.Words(p.Defaults))
	if err != nil {
		return err
	}
	p.overlay.PlanWorkload(will)
	p.named = append(p.named, will.Key)
	return nil
}

func (p *planner) addNamespace(applied *unstructured.Unstructured) error {
	typed := &corev1.Namespace{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, typed); err != nil {
		return err
	}
	will, err := kube.SlimNamespace(typed)
	if err != nil {
		return err
	}
	was, known := p.overlay.Before.Namespace(will.Name)
	p.overlay.PlanNamespace(will)
	if known && !will.SameAs(was) {
		p.resettled[will.Name] = true
	}
	return nil
}

func (p *planner) addSource(id input.ID, live, applied *unstructured.Unstructured, unseen bool) error {
	will, err := p.source(id, applied)
	if err != nil {
		return err
	}
	told := PlannedSource{Source: id.String(), Namespace: will.Namespace, Change: Created}
	switch {
	case unseen:
		told.Change = Assumed
		if !p.overlay.Before.Hides(will.Namespace, id.Kind) {
			p.overlay.HideSource(will.Namespace, id)
		}
	case live != nil:
		was, err := p.source(id, live)
		if err != nil {
			return err
		}
		p.overlay.AddSource(was)
		told.Change = alteration(was, will)
	}
	p.plan.Sources = append(p.plan.Sources, told)
	if told.Change == Unchanged || told.Change == Refused {
		return nil
	}
	p.overlay.PlanSource(will)
	p.touched[will.Namespace] = append(p.touched[will.Namespace], id)
	return nil
}

// alteration is the effect of applying on a source that exists.
func alteration(was, will *kube.Source) Alter {
	switch {
	case was.SameAs(will):
		return Unchanged
	case was.Immutable && (!was.Content.Equal(will.Content) || !will.Immutable):
		return Refused
	}
	return Changed
}

func (p *planner) source(id input.ID, o *unstructured.Unstructured) (*kube.Source, error) {
	var typed client.Object = &corev1.ConfigMap{}
	if id.Kind == input.KindSecret {
		typed = &corev1.Secret{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		// The cause may quote the content.
		return nil, fmt.Errorf("%s in the files can't be read as a %s", id, id.Kind)
	}
	return p.Hashers.Slim(typed, p.Serves.Words(p.Defaults))
}
