package histories_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const quiet = 5 * time.Second

// inProcess is the world of the small server, with the clock of testing/synctest.
type inProcess struct {
	*agenda
	server  *server
	cluster controller
	kind    kube.Kind
	person  *person
	// actor carries actions out: the person, or an editor.
	actor interface {
		do(context.Context, histories.Action) error
	}
	process *process
	disk    disk
	began   time.Time
	// salt is part of every template digest from the next start on.
	salt string

	digests kube.Hashers
	known   []histories.Fact
	tells   bool
	trace   []string
	// rollouts is how many Lockstep has made, and waited how long after the last change of a
	// source it made the last one.
	rollouts int
	changed  time.Time
	waited   time.Duration
}

// controller is that of the workload.
type controller interface {
	see(writer string, old, now client.Object)
	// isObserved reports whether everything was done for the workload as it is.
	isObserved() bool
}

func newInProcess(h histories.History, tells bool) (*inProcess, error) {
	// The API server's times are a second coarse. A history that is played again, to be
	// reduced or traced, has to meet the same ones.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	s, a := newServer(), &agenda{random: rand.New(rand.NewPCG(h.Seed, 1))}
	w := &inProcess{agenda: a, server: s, cluster: &deployments{server: s, agenda: a, key: client.ObjectKey{Namespace: namespace, Name: testkit.Web}}, kind: kindFor(h), disk: newDisk(), digests: hashers(), tells: tells}
	switch {
	case h.Canary:
		w.cluster = &argoRollouts{server: s, agenda: a}
	case h.Stateful:
		w.cluster = &statefulSets{server: s, agenda: a}
	}
	w.person = newPerson(s.as("person"), namespace, w.kind)
	w.person.digests, w.actor = map[string]string{}, w.person
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
	w.process = start(&process{
		agenda: w.agenda, server: w.server, kind: w.kind, lent: w.person.lent, salt: w.salt, options: rollouts.Options{Quiet: quiet, MaxDelay: time.Minute, Workers: 1},
		records: newRecords(w.disk), began: w.began, cached: cached{digests: w.digests}, tells: w.tells, log: w.say,
	})
}

// say keeps what happened. A history that fails is played once more for that.
func (w *inProcess) say(text string) {
	if w.tells {
		w.trace = append(w.trace, time.Now().Format("15:04:05.000 ")+text)
	}
}

// note makes facts of writes.
func (w *inProcess) note(writer string, old, now client.Object) {
	o := now
	if o == nil {
		o = old
	}
	switch o.(type) {
	case *appsv1.ReplicaSet, *appsv1.ControllerRevision:
		return
	}
	f := factOf(o)
	f.Version, f.At = w.server.version, time.Now()
	if now == nil {
		f.Content, f.Held, f.Workload, f.Orphaned = "", false, nil, w.server.orphaning
	}
	f.Lockstep = writer == kube.FieldManager
	f.Early = f.Lockstep && !w.server.hasRevision(old)
	switch {
	case f.Lockstep:
		w.rollouts, w.waited = w.rollouts+1, f.At.Sub(w.changed)
	case f.Source != "":
		w.changed = f.At
	}
	if f.Workload != nil {
		f.Workload.Shows = showsOf(noted(o, settings.Inputs), w.person, w.digests)
	}
	rollout, isRollout := now.(*unstructured.Unstructured)
	if isRollout {
		addCanary(f.Workload, rollout, w.server.sets())
	}
	w.known = append(w.known, f)
	if !w.tells {
		return
	}
	if d := asDeployment(o); d != nil && now != nil {
		status := strconv.FormatInt(d.Status.ObservedGeneration, 10)
		if isRollout {
			status = fmt.Sprintf("%+v", statusOf(rollout))
		}
		w.say(fmt.Sprintf("  %d %s writes the workload: generation %s of %d, revision %d, edited %q, inputs %q, paused %t", w.server.version, writer, status, d.Generation, numberOf(d), d.Spec.Template.Annotations["edited"], d.Spec.Template.Annotations[settings.Inputs], d.Spec.Paused))
	} else {
		w.say(fmt.Sprintf("  %d %s writes %T %s: %q", w.server.version, writer, o, o.GetName(), f.Content))
	}
}

func (w *inProcess) do(a histories.Action) error {
	w.say(a.String())
	switch a.Verb {
	case histories.Kill:
		w.process.kill()
	case histories.Upgrade:
		w.process.kill()
		w.salt += "+"
	case histories.KillAfterPatch:
		w.process.armed = true
	case histories.LoseAnswer:
		w.process.loses = true
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
	case histories.Busy:
		w.process.busy = true
	case histories.Late:
		w.process.late = 2 * time.Second
	case histories.Later:
		w.pass(11 * time.Minute)
	case histories.Orphan:
		w.pass(2 * time.Second) // revisions tell their age by times that are a second coarse
	default: // the rest is a person's
	}
	// A template that is replaced before it has a revision leaves no trace of Lockstep's patch.
	w.passUntil(w.cluster.isObserved)
	if err := w.actor.do(context.Background(), a); err != nil {
		return err
	}
	w.passUntil(w.cluster.isObserved)
	w.pass(time.Duration(w.random.IntN(500)) * time.Millisecond)
	return nil
}

func (w *inProcess) settle() error {
	w.say("settle")
	w.process.busy, w.process.late = false, 0
	w.pass(3 * time.Minute)
	w.process.bookmarks()
	return nil
}

func (w *inProcess) isUp() bool { return !w.process.dead }

func (w *inProcess) sees() bool { return w.process.dead || w.process.sees() }

func (w *inProcess) facts() []histories.Fact {
	all := w.known
	w.known = nil
	return all
}

func (w *inProcess) eventually(try func() error) error { return try() }

func (w *inProcess) word() (histories.Word, error) {
	key := kube.Key{GroupKind: w.kind.GroupKind(), Namespace: namespace, Name: testkit.Web}
	entry, _ := w.process.Entry(key)
	return wordOf(w.process.last[key.Log()], entry, w.person, w.digests), nil
}

// TestInProcess plays 200 histories to the product's decisions. HISTORY_SEED=7 plays one,
// and HISTORY_SEED=1-5000 that many.
func TestInProcess(t *testing.T) {
	t.Parallel()
	playSeeds(t, seeds(t, 1, 200), histories.Options{Length: 25})
}

// TestCanaryInProcess plays 60 histories of a Rollout, with aborts of its canary.
func TestCanaryInProcess(t *testing.T) {
	t.Parallel()
	playSeeds(t, seeds(t, 1, 60), histories.Options{Length: 25, Canary: true})
}

// TestStatefulSetInProcess plays 60 histories of a StatefulSet.
func TestStatefulSetInProcess(t *testing.T) {
	t.Parallel()
	playSeeds(t, seeds(t, 1, 60), histories.Options{Length: 25, Stateful: true, Upgrades: true})
}

// TestUpgradesInProcess plays 30 histories in which the digest of templates changes, and answers of the API server
// are lost.
func TestUpgradesInProcess(t *testing.T) {
	t.Parallel()
	playSeeds(t, seeds(t, 1, 30), histories.Options{Length: 25, Upgrades: true, Losses: true})
}

func playSeeds(t *testing.T, seeds []uint64, o histories.Options) {
	t.Helper()
	rollouts := 0
	play := func(seed uint64) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rollouts += playInProcess(t, histories.New(seed, o))
			})
		})
	}
	for _, seed := range seeds {
		play(seed)
	}
	fresh(t, play)
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

// playInProcess plays a history. One that fails is reduced to what it takes to fail in that
// way.
func playInProcess(t *testing.T, h histories.History) (rollouts int) {
	t.Helper()
	m, _, err := playOnce(h, false)
	if err == nil {
		return m.Rollouts()
	}
	way := wayOf(err)
	h = histories.Reduce(h, func(h histories.History) bool {
		_, _, err := playOnce(h, false)
		return err != nil && wayOf(err) == way
	})
	_, trace, err := playOnce(h, true)
	t.Errorf("%v\n\nThe shortest history of seed %d (HISTORY_SEED=%d) that fails:\n%s\n\n%s", err, h.Seed, h.Seed, h, strings.Join(trace, "\n"))
	return 0
}

// wayOf is in which way a history fails: the first line of the error, without the position
// and the contents.
func wayOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	_, line, _ = strings.Cut(line, ":")
	return regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "")
}

// playOnce plays a history, and tells what happened if it is to.
func playOnce(h histories.History, tells bool) (*histories.Model, []string, error) {
	w, err := newInProcess(h, tells)
	if err != nil {
		return nil, nil, err
	}
	m, err := play(h, w)
	return m, w.trace, err
}
