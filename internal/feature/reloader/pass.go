package reloader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// tries is how often a workload that another writer changes is decided on again at once.
const tries = 5

// Reconcile implements reconcile.TypedReconciler.
func (r *Reloader) Reconcile(ctx context.Context, k kube.Key) (ctrl.Result, error) {
	r.passes.RLock()
	defer r.passes.RUnlock()
	if k.Name != "" {
		wait, err := r.resume(ctx, k)
		return ctrl.Result{RequeueAfter: wait}, err
	}
	p := &pass{Reloader: r, namespace: k.Namespace, now: r.Now(), changes: r.pending.in(k.Namespace), wait: r.MaxDelay}
	if !p.isReady() {
		return ctrl.Result{RequeueAfter: p.wait}, nil
	}
	p.readClasses(ctx)
	p.list(ctx)
	p.write(ctx)
	return p.end()
}

// pass delivers the changes of a namespace to its workloads.
type pass struct {
	*Reloader
	namespace string
	now       time.Time
	changes   []*change
	tasks     []task

	mu sync.Mutex
	// wait is how long until the next pass, if something waits.
	wait     time.Duration
	waits    bool
	problems []error
	// owed are the workloads that lack a change.
	owed map[id][]string
	// concerns are the changes that concern a workload, shown those that a template shows, and unread those of classes
	// that can't be read.
	concerns, shown, unread map[id]bool
	// running are the CronJobs with a Job that hasn't finished.
	running map[types.UID]bool
}

// task is a workload that is to be written.
type task struct {
	kind   Kind
	about  corev1.ObjectReference
	due    []due
	action action
}

// name is the workload in the record.
func (t task) name() string { return t.about.Kind + "/" + t.about.Name }

func (p *pass) isReady() bool {
	if len(p.changes) == 0 {
		p.wait = 0
		return false
	}
	for _, c := range p.changes {
		p.wait = min(p.wait, c.waits(p.now, p.Quiet, p.MaxDelay))
	}
	p.owed, p.concerns, p.shown, p.unread, p.running = map[id][]string{}, map[id]bool{}, map[id]bool{}, map[id]bool{}, map[types.UID]bool{}
	return p.wait <= 0
}

// readClasses finds out which changed classes are ignored or match. One that doesn't exist has no annotations. The change
// of one that can't be read waits: the class may be ignored.
func (p *pass) readClasses(ctx context.Context) {
	for _, c := range p.changes {
		if c.Type != stakater.SecretProviderClass {
			continue
		}
		o := newUnstructured(Class())
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: c.Name}, o)
		if err != nil && !isNotInstalled(err) {
			p.unread[c.id()] = true
			p.problems = append(p.problems, fmt.Errorf("read %s %s/%s: %w", c.Type, p.namespace, c.Name, err))
			continue
		}
		c.Source = p.Words.Source(c.Type, c.Name, o.GetAnnotations())
	}
}

// readable are the changes that can be decided on.
func (p *pass) readable() []*change {
	return slices.DeleteFunc(slices.Clone(p.changes), func(c *change) bool { return p.unread[c.id()] })
}

// list decides on all workloads of the namespace. A kind that can't be listed doesn't affect the
// others; the changes wait for it.
func (p *pass) list(ctx context.Context) {
	for _, kind := range p.kinds {
		n := 0
		err := pages.Each(ctx, p.Client, kind.NewList(), func(o client.Object) bool {
			n++
			p.look(kind, o)
			return true
		}, client.InNamespace(p.namespace))
		p.Metrics.scanned(kind.Kind.Kind, n)
		p.listed.note(kind, err, p.Report)
		p.oweUnread(kind.Kind.Kind)
		switch {
		case err == nil, isNotInstalled(err):
		case apierrors.IsForbidden(err):
			p.wait, p.waits = soonest(p.waits, p.wait, surveyEvery), true
			p.oweAll(kind.Kind.Kind)
		default:
			p.problems = append(p.problems, fmt.Errorf("list %s: %w", kind.ResourceName(p.namespace), err))
			p.oweAll(kind.Kind.Kind)
		}
	}
}

// look decides on one workload.
func (p *pass) look(kind Kind, o client.Object) {
	if owner, runs := runsFor(o); runs {
		p.running[owner] = true
	}
	if t, ok := p.taskFor(kind, o); ok {
		p.tasks = append(p.tasks, t)
	}
}

// taskFor is what has to be written to a workload, if anything has to be now.
func (p *pass) taskFor(kind Kind, o client.Object) (task, bool) {
	in, err := p.observe(kind, o, p.readable())
	if err != nil {
		return task{}, false // It has no template.
	}
	p.tellProblems(kind, o, in.Workload)
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.rules().decide(in)
	for _, c := range d.shows {
		p.concerns[c], p.shown[c] = true, true
		p.Metrics.skipped(notUpdated)
	}
	for _, d := range d.due {
		p.concerns[d.id()] = true
	}
	if len(d.native) > 0 {
		p.tellNative(referenceTo(kind, o))
	}
	if len(d.due) == 0 {
		return task{}, false
	}
	p.Metrics.matched(kind.Kind.Kind)
	if d.wait > 0 {
		p.wait, p.waits = soonest(p.waits, p.wait, d.wait), true
		p.owe(in.kind+"/"+in.name, d.due)
		return task{}, false
	}
	t := task{kind: kind, about: referenceTo(kind, o), due: d.due}
	t.action, err = p.actionFor(kind, o, in, d.due)
	if err != nil {
		p.problems = append(p.problems, err)
		p.owe(in.kind+"/"+in.name, d.due)
		return task{}, false
	}
	return t, true
}

// observe reads what a decision needs.
func (r *Reloader) observe(kind Kind, object client.Object, changes []*change) (observation, error) {
	o, err := kind.Read(object)
	if err != nil {
		return observation{}, err
	}
	template, err := kind.PodTemplate(o)
	if err != nil {
		return observation{}, err
	}
	return observation{
		Workload: stakater.Workload{Annotations: o.GetAnnotations(), Template: template},
		uid:      o.GetUID(), namespace: o.GetNamespace(), kind: kind.Kind.Kind, name: o.GetName(), manner: kind.manner,
		created: o.GetCreationTimestamp().Time, nativeAt: kube.RolledOutAt(o), templateAt: kube.TemplateWriter(o).At, shown: kube.ShownIn(template), left: r.leaves(o), changes: changes, now: r.Now(),
	}, nil
}

func (r *Reloader) rules() rules {
	return rules{words: r.Words, strategy: r.Strategy, quiet: r.Quiet, maxDelay: r.MaxDelay}
}

// write does what is to be done, several workloads at a time.
func (p *pass) write(ctx context.Context) {
	slots := make(chan struct{}, writes)
	var running sync.WaitGroup
	for _, t := range p.tasks {
		if t.action.alone && p.running[t.about.UID] {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			p.deliver(ctx, t)
		})
	}
	running.Wait()
}

// deliver writes one workload. When another writer was faster, the workload is read and decided
// on again.
func (p *pass) deliver(ctx context.Context, t task) {
	begun := p.Now()
	var err error
	for range tries {
		if err = t.action.do(ctx); !apierrors.IsConflict(err) {
			break
		}
		o := t.kind.NewObject()
		if unread := p.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: t.about.Name}, o); unread != nil {
			err = unread
			break
		}
		again, ok := p.taskFor(t.kind, o)
		if !ok {
			return
		}
		t = again
	}
	if apierrors.IsNotFound(err) {
		return // It is gone.
	}
	p.listed.wrote("write "+t.kind.ResourceName(""), err)
	took := p.Now().Sub(begun)
	p.Metrics.acted(t.kind.Kind.Kind, p.namespace, err == nil, took)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.owe(t.name(), t.due)
		p.problems = append(p.problems, fmt.Errorf("reload %s %s/%s: %w", t.about.Kind, p.namespace, t.about.Name, err))
	} else {
		for _, d := range p.shownBy(t) {
			p.shown[d.id()] = true
		}
	}
	for _, d := range t.due {
		p.note(t, d, err)
	}
	if t.action.paused {
		p.wake(paused(p.namespace, t.about.Name))
	}
}

// note notes and reports how one change reached a workload.
func (p *pass) note(t task, d due, err error) {
	e := Event{About: t.about, Source: d.Source, Reason: Reloaded}
	if err == nil {
		d.has[t.about.UID] = true
		delete(d.failed, t.about.UID)
		e.Note = fmt.Sprintf("Changes detected in '%s' of type '%s' in namespace '%s': reloaded '%s' of type '%s' in namespace '%s'",
			d.Name, d.Type, p.namespace, t.about.Name, t.about.Kind, p.namespace)
		p.Tell(e)
		return
	}
	e.Reason, e.Warning = ReloadFail, true
	then := "and Lockstep tries again"
	if errors.Is(err, errGone) {
		then = "and you have to create it again"
	}
	e.Note = fmt.Sprintf("Changes detected in '%s' of type '%s' in namespace '%s', but '%s' of type '%s' in namespace '%s' can't be reloaded, %s: %v",
		d.Name, d.Type, p.namespace, t.about.Name, t.about.Kind, p.namespace, then, err)
	if d.failed[t.about.UID] != e.Note {
		d.failed[t.about.UID] = e.Note
		p.Tell(e)
	}
}

// owe notes that a workload lacks changes.
func (p *pass) owe(name string, all []due) {
	for _, d := range all {
		p.owed[d.id()] = append(p.owed[d.id()], name)
	}
}

// oweAll notes that workloads of a kind may lack all changes.
func (p *pass) oweAll(kind string) {
	for _, c := range p.changes {
		p.concerns[c.id()] = true
		p.owed[c.id()] = append(p.owed[c.id()], allOf(kind))
	}
}

// oweUnread notes that workloads of a kind may lack the changes of classes that can't be read.
func (p *pass) oweUnread(kind string) {
	for c := range p.unread {
		p.concerns[c] = true
		p.owed[c] = append(p.owed[c], allOf(kind))
	}
}

func soonest(waits bool, a, b time.Duration) time.Duration {
	if !waits {
		return b
	}
	return min(a, b)
}

// end settles the changes that all workloads have, and remembers who lacks the others.
func (p *pass) end() (ctrl.Result, error) {
	for _, c := range p.changes {
		if wait := c.waits(p.now, p.Quiet, p.MaxDelay); wait > 0 {
			p.wait, p.waits = soonest(p.waits, p.wait, wait), true
			continue
		}
		if !c.tried {
			p.Metrics.waited(p.now.Sub(c.first))
		}
		done := len(p.owed[c.id()]) == 0
		if !p.pending.settle(p.namespace, c, done) && done {
			p.wait, p.waits = 0, true // It changed meanwhile.
			continue
		}
		p.remember(c)
		if done || len(p.problems) > 0 {
			p.Metrics.processed(c.Type, done, p.Now().Sub(c.first))
		}
	}
	p.Metrics.queued(p.pending.size())
	if len(p.problems) > 0 {
		p.Metrics.retried()
		p.Metrics.failed("handler_error")
		sorting.By(p.problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		p.report(errors.Join(p.problems...))
		p.wait, p.waits = soonest(p.waits, p.wait, p.pauses.When(inNamespace(p.namespace))), true
	} else {
		p.pauses.Forget(inNamespace(p.namespace))
	}
	if p.waits {
		return ctrl.Result{RequeueAfter: max(p.wait, time.Millisecond)}, nil
	}
	return ctrl.Result{}, nil
}

// report logs what fails, at the default level when it is something else than before.
func (p *pass) report(err error) {
	if p.told.isNew(types.UID("namespace/"+p.namespace), err.Error()) {
		p.Log.Error(err, "not everything could be reloaded; Lockstep tries again", "namespace", p.namespace)
	}
}

// remember puts a change on record. Of a Secret, only what a template shows anyway is written.
func (p *pass) remember(c *change) {
	switch {
	case c.event == deleted || !p.concerns[c.id()]:
		p.record.forget(p.namespace, c.id())
	case c.Type != stakater.Secret || p.shown[c.id()]:
		p.record.put(p.namespace, c.id(), entry{hash: c.hash, owed: p.owed[c.id()]})
	default:
		p.record.forget(p.namespace, c.id())
	}
}

func referenceTo(kind Kind, o client.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}
