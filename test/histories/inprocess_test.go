package histories_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
)

const quiet = 5 * time.Second

// inProcess is the world of the small server, with the clock of testing/synctest.
type inProcess struct {
	*agenda
	server  *server
	cluster *deployments
	person  *person
	process *process
	disk    map[kube.Key]string
	began   time.Time

	known []histories.Fact
	trace []string
}

func newInProcess(seed uint64) (*inProcess, error) {
	s, a := newServer(), &agenda{random: rand.New(rand.NewPCG(seed, 1))}
	w := &inProcess{agenda: a, server: s, cluster: &deployments{server: s, agenda: a}, disk: map[kube.Key]string{}}
	w.person = newPerson(s.as("person"), namespace)
	s.written = append(s.written, w.note, w.cluster.see, func(writer string, old, now client.Object) {
		if w.process != nil {
			w.process.see(writer, old, now)
		}
	})
	if err := w.person.begin(context.Background()); err != nil {
		return nil, err
	}
	w.pass(time.Minute)
	w.began = time.Now()
	w.start()
	return w, nil
}

func (w *inProcess) start() {
	w.process = start(&process{agenda: w.agenda, server: w.server, disk: w.disk, began: w.began, log: w.say})
}

// say keeps what happened, for whoever looks at a failure.
func (w *inProcess) say(text string) {
	w.trace = append(w.trace, time.Now().Format("15:04:05.000 ")+text)
}

// note makes facts of writes.
func (w *inProcess) note(writer string, old, now client.Object) {
	o := now
	if o == nil {
		o = old
	}
	d, isWorkload := o.(*appsv1.Deployment)
	if !isWorkload && !isSource(o) {
		return
	}
	f := factOf(o)
	f.Version, f.At = w.server.version, time.Now()
	if now == nil {
		f.Content, f.Held, f.Workload, f.Orphaned = "", false, nil, w.server.orphaning
	}
	f.Lockstep = writer == kube.FieldManager
	if f.Workload != nil {
		f.Workload.Shows = showsOf(d.Spec.Template.Annotations[settings.Inputs], w.person, hashers())
	}
	w.known = append(w.known, f)
	if isWorkload && now != nil {
		w.say(fmt.Sprintf("  %d %s writes the workload: generation %d of %d, revision %s, edited %q, inputs %q, paused %t", w.server.version, writer, d.Status.ObservedGeneration, d.Generation, d.Annotations[revisionKey], d.Spec.Template.Annotations["edited"], d.Spec.Template.Annotations[settings.Inputs], d.Spec.Paused))
	} else {
		w.say(fmt.Sprintf("  %d %s writes %T %s: %q", w.server.version, writer, o, o.GetName(), f.Content))
	}
}

func (w *inProcess) do(a histories.Action) error {
	w.say(a.String())
	switch a.Verb { //nolint:exhaustive // the rest is a person's
	case histories.Kill:
		w.process.kill()
	case histories.KillAfterPatch:
		w.process.armed = true
	case histories.Start:
		w.process.armed = false
		if w.process.dead {
			w.start()
		}
	case histories.Gap:
		w.process.breakWatches(w.random.IntN(2) == 0)
	case histories.Look:
		w.process.look()
		w.passUntil(w.sees)
	case histories.Later:
		w.pass(11 * time.Minute)
	case histories.Orphan:
		w.pass(2 * time.Second) // revisions tell their age by times that are a second coarse
	}
	// A template that is replaced before it has a revision leaves no trace of Lockstep's patch.
	w.passUntil(w.cluster.isObserved)
	if err := w.person.do(context.Background(), a); err != nil {
		return err
	}
	w.passUntil(w.cluster.isObserved)
	w.pass(time.Duration(w.random.IntN(500)) * time.Millisecond)
	return nil
}

func (w *inProcess) settle() error {
	w.say("settle")
	w.pass(3 * time.Minute)
	return nil
}

func (w *inProcess) isUp() bool { return !w.process.dead }

func (w *inProcess) sees() bool {
	if w.process.dead {
		return true
	}
	for _, watch := range w.process.watches {
		if watch.broken {
			return false
		}
	}
	return true
}

func (w *inProcess) facts() []histories.Fact {
	all := w.known
	w.known = nil
	return all
}

func (w *inProcess) eventually(try func() error) error { return try() }

func (w *inProcess) word() (histories.Word, error) {
	entry, _ := w.process.Entry(key())
	return wordOf(w.process.last, entry, w.person, hashers()), nil
}

// TestInProcess plays 200 histories to the product's decisions. HISTORY_SEED=7 plays one,
// and HISTORY_SEED=1-5000 that many.
func TestInProcess(t *testing.T) {
	t.Parallel()
	rollouts, seeds := 0, seeds(t, 1, 200)
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rollouts += playInProcess(t, histories.New(seed, histories.Options{Length: 25}))
			})
		})
	}
	t.Logf("%d histories with %d rollouts by Lockstep", len(seeds), rollouts)
}

// seeds are those of HISTORY_SEED, or from the first to the last given.
func seeds(t *testing.T, first, last uint64) []uint64 {
	t.Helper()
	if text := os.Getenv("HISTORY_SEED"); text != "" {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		var problems [2]error
		first, problems[0] = strconv.ParseUint(from, 10, 64)
		last, problems[1] = strconv.ParseUint(to, 10, 64)
		if err := errors.Join(problems[:]...); err != nil {
			t.Fatalf("HISTORY_SEED=%s: want a seed such as 7, or seeds such as 1-5000: %v", text, err)
		}
	}
	var all []uint64
	for seed := first; seed <= last; seed++ {
		all = append(all, seed)
	}
	return all
}

// playInProcess plays a history. One that fails is reduced to what it takes to fail.
func playInProcess(t *testing.T, h histories.History) (rollouts int) {
	t.Helper()
	m, _, err := playOnce(h)
	if err == nil {
		return m.Rollouts()
	}
	h = histories.Reduce(h, func(h histories.History) bool {
		_, _, err := playOnce(h)
		return err != nil
	})
	_, trace, err := playOnce(h)
	t.Errorf("%v\n\nThe shortest history of seed %d (HISTORY_SEED=%d) that fails:\n%s\n\n%s", err, h.Seed, h.Seed, h, strings.Join(trace, "\n"))
	return 0
}

func playOnce(h histories.History) (*histories.Model, []string, error) {
	w, err := newInProcess(h.Seed)
	if err != nil {
		return nil, nil, err
	}
	m, err := play(h, w)
	return m, w.trace, err
}
