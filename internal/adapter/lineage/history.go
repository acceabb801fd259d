package lineage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// History is a workload with its revisions at one moment.
type History struct {
	Workload kube.Key
	// Progress shows whether Current is outdated, because the workload's controller has not
	// acted on the current workload yet.
	kube.Progress
	// Current is the revision of the current workload, nil while there is none. For a CronJob it
	// is the CronJob.
	Current *Holder
	// Holders are the living revisions, Current among them, by name.
	Holders []*Holder
}

// errWatchEnded means that a watch has to be started again.
var errWatchEnded = errors.New("the watch ended")

// FollowHistory calls see with the history of a workload, immediately and after each change,
// until see is done or the context ends. It reads once and then watches.
func FollowHistory(ctx context.Context, c client.WithWatch, kind kube.Kind, at types.NamespacedName, see func(History) (done bool)) error {
	if !kind.Attachable() {
		return fmt.Errorf("the revisions of kind %s are not known", kind.Kind)
	}
	key := kube.Key{GroupKind: kind.GroupKind(), Namespace: at.Namespace, Name: at.Name}
	f := &follower{client: c, kind: kind, key: key, see: see}
	err := access.Retry(ctx, func(ctx context.Context) error {
		err := f.follow(ctx)
		f.expired = f.expired || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if errors.Is(err, errWatchEnded) {
			return apierrors.NewServiceUnavailable(fmt.Sprintf("watch %s: %v", key, err))
		}
		return err
	})
	if f.watchedToTheEnd {
		// Any earlier failure was already over.
		return context.Cause(ctx)
	}
	return err
}

// follower holds the last read state of one workload.
type follower struct {
	client client.WithWatch
	kind   kube.Kind
	key    kube.Key
	see    func(History) bool

	workload  client.Object
	selector  labels.Selector
	revisions map[types.UID]client.Object
	// expired is true when the API server no longer had the version from which the workload
	// watch was to continue.
	expired bool
	// watchedToTheEnd is true when the context ended while the watches worked.
	watchedToTheEnd bool
}

// versions are the resource versions that the watches continue from.
type versions struct{ workload, revisions string }

func (f *follower) follow(ctx context.Context) error {
	var from versions
	var err error
	if from.workload, err = f.readWorkload(ctx); err != nil {
		return err
	}
	if from.revisions, err = f.listRevisions(ctx); err != nil {
		return err
	}
	if f.see(f.history()) {
		return nil
	}
	return f.watch(ctx, from)
}

// readWorkload returns the version that a watch continues from: the workload's own. A restarted
// or busy API server may no longer have that version of an idle workload; then it is the version
// of a new list.
func (f *follower) readWorkload(ctx context.Context) (version string, err error) {
	o := f.kind.NewObject()
	if f.expired {
		o, version, err = f.listWorkload(ctx)
	} else {
		err = f.client.Get(ctx, types.NamespacedName{Namespace: f.key.Namespace, Name: f.key.Name}, o)
		version = o.GetResourceVersion()
	}
	if err != nil {
		return "", f.unknown(ctx, err)
	}
	return version, f.setWorkload(o)
}

func (f *follower) listWorkload(ctx context.Context) (o client.Object, version string, err error) {
	list := f.kind.NewList()
	if err := f.client.List(ctx, list, f.workloadOptions("")); err != nil {
		return nil, "", err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, _ = item.(client.Object)
		return nil
	})
	if err == nil && o == nil {
		err = apierrors.NewNotFound(schema.GroupResource{Group: f.key.Group, Resource: f.key.Kind}, f.key.Name)
	}
	return o, list.GetResourceVersion(), err
}

func (f *follower) workloadOptions(from string) client.ListOption {
	return &client.ListOptions{
		Namespace: f.key.Namespace,
		Raw:       &metav1.ListOptions{ResourceVersion: from, FieldSelector: "metadata.name=" + f.key.Name},
	}
}

func (f *follower) setWorkload(o client.Object) error {
	selector, err := f.kind.RevisionSelector(o)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.key, err)
	}
	f.workload, f.selector = o, selector
	return nil
}

// unknown explains which part of the name does not exist, as far as the permissions allow.
func (f *follower) unknown(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return fmt.Errorf("get %s: %w", f.key, err)
	}
	if details := status.Status().Details; details == nil || details.Name == "" {
		return fmt.Errorf("get %s: the cluster doesn't know the kind %s in %s", f.key, f.key.Kind, f.key.Group)
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if apierrors.IsNotFound(f.client.Get(ctx, types.NamespacedName{Name: f.key.Namespace}, namespace)) {
		return fmt.Errorf("get %s: there is no namespace %s", f.key.Short(), f.key.Namespace)
	}
	return MissingError{fmt.Errorf("get %s: it does not exist", f.key)}
}

// MissingError means that the workload does not exist, in a namespace that does.
type MissingError struct{ error }

// listRevisions returns the version that a watch continues from. A label doesn't identify the
// Jobs of a CronJob, so a namespace may have many more Jobs than those that are kept. They are
// listed in pages.
func (f *follower) listRevisions(ctx context.Context) (version string, err error) {
	f.revisions = map[types.UID]client.Object{}
	list := f.kind.Revisions.NewList()
	for o, err := range pages.Items(ctx, f.client, list, f.revisionOptions("")) {
		if err != nil {
			return "", fmt.Errorf("list the revisions of %s: %w", f.key, err)
		}
		if f.controls(o) {
			f.setRevision(o.DeepCopyObject().(client.Object))
		}
	}
	return list.GetResourceVersion(), nil
}

func (f *follower) setRevision(o client.Object) {
	if f.controls(o) {
		f.revisions[o.GetUID()] = o
	}
}

func (f *follower) controls(o client.Object) bool {
	return controlledBy(o, string(f.workload.GetUID()))
}

func (f *follower) revisionOptions(from string) *client.ListOptions {
	return &client.ListOptions{
		Namespace: f.key.Namespace, LabelSelector: f.selector,
		Raw: &metav1.ListOptions{ResourceVersion: from},
	}
}

// watch follows workload and revisions from the versions that were read.
func (f *follower) watch(ctx context.Context, from versions) error {
	workloads, err := f.client.Watch(ctx, f.kind.NewList(), f.workloadOptions(from.workload))
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.key, err)
	}
	defer workloads.Stop()
	revisions, err := f.client.Watch(ctx, f.kind.Revisions.NewList(), f.revisionOptions(from.revisions))
	if err != nil {
		return fmt.Errorf("watch the revisions of %s: %w", f.key, err)
	}
	defer revisions.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
		case event, ok := <-workloads.ResultChan():
			err = f.workloadEvent(event, ok)
		case event, ok := <-revisions.ResultChan():
			err = f.revisionEvent(event, ok)
		}
		if ctx.Err() != nil { // It ends the watches too.
			f.watchedToTheEnd = true
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if f.see(f.history()) {
			return nil
		}
	}
}

func (f *follower) workloadEvent(event watch.Event, open bool) error {
	o, err := eventObject(event, open)
	if err != nil {
		return err
	}
	if event.Type == watch.Deleted {
		return fmt.Errorf("%s was deleted meanwhile", f.key)
	}
	return f.setWorkload(o)
}

func (f *follower) revisionEvent(event watch.Event, open bool) error {
	o, err := eventObject(event, open)
	if err != nil {
		return err
	}
	if event.Type == watch.Deleted {
		delete(f.revisions, o.GetUID())
		return nil
	}
	f.setRevision(o)
	return nil
}

func eventObject(event watch.Event, open bool) (client.Object, error) {
	if !open {
		return nil, errWatchEnded
	}
	if event.Type == watch.Error {
		return nil, apierrors.FromObject(event.Object)
	}
	o, ok := event.Object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("watch sent a %T: %w", event.Object, errWatchEnded)
	}
	return o, nil
}

// isBehind reports whether the workload was read before its newest revision, or whether a Rollout's
// status has the hash of an earlier revision than its number. The watch of the revisions may be
// faster than that of the workload, and a controller numbers the revision before the workload. Argo
// Rollouts writes the number, then the observed generation, and then the hash.
func (f *follower) isBehind(current client.Object) bool {
	of := f.kind.RevisionNumber(f.workload)
	if of == 0 {
		return false
	}
	for _, o := range f.revisions {
		if f.kind.RevisionNumber(o) > of {
			return true
		}
	}
	if current == nil || f.kind.RevisionLabel == "" {
		return false
	}
	has := f.kind.RevisionNumber(current)
	return has > 0 && has != of
}

// history makes a History from the last read state.
func (f *follower) history() History {
	h := History{Workload: f.key, Progress: f.kind.Status(f.workload)}
	revisions := slices.Collect(maps.Values(f.revisions))
	current := f.kind.CurrentOf(f.workload, revisions)
	h.Observed = h.Observed && !f.isBehind(current)
	keep := func(holder *Holder, err error) {
		if err != nil || !holder.Holds() {
			return
		}
		h.Holders = append(h.Holders, holder)
		if current != nil && string(current.GetUID()) == holder.UID {
			h.Current = holder
		}
	}
	for _, o := range revisions {
		keep(NewHolder(f.kind.Revisions, []kube.Kind{f.kind}, o))
	}
	if f.kind.Revisions.Transient {
		keep(slimWorkload(f.kind, f.workload))
	}
	sorting.By(h.Holders, func(a, b *Holder) int { return strings.Compare(a.String(), b.String()) })
	return h
}
