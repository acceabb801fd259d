package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// edits is the world of a history that edits references. Its workload has pods.
type edits struct {
	*inProcess

	loads *histories.Loads
}

func newEdits(h histories.History, tells bool) (*edits, error) {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	s, a, loads := newServer(), &agenda{random: rand.New(rand.NewPCG(h.Seed, 3))}, histories.NewLoads()
	w := &edits{loads: loads, inProcess: &inProcess{agenda: a, server: s, kind: kindOfHistory(h.Kind), disk: newDisk(), digests: hashers(), tells: tells}}
	w.person = newPerson(s.as("person"), namespace, w.kind)
	w.person.lent = h.Kind == histories.Lent
	editor := newEditor(w.person, a)
	s.hasPods = true
	pods := &kubelets{server: s, agenda: a, kind: w.kind, loads: loads, noted: func() {}}
	w.actor, w.cluster = editor, w.controller(h.Kind, pods)
	s.written = append(s.written, w.cluster.see, pods.see, pods.heard, func(writer string, old, now client.Object) {
		if w.tells {
			w.tell(writer, old, now)
		}
		if w.process != nil {
			w.process.see(writer, old, now)
		}
	})
	if err := editor.begin(context.Background()); err != nil {
		return nil, err
	}
	w.pass(time.Minute)
	w.began = time.Now()
	w.start()
	return w, nil
}

// controller is that of the workload, which notes the numbers of pods.
func (w *edits) controller(kind histories.KindOf, pods *kubelets) controller {
	switch kind {
	case histories.StatefulSet:
		c := &statefulSets{server: w.server, agenda: w.agenda, counts: pods.count}
		pods.noted = func() { c.soonOnce(&c.queued, c.sync) }
		return c
	case histories.DaemonSet:
		c := &daemonSets{server: w.server, agenda: w.agenda, counts: pods.count}
		pods.noted = func() { c.soonOnce(&c.queued, c.sync) }
		return c
	case histories.OfArgo, histories.Lent:
		c := &argoRollouts{server: w.server, agenda: w.agenda, counts: pods.count}
		pods.noted = c.enqueue
		return c
	case histories.CronJob:
		return still{}
	default:
	}
	c := &deployments{server: w.server, agenda: w.agenda, key: client.ObjectKey{Namespace: namespace, Name: testkit.Web}}
	c.pods = func(d *appsv1.Deployment) {
		d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Replicas = pods.count(hashOf(d))
	}
	pods.noted = func() {
		if d := c.current(); d != nil && d.Status.ObservedGeneration == d.Generation {
			if c.pods(d); d.Status.String() != c.stored().Status.String() {
				c.updateStatus(d)
			}
		}
	}
	return c
}

// tell adds a write to the trace.
func (w *edits) tell(writer string, old, now client.Object) {
	o, what := now, "writes"
	if o == nil {
		o, what = old, "deletes"
	}
	text := fmt.Sprintf("  %d %s %s %T %s", w.server.version, writer, what, o, o.GetName())
	if data := dataOf(o); data != nil {
		text += fmt.Sprintf(" %v", data)
	} else if d := asDeployment(o); d != nil {
		text += fmt.Sprintf(": generation %d, revision %d, edited %q, %s, inputs %q, paused %t", d.Generation, numberOf(d), d.Spec.Template.Annotations["edited"], d.Spec.Template.Annotations[references], d.Spec.Template.Annotations[settings.Inputs], d.Spec.Paused)
	}
	w.say(text)
}

func (w *edits) step(a histories.Action) error {
	isEnd := a.Verb == histories.End
	switch {
	case (isEnd || a.Verb == histories.Settle) && w.process.dead:
		w.start()
		fallthrough
	case isEnd || a.Verb == histories.Settle:
		if err := w.settle(); err != nil {
			return err
		}
		w.process.wake(w.key()) // a second look reports what the first one recorded
		w.pass(time.Minute)
	case a.Verb == histories.Yield:
		w.process.kill()
		w.start()
		w.process.busy = true
	case a.Verb == histories.Start:
		w.process.busy = false
		fallthrough
	default:
		if err := w.do(a); err != nil {
			return err
		}
		w.pass(time.Duration(w.random.IntN(4)/3*w.random.IntN(5000)) * time.Millisecond)
	}
	if w.process.dead || !w.process.sees() || w.process.busy {
		w.loads.Unsee()
	}
	switch {
	case w.process.dead || !w.process.sees():
	case isEnd:
		w.loads.End(w.reason())
	case a.Verb == histories.Settle:
		w.loads.Settle(w.reason())
	}
	return w.loads.Broken()
}

// reason is that of the last decision.
func (w *edits) reason() string {
	return w.process.last[w.key().Log()]
}

func (w *edits) key() kube.Key {
	return kube.Key{GroupKind: w.kind.GroupKind(), Namespace: namespace, Name: testkit.Web}
}

// playEdits plays a history, and tells what happened if it is to.
func playEdits(h histories.History, tells bool) (loads *histories.Loads, trace []string, err error) {
	w, err := newEdits(h, tells)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if reason := recover(); reason != nil { // a panic is a failure that can be reduced, too
			loads, trace, err = w.loads, w.trace, fmt.Errorf("at a decision: panic: %v\n%s", reason, debug.Stack())
		}
	}()
	for i, a := range h.Actions {
		if err := w.step(a); err != nil {
			return w.loads, w.trace, fmt.Errorf("at %d, %s: %w", i, a, err)
		}
	}
	return w.loads, w.trace, nil
}

// playEdited plays a history. One that fails is reduced.
func playEdited(t *testing.T, h histories.History) *histories.Loads {
	t.Helper()
	loads, _, err := playEdits(h, false)
	if err == nil {
		return loads
	}
	way := wayOf(err)
	h = histories.Reduce(h, func(h histories.History) bool {
		_, _, err := playEdits(h, false)
		return err != nil && wayOf(err) == way
	})
	_, trace, err := playEdits(h, true)
	t.Errorf("%v\n\nThe shortest history of a %s and of seed %d (HISTORY_SEED=%d) that fails:\n%s\n\n%s", err, h.Kind, h.Seed, h.Seed, h, strings.Join(trace, "\n"))
	return loads
}

// TestEditsInProcess plays 20 histories of each kind of workload in which references, the annotation and sources change, to
// the product's decisions.
func TestEditsInProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range histories.Kinds() {
		t.Run(strings.ReplaceAll(string(kind), " ", ""), func(t *testing.T) {
			t.Parallel()
			playEditedSeeds(t, seeds(t, 41, 60), kind)
		})
	}
}

func playEditedSeeds(t *testing.T, seeds []uint64, kind histories.KindOf) {
	t.Helper()
	played, rollouts, watched, unseen, between := 0, 0, 0, 0, 0
	play := func(seed uint64) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loads := playEdited(t, editsOf(seed, kind))
				played, between = played+1, between+loads.Between
				rollouts, watched, unseen = rollouts+loads.Rollouts, watched+loads.Needless[0], unseen+loads.Needless[1]
			})
		})
	}
	for _, seed := range seeds {
		play(seed)
	}
	fresh(t, play)
	t.Logf("%d histories of a %s with %d rollouts by Lockstep. The pods had loaded everything already before %d of them while it saw everything, and before %d otherwise. At %d settlements pods ran what came and went", played, kind, rollouts, watched, unseen, between)
}

// editsOf is the history of a seed: that of an even one is touched.
func editsOf(seed uint64, kind histories.KindOf) histories.History {
	h := histories.NewReferences(seed, kind, 30)
	if seed%2 == 0 {
		return h.Touched()
	}
	return h
}
