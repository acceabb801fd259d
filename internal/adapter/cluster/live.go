package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Live is what the API server says about one workload right now. It answers the
// questions that a Cache answers, for a command that runs once.
type Live struct {
	hashers   kube.Hashers
	workload  *kube.Workload
	namespace *kube.Namespace
	sources   map[input.ID]*kube.Source
}

// ReadLive asks the API server for a workload, its namespace and every source
// that it names or lists.
func ReadLive(ctx context.Context, c client.Client, hashers kube.Hashers, kind kube.Kind, at client.ObjectKey) (*Live, error) {
	l := &Live{hashers: hashers, sources: map[input.ID]*kube.Source{}}
	w, err := readWorkload(ctx, c, kind, at)
	if err != nil {
		return nil, err
	}
	if w.Borrows != (kube.Key{}) {
		lender, err := readWorkload(ctx, c, kube.Deployment(), client.ObjectKey{Namespace: at.Namespace, Name: w.Borrows.Name})
		if err != nil {
			return nil, err
		}
		w = w.Borrowing(lender)
	}
	l.workload = w
	if err := l.readNamespace(ctx, c, at.Namespace); err != nil {
		return nil, err
	}
	return l, l.readSources(ctx, c)
}

// Workload returns the workload.
func (l *Live) Workload() *kube.Workload {
	return l.workload
}

// Namespace returns the workload's namespace, unless it could not be read.
func (l *Live) Namespace(string) (*kube.Namespace, bool) {
	return l.namespace, l.namespace != nil
}

// Source returns one of the workload's sources.
func (l *Live) Source(_ string, id input.ID) (*kube.Source, bool) {
	s, ok := l.sources[id]
	return s, ok
}

// SourcesMatching lists those of the workload's sources for which match is true.
func (l *Live) SourcesMatching(_ string, match func(input.ID) bool) []input.ID {
	var found []input.ID
	for id := range l.sources {
		if match(id) {
			found = append(found, id)
		}
	}
	return found
}

// Knows is always true: everything was asked for.
func (l *Live) Knows(input.Kind, string) bool {
	return true
}

// Absent is the version of a source that does not exist.
func (l *Live) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return l.hashers.Kinds[kind].AbsentVersion(keys)
}

func readWorkload(ctx context.Context, c client.Client, kind kube.Kind, at client.ObjectKey) (*kube.Workload, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind.GroupVersionKind)
	if err := c.Get(ctx, at, o); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, at, err)
	}
	w, err := kube.SlimWorkload(kind, o, settings.Native{})
	if err != nil {
		return nil, err
	}
	w.First(mirror.Arrival{})
	return w, nil
}

// readNamespace reads the defaults; a person may well have no right to them.
func (l *Live) readNamespace(ctx context.Context, c client.Client, name string) error {
	o := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, o)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	l.namespace, err = kube.SlimNamespace(o)
	return err
}

func (l *Live) readSources(ctx context.Context, c client.Client) error {
	intent := settings.Native{}.Intent(l.workload.Annotations, nil)
	ids := make([]input.ID, 0, len(l.workload.Refs))
	for _, ref := range l.workload.Refs {
		ids = append(ids, ref.Source)
	}
	for _, p := range intent.Listed {
		if p.IsGlob() {
			if err := l.readMatching(ctx, c, p); err != nil {
				return err
			}
			continue
		}
		ids = append(ids, input.ID(p))
	}
	for _, id := range ids {
		if err := l.readSource(ctx, c, id); err != nil {
			return err
		}
	}
	return nil
}

// readMatching reads the sources that a pattern means.
func (l *Live) readMatching(ctx context.Context, c client.Client, p settings.Pattern) error {
	list := kube.NewSourceList(p.Kind)
	if err := c.List(ctx, list, client.InNamespace(l.workload.Key.Namespace)); err != nil {
		return fmt.Errorf("list what %s/%s means: %w", p.Kind, p.Name, err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		return l.keep(o, p.Matches)
	})
}

func (l *Live) readSource(ctx context.Context, c client.Client, id input.ID) error {
	var o client.Object = &corev1.ConfigMap{}
	if id.Kind == input.KindSecret {
		o = &corev1.Secret{}
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: l.workload.Key.Namespace, Name: id.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", id, err)
	}
	return l.keep(o, func(input.ID) bool { return true })
}

// keep keeps what is needed of a source, if it is wanted.
func (l *Live) keep(object any, wanted func(input.ID) bool) error {
	s, err := l.hashers.Slim(object, settings.Native{})
	if err != nil || s.OwnRecord || !wanted(s.ID) {
		return err
	}
	s.First(mirror.Arrival{})
	l.sources[s.ID] = s
	return nil
}
