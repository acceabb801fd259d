package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Live is a view of one workload that can be read again, for a one-shot command.
type Live struct {
	*View
	// Words is the language of the annotations that are kept.
	Words settings.Vocabulary

	client client.Client
	kind   kube.Kind
	at     client.ObjectKey
	now    func() time.Time
	// tolerant makes an unreadable source not an error; hidden holds the reason.
	tolerant bool
	hidden   map[input.ID]string
	// writers are the last writers of the sources' content.
	writers map[input.ID]kube.Writer
	// unsettled is why the namespace could not be read.
	unsettled error
}

// NewLive makes a Live that is empty until Read.
func NewLive(c client.Client, hashers kube.Hashers, kind kube.Kind, at client.ObjectKey, now func() time.Time) *Live {
	return &Live{View: NewView(hashers), Words: settings.Native{}, client: c, kind: kind, at: at, now: now}
}

// Tolerate lets Read continue when the user lacks permission to read a source.
func (l *Live) Tolerate() *Live {
	l.tolerant, l.hidden = true, map[input.ID]string{}
	return l
}

// Hidden returns the sources that could not be read, and why.
func (l *Live) Hidden() map[input.ID]string { return l.hidden }

// Writers returns the last writer of each source that could be read, as far as its managed fields
// show.
func (l *Live) Writers() map[input.ID]kube.Writer { return l.writers }

// NamespaceProblem is why the namespace, which has settings, could not be read; nil if it was.
func (l *Live) NamespaceProblem() error { return l.unsettled }

// Key names the workload.
func (l *Live) Key() kube.Key {
	return keyOf(l.kind, l.at)
}

// Read reads the workload, its namespace and every source that it references or lists. A
// source's content at the previous read shows when it changed.
func (l *Live) Read(ctx context.Context) error {
	if _, err := l.readWorkload(ctx, l.client, l.Words, l.kind, l.at); err != nil {
		return err
	}
	if err := l.readNamespace(ctx); err != nil {
		return err
	}
	before := l.sources
	l.sources, l.writers = map[place]*kube.Source{}, map[input.ID]kube.Writer{}
	if err := l.readSources(ctx, before); err != nil {
		return err
	}
	l.noteGone(before)
	return nil
}

// noteGone marks the remaining sources as changed when a source was deleted: the deletion
// changes the workload's inputs, and a deleted source cannot carry the time itself.
func (l *Live) noteGone(before map[place]*kube.Source) {
	for at := range before {
		if _, exists := l.sources[at]; exists {
			continue
		}
		for _, s := range l.sources {
			s.ChangedAt = l.now()
		}
	}
}

// Knows reports whether all queried sources of the kind could be read.
func (l *Live) Knows(kind input.Kind, _ string) bool {
	for id := range l.hidden {
		if id.Kind == kind {
			return false
		}
	}
	return true
}

// readNamespace reads the defaults; the user may lack permission for them.
func (l *Live) readNamespace(ctx context.Context) error {
	o := &corev1.Namespace{}
	err := l.client.Get(ctx, client.ObjectKey{Name: l.at.Namespace}, o)
	if l.unsettled = nil; apierrors.IsForbidden(err) {
		l.unsettled = err
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", l.at.Namespace, err)
	}
	n, err := kube.SlimNamespace(o)
	if err == nil {
		l.namespaces[n.Name] = n
	}
	return err
}

func (l *Live) readSources(ctx context.Context, before map[place]*kube.Source) error {
	w, _ := l.Workload(l.Key())
	intent := l.Words.Intent(w.Annotations, nil)
	ids := make([]input.ID, 0, len(w.Refs))
	for _, ref := range w.Refs {
		ids = append(ids, ref.Source)
	}
	for _, p := range intent.Listed {
		if p.IsGlob() {
			if err := l.readMatching(ctx, p, before); err != nil {
				return err
			}
			continue
		}
		ids = append(ids, input.ID(p))
	}
	return l.readNamed(ctx, ids, before)
}

// readMatching reads the sources that match a pattern.
func (l *Live) readMatching(ctx context.Context, p settings.Pattern, before map[place]*kube.Source) error {
	for o, err := range pages.Items(ctx, l.client, kube.NewSourceList(p.Kind), client.InNamespace(l.at.Namespace)) {
		if l.hides(input.ID(p), err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the sources that match %s: %w", input.ID(p), err)
		}
		if s, err := l.slim(o, before); err != nil {
			return err
		} else if p.Matches(s.ID) {
			l.keep(s)
			l.writers[s.ID] = kube.DataWriter(o)
		}
	}
	return nil
}

// mostReads bounds the sources that are read at the same time. At a latency of 80 ms, 60 sources
// then take less than a second.
const mostReads = 8

// finding is the result of reading one source.
type finding struct {
	source *kube.Source
	writer kube.Writer
	err    error
}

// readNamed reads sources in parallel, and keeps them in order: the first source that can't be
// read determines the error.
func (l *Live) readNamed(ctx context.Context, ids []input.ID, before map[place]*kube.Source) error {
	found := make([]finding, len(ids))
	var all sync.WaitGroup
	for first := range mostReads {
		all.Go(func() {
			for i := first; i < len(ids); i += mostReads {
				found[i] = l.readSource(ctx, ids[i], before)
			}
		})
	}
	all.Wait()
	for i, id := range ids {
		f := found[i]
		if f.err == nil {
			l.writers[id] = f.writer
		}
		switch {
		case apierrors.IsNotFound(f.err) || l.hides(id, f.err):
		case f.err != nil:
			return f.err
		default:
			l.keep(f.source)
		}
	}
	return nil
}

func (l *Live) readSource(ctx context.Context, id input.ID, before map[place]*kube.Source) finding {
	o, err := ReadSource(ctx, l.client, l.at.Namespace, id)
	if err != nil {
		return finding{err: err}
	}
	f := finding{writer: kube.DataWriter(o)}
	if !l.tolerant || l.measures(id.Kind) {
		f.source, f.err = l.slim(o, before)
	}
	return f
}

// measures reports whether versions of a kind can be computed: those of Secrets need the
// installation key.
func (l *Live) measures(kind input.Kind) bool {
	_, measured := l.hashers.Kinds[kind]
	return measured
}

// NoKey is why the version of a Secret isn't visible to a user who may read it.
const NoKey = "its digest cannot be computed without the installation key"

// hides reports whether a source, or a pattern's sources, must be skipped. Without the
// installation key a Secret has no digest, even if the user may read it.
func (l *Live) hides(id input.ID, err error) bool {
	switch {
	case !l.tolerant:
		return false
	case apierrors.IsForbidden(err):
		l.hidden[id] = err.Error()
	case err == nil && !l.measures(id.Kind):
		l.hidden[id] = NoKey
	default:
		return false
	}
	return true
}

// slim makes a source of an object. Only this process's own observations determine when it last
// changed: times of managed fields are not evidence.
func (l *Live) slim(object any, before map[place]*kube.Source) (*kube.Source, error) {
	s, err := l.hashers.Slim(object, l.Words)
	if err != nil {
		return nil, err
	}
	if !l.tolerant {
		s.DataWrittenAt = time.Time{}
	}
	arrival := mirror.Arrival{At: l.now()}
	if old, seen := before[place{s.Namespace, s.ID}]; seen {
		s.Follow(old, arrival)
	} else {
		s.First(arrival)
	}
	return s, nil
}

// keep keeps a source, unless it is Lockstep's own record.
func (l *Live) keep(s *kube.Source) {
	if !s.OwnRecord {
		l.sources[place{s.Namespace, s.ID}] = s
	}
}
