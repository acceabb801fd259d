package reloader

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// survey lists all workloads: it finds out which sources they follow, which of their annotations
// aren't understood, and which Deployments are paused. At the first start, it also finds what
// their templates show to be missed.
func (r *Reloader) survey(ctx context.Context, first bool) (complete bool) {
	followed := map[string]map[id]bool{}
	complete = true
	namespaces := r.Scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		for _, kind := range r.kinds {
			err := pages.Each(ctx, r.Client, kind.NewList(), func(o client.Object) bool {
				if r.chosen.has(o.GetNamespace()) {
					r.inspect(kind, o, first, followed)
				}
				return true
			}, client.InNamespace(namespace))
			r.listed.note(kind, err, r.Report)
			complete = complete && (err == nil || isNotInstalled(err))
		}
	}
	if !complete {
		return false
	}
	for namespace, ids := range r.record.entries() {
		for _, of := range ids {
			if !followed[namespace][of] && r.isRead(namespace, of.Type) {
				r.record.forget(namespace, of)
			}
		}
	}
	return true
}

// isRead reports whether the sources of a type in a namespace are known. What can't be read yet is
// compared with the record later.
func (r *Reloader) isRead(namespace string, of stakater.Type) bool {
	if r.chosen.mirror != nil && !r.chosen.mirror.Status().Synced {
		return false
	}
	for _, a := range r.areas {
		if a.of == of && a.has(namespace) && !a.compared.Load() {
			return false
		}
	}
	return true
}

// inspect looks at one workload of a survey.
func (r *Reloader) inspect(kind Kind, object client.Object, first bool, followed map[string]map[id]bool) {
	in, err := r.observe(kind, object, nil)
	if err != nil {
		return
	}
	if _, ours := r.Words.PausedUntil(in.Annotations); ours && isPaused(object) {
		r.wake(paused(in.namespace, object.GetName()))
	}
	r.tellProblems(kind, object, in.Workload)
	if !r.Words.Follows(in.Workload) {
		return
	}
	asks := r.Words.Read(in.Workload)
	for _, s := range r.candidates(in) {
		container, ok := asks.Match(s.Source)
		if !ok {
			continue
		}
		if followed[in.namespace] == nil {
			followed[in.namespace] = map[id]bool{}
		}
		if first && r.isMissed(in, s, container) {
			r.tellMissed(referenceTo(kind, object), s)
		}
		r.baseline(in, s, container, first)
		if e, known := r.record.entry(in.namespace, s.id()); known && (s.Type != stakater.Secret || r.rules().shows(in, s.changeAt(r.Now()), container) == e.hash) {
			followed[in.namespace][s.id()] = true
		}
	}
}

// baseline puts the version of a source on record that a workload begins with. What its template
// shows to be missed is delivered if a user wants that.
func (r *Reloader) baseline(in observation, s *source, container int, first bool) {
	c := s.changeAt(r.Now())
	if first && r.DeliverMissed && r.isMissed(in, s, container) {
		c.only = map[string]bool{in.kind + "/" + in.name: true}
		r.note(in.namespace, c)
		return
	}
	if _, known := r.record.entry(in.namespace, s.id()); known || r.pending.has(in.namespace, s.id()) {
		return
	}
	if s.Type != stakater.Secret || r.rules().shows(in, c, container) == s.hash {
		r.record.put(in.namespace, s.id(), entry{hash: s.hash})
	}
}

// isMissed reports whether the template of a workload shows another version of a source than the
// current one.
func (r *Reloader) isMissed(in observation, s *source, container int) bool {
	shows := r.rules().shows(in, s.changeAt(r.Now()), container)
	return shows != "" && shows != s.hash && in.left == ""
}

// candidates are the sources that a workload may follow: those that its template references, and
// all others of a type that it lists by patterns.
func (r *Reloader) candidates(in observation) []*source {
	wanted := map[id]bool{}
	for _, ref := range podrefs.Named(&in.Template.Spec) {
		wanted[id{stakater.Type(strings.ToUpper(string(ref.Kind))), ref.Name}] = true
	}
	var found []*source
	for _, a := range r.areas {
		if !a.has(in.namespace) {
			continue
		}
		if a.of != stakater.SecretProviderClass && !r.Words.Lists(in.Workload, a.of) {
			for of := range wanted {
				if s, ok := a.mirror.Get(in.namespace, of.Name); ok && of.Type == a.of && !s.own {
					found = append(found, s)
				}
			}
			continue
		}
		all := newestOf(func(visit func(*source)) { a.mirror.EachIn(in.namespace, visit) })
		found = slices.AppendSeq(found, maps.Values(all[in.namespace]))
	}
	return found
}

// listed is how well each kind of workload can be listed and written.
type listed struct {
	mu sync.Mutex
	by map[string]mirror.Sync
	// refused are the writes that may not be done.
	refused map[string]error
}

func newListed() *listed { return &listed{by: map[string]mirror.Sync{}, refused: map[string]error{}} }

// note notes the result of a list, and reports it when it is another one than before.
func (l *listed) note(kind Kind, err error, report func(mirror.Sync)) {
	name := kind.ResourceName("")
	l.mu.Lock()
	before, known := l.by[name]
	now := mirror.Sync{Resource: name, Role: mirror.RoleWorkload, Synced: err == nil || known && before.Synced, Err: err}
	l.by[name] = now
	l.mu.Unlock()
	if !known || apierrors.ReasonForError(before.Err) != apierrors.ReasonForError(err) {
		report(now)
	}
}

// wrote notes whether something may be written. What may is not listed.
func (l *listed) wrote(name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, denied := access.Denial(err); !denied && apierrors.IsForbidden(err) {
		l.refused[name] = err
	} else if err == nil {
		delete(l.refused, name)
	}
}

// refusals are the writes that may not be done. The others are done nevertheless.
func (l *listed) refusals() []mirror.Sync {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []mirror.Sync
	for _, name := range slices.Sorted(maps.Keys(l.refused)) {
		all = append(all, mirror.Sync{Resource: name, Role: mirror.RoleSettings, Synced: true, Err: l.refused[name]})
	}
	return all
}

func (l *listed) status(kinds []Kind) []mirror.Sync {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]mirror.Sync, len(kinds))
	for i, kind := range kinds {
		all[i] = mirror.Sync{Resource: kind.ResourceName(""), Role: mirror.RoleWorkload}
		if s, known := l.by[all[i].Resource]; known {
			all[i] = s
		}
	}
	return all
}

func isNotInstalled(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// told remembers which warnings were given.
type told struct {
	mu sync.Mutex
	by map[types.UID]string
}

// mostTold bounds it. When it is full, warnings may be repeated.
const mostTold = 10000

func newTold() *told { return &told{by: map[types.UID]string{}} }

// isNew reports whether an object gets another warning than before.
func (t *told) isNew(object types.UID, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[object] == text {
		return false
	}
	if len(t.by) >= mostTold {
		clear(t.by)
	}
	t.by[object] = text
	return true
}

// tellProblems reports once which annotations of a workload have no effect.
func (r *Reloader) tellProblems(kind Kind, o client.Object, on stakater.Workload) {
	text := strings.Join(r.Words.Problems(on, kind.Kind.Kind), "; ")
	if text == "" || !r.told.isNew(o.GetUID(), text) {
		return
	}
	r.Tell(Event{About: referenceTo(kind, o), Reason: NotUnderstood, Warning: true, Note: text})
}

// tellMissed reports once that a change was missed, if it isn't delivered.
func (r *Reloader) tellMissed(about corev1.ObjectReference, s *source) {
	note := fmt.Sprintf("The pod template shows another version of '%s' of type '%s'. This change was missed before the first start; \"kubectl rollout restart\" loads it", s.Name, s.Type)
	if !r.DeliverMissed && r.told.isNew("missed/"+about.UID+"/"+types.UID(s.Type)+"/"+types.UID(s.Name), note) {
		r.Tell(Event{About: about, Source: s.Source, Reason: Missed, Warning: true, Note: note})
	}
}

// tellNative reports once that Lockstep's own controller follows a workload too.
func (r *Reloader) tellNative(about corev1.ObjectReference) {
	if r.told.isNew("native/"+about.UID, LeftToLockstep) {
		r.Tell(Event{About: about, Reason: LeftToLockstep, Note: "Lockstep's own controller follows this workload too, and has rolled it out since the change, so it isn't reloaded twice"})
	}
}
