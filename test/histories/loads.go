package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Loads judges a history by what the pods have loaded, whatever the other rules say: when
// Lockstep has decided on everything, pods that run old content are pending or reported.
type Loads struct {
	sources  map[string]Data
	workload *Followed
	// stopped is when the workload was last put on hold or paused, and was neither before.
	stopped time.Time
	pods    map[string]*loaded
	// unseen is true while Lockstep missed something since the last settlement, and accepting when
	// a user released the workload since then.
	unseen, accepting bool

	// Rollouts counts the rollouts of Lockstep, and Needless those of workloads whose pods
	// had already loaded the current content: first those with Lockstep up and watching.
	Rollouts int
	Needless [2]int
	// Between counts the settlements at which a pod runs a content that came and went between two
	// of them, while Lockstep saw everything and no template was written: Lockstep doesn't know when
	// pods start.
	Between int
	broken  error

	// loads counts what pods have read. settled is the last settlement, and written the last write of
	// each template since then.
	loads   int
	settled moment
	written map[string]moment
}

// moment is when something happened: after how many loads, and what the sources were.
type moment struct {
	loads   int
	sources map[string]Data
}

// Followed is the part of a workload that matters to its pods.
type Followed struct {
	// Template identifies the template of the workload, and References are its own.
	Template   string
	References []Reference
	// Annotation is the value of the annotation that makes Lockstep follow it, empty without one.
	Annotation   string
	Held, Paused bool
	Release      string
	// ByHand is true when its controller doesn't replace pods by itself, Repeats when it keeps
	// starting new ones.
	ByHand, Repeats bool
	// Borrows is true when it uses the template of another object.
	Borrows bool
}

// loaded is a pod, and what it has loaded in each place so far.
type loaded struct {
	template   string
	references []Reference
	contents   map[Reference]string
	// at counts the loads up to each of these, and from is the last settlement, or the last write of
	// its template that came later and before the pod.
	at   map[Reference]int
	from moment
	runs bool
	// abandoned is true when its controller stopped replacing it in the middle of a rollout.
	abandoned bool
}

// NewLoads returns the judge of a history.
func NewLoads() *Loads {
	return &Loads{sources: map[string]Data{}, pods: map[string]*loaded{}, written: map[string]moment{}}
}

// Broken is the first rule that Lockstep has broken.
func (l *Loads) Broken() error { return l.broken }

func (l *Loads) fail(format string, args ...any) {
	if l.broken == nil {
		l.broken = fmt.Errorf(format, args...)
	}
}

// Unsee records that Lockstep may miss what follows.
func (l *Loads) Unsee() {
	if !l.unseen {
		l.leave() // it came and went before
	}
	l.unseen = true
}

// Write records the content of a source, nil when it was deleted.
func (l *Loads) Write(source string, data Data) {
	l.sources[source] = data
}

// Create records a pod of a template.
func (l *Loads) Create(pod, template string, references []Reference) {
	from, since := l.written[template]
	if !since {
		from = l.settled
	}
	l.pods[pod] = &loaded{template: template, references: references, contents: map[Reference]string{}, at: map[Reference]int{}, from: from}
}

// Delete records that a pod is gone.
func (l *Loads) Delete(pod string) { delete(l.pods, pod) }

// Load reads the places of a pod, as a kubelet does at one moment. It reports false when the pod
// can't go on without one of them.
func (l *Loads) Load(pod string, places ...Place) bool {
	p := l.pods[pod]
	var now []Reference
	for _, r := range p.references {
		if slices.Contains(places, r.Place) {
			now = append(now, r)
		}
	}
	if slices.ContainsFunc(now, func(r Reference) bool { return !l.sources[r.Source].canStart(r) }) {
		return false
	}
	for _, r := range now {
		l.load(p, r)
	}
	return true
}

func (l *Loads) load(p *loaded, r Reference) {
	l.loads++
	p.contents[r], p.at[r] = l.sources[r.Source].read(r), l.loads
}

// Run records that a pod's application runs. It reads the listed sources by itself.
func (l *Loads) Run(pod string) {
	p := l.pods[pod]
	p.runs = true
	for source := range l.sources {
		l.load(p, Reference{Place: Listed, Source: source})
	}
}

// Workload records a write of the workload.
func (l *Loads) Workload(now Followed, byLockstep bool) {
	old := l.workload
	l.workload = &now
	if old == nil || old.Template != now.Template {
		l.written[now.Template] = l.now()
	}
	if old == nil {
		return
	}
	if byLockstep {
		l.rollout(*old)
	}
	if (now.Held || now.Paused) && !old.Held && !old.Paused {
		l.stopped = time.Now()
	}
	if now.ByHand && !old.ByHand {
		l.abandon(now.Template)
	}
	l.accepting = l.accepting || old.Release != now.Release
	for source := range l.sources {
		if now.followsNow(source) && !old.followsNow(source) {
			l.accept(source)
		}
	}
}

// abandon: a rollout that OnDelete interrupts leaves pods that count as replaced.
func (l *Loads) abandon(template string) {
	for _, p := range l.pods {
		p.abandoned = p.template != template
	}
}

func (l *Loads) now() moment { return moment{loads: l.loads, sources: maps.Clone(l.sources)} }

// followsNow reports whether Lockstep follows a source because of the template or the annotation.
func (w Followed) followsNow(source string) bool {
	followed, listed := follows(w.Annotation, source)
	return listed || followed && w.names(source)
}

func (w Followed) names(source string) bool {
	return slices.ContainsFunc(w.References, func(r Reference) bool { return r.Source == source })
}

// accept: what runs now is the baseline of a source that begins to be followed.
func (l *Loads) accept(source string) {
	for _, p := range l.pods {
		for r := range p.contents {
			if r.Source == source {
				p.contents[r] = l.sources[source].read(r)
			}
		}
	}
}

// rollout: Lockstep has rolled out the workload.
func (l *Loads) rollout(old Followed) {
	l.Rollouts++
	switch {
	case old.Repeats:
		l.fail("Lockstep changed the template of a workload that keeps starting pods:\n%s", l)
	case old.Borrows && (l.unseen || time.Since(l.stopped) < time.Second): // the precondition of the patch is about the other object
	case old.Held, old.Paused:
		l.fail("Lockstep rolled out a workload that was held=%t, paused=%t:\n%s", old.Held, old.Paused, l)
	}
	if slices.ContainsFunc(slices.Collect(maps.Values(l.pods)), func(p *loaded) bool { return p.template == old.Template }) && len(l.old(old)) == 0 {
		kind := 0
		if l.unseen {
			kind = 1
		}
		l.Needless[kind]++
	}
}

// old describes what pods of the template have loaded that has changed since. A source or key that
// is required and doesn't exist doesn't count: new pods couldn't start. Pods that their controller
// leaves alone count as far as the template still names the source.
func (l *Loads) old(w Followed) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.pods)) {
		p := l.pods[name]
		if p.template != w.Template && (!w.ByHand || p.abandoned) {
			continue
		}
		for r, content := range p.contents {
			now := l.sources[r.Source]
			if now != nil && content != now.read(r) && now.canStart(r) && w.uses(p, r) && !l.cameAndWent(p, r) {
				all = append(all, fmt.Sprintf("%s runs %s = %q, and it is %q", name, r, content, now.read(r)))
			}
		}
	}
	slices.Sort(all)
	return all
}

// cameAndWent reports whether the pod loaded a content that came after its template and the last
// settlement, and has gone back, with Lockstep watching.
func (l *Loads) cameAndWent(p *loaded, r Reference) bool {
	before, wasThere := p.from.sources[r.Source]
	return wasThere && l.settled.sources != nil && !l.unseen && p.at[r] > p.from.loads && before.read(r) == l.sources[r.Source].read(r)
}

// leave accepts what came and went.
func (l *Loads) leave() {
	left := false
	for _, p := range l.pods {
		for r, content := range p.contents {
			if now := l.sources[r.Source].read(r); content != now && l.cameAndWent(p, r) {
				p.contents[r], left = now, true
			}
		}
	}
	if left {
		l.Between++
	}
}

// uses reports whether Lockstep follows a place of a pod of the workload: those in the template,
// and the listed sources that the template doesn't name.
func (w Followed) uses(p *loaded, r Reference) bool {
	followed, listed := follows(w.Annotation, r.Source)
	if r.Place != Listed {
		return followed && (p.template == w.Template || w.names(r.Source))
	}
	return listed && !slices.ContainsFunc(p.references, func(other Reference) bool { return other.Source == r.Source })
}

// reports are the reasons with which Lockstep reports that something is due, and why it waits.
func reports(reason string) bool {
	return slices.Contains([]string{reasonHeld, reasonUndone, reasonPaused, reasonMissing, "AwaitsPods", "InvalidAnnotation", "NotFollowed"}, reason)
}

// Settle compares the reason of Lockstep's last decision with what pods run.
func (l *Loads) Settle(reason string) {
	defer func() {
		l.leave()
		l.unseen, l.accepting, l.settled, l.written = false, false, l.now(), map[string]moment{}
		for _, p := range l.pods {
			p.from = l.settled
		}
	}()
	if l.workload == nil || l.workload.Repeats || reports(reason) {
		return
	}
	old := l.old(*l.workload)
	if len(old) > 0 && l.accepting {
		for source := range l.sources {
			l.accept(source)
		}
		return
	}
	if len(old) > 0 {
		l.fail("pods run old content, and Lockstep says %s:\n  %s\n%s", reason, strings.Join(old, "\n  "), l)
	}
}

// End is the last settlement: nothing holds the workload back, and everything was released.
func (l *Loads) End(reason string) {
	if l.Settle(reason); l.workload.Repeats || reason == reasonMissing {
		return
	}
	if old := l.old(*l.workload); len(old) > 0 || reports(reason) && reason != "NotFollowed" {
		l.fail("nothing is left to wait for, and Lockstep says %s:\n  %s\n%s", reason, strings.Join(old, "\n  "), l)
	}
}

// String is the judge's state, for analysing a failure.
func (l *Loads) String() string {
	var b strings.Builder
	if w := l.workload; w != nil {
		fmt.Fprintf(&b, "  workload: reload %q, held=%t, paused=%t, %v\n", w.Annotation, w.Held, w.Paused, w.References)
	}
	for _, name := range slices.Sorted(maps.Keys(l.sources)) {
		fmt.Fprintf(&b, "  %s is %v\n", name, l.sources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(l.pods)) {
		p := l.pods[name]
		fmt.Fprintf(&b, "  %s of the template: %t, runs: %t, %v\n", name, l.workload != nil && p.template == l.workload.Template, p.runs, p.contents)
	}
	return b.String()
}
