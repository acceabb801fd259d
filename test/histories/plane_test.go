package histories_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// onPlane is the world of a real control plane and the built controller.
type onPlane struct {
	*testkit.World
	t          *testing.T
	witness    *testkit.Witness
	person     *person
	writes     *writes
	line       *testkit.Line
	through    string // the kubeconfig that goes through the line
	cut        bool
	turns      int
	controller *testkit.Controller
}

// newOnPlane makes the workload and starts Lockstep.
func newOnPlane(t *testing.T) *onPlane {
	t.Helper()
	w := &onPlane{World: testkit.NewWorld(t), t: t}
	w.writes = newWrites(t, w.World)
	w.person = newPerson(w.Client, w.Namespace, false)
	w.witness = w.NewWitness(t)
	if err := w.person.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitObserved()
	w.line, w.through = testkit.NewLine(t, w.Cluster.Kubeconfig(), w.Cluster.Server())
	w.start()
	return w
}

func (w *onPlane) start() {
	w.t.Helper()
	w.controller = w.StartControllerAs(w.t, w.through, "--quiet", testkit.Quiet, "--log-level", "debug")
	w.controller.AwaitReady(w.t, true)
	w.witness.AwaitKnown(w.t)
}

func (w *onPlane) do(a histories.Action) error {
	w.t.Helper()
	w.awaitObserved()
	switch a.Verb { //nolint:exhaustive // the rest is a person's
	case histories.Kill:
		w.writes.arm(nil)
		w.kill()
	case histories.KillAfterPatch:
		w.writes.arm(w.controller)
	case histories.Start:
		w.writes.arm(nil)
		if !w.isUp() {
			w.mend()
			w.start()
		}
	case histories.Gap:
		w.cut = w.isUp()
		if w.cut {
			w.line.Cut()
		}
	case histories.Look:
		w.mend()
		if w.isUp() {
			w.witness.Pass(w.t)
		}
	case histories.Orphan:
		w.awaitLaterSecond() // revisions tell their age by times that are a second coarse
	}
	w.writes.orphaning(a.Verb == histories.Orphan)
	if err := w.person.do(w.t.Context(), a); err != nil {
		return err
	}
	if a.Verb == histories.Orphan || a.Verb == histories.Delete {
		w.awaitGone()
	}
	w.awaitObserved()
	return nil
}

func (w *onPlane) mend() {
	w.line.Mend()
	w.cut = false
}

func (w *onPlane) kill() {
	if w.isUp() {
		w.controller.Signal(w.t, syscall.SIGKILL)
		<-w.controller.Done()
	}
}

// settle lets the witness pass. Lockstep that is to be killed at its next patch is killed
// at one for the witness at the latest.
func (w *onPlane) settle() error {
	w.t.Helper()
	if !w.writes.isArmed() {
		w.witness.Pass(w.t)
		return nil
	}
	w.turns++
	w.SetConfig(w.t, "witness", "key", fmt.Sprintf("armed %d", w.turns))
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) { return !w.isUp(), "Lockstep has patched nothing" })
	w.awaitObserved()
	return nil
}

func (w *onPlane) isUp() bool {
	select {
	case <-w.controller.Done():
		return false
	default:
		return true
	}
}

func (w *onPlane) sees() bool { return !w.cut }

// deployment is the workload, nil when there is none.
func (w *onPlane) deployment() *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: testkit.Web}, d)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return d
}

func (w *onPlane) awaitGone() {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) { return w.deployment() == nil, "the workload is still there" })
}

// awaitObserved waits until the Deployment controller has done everything for the workload
// as it is: it has noted the generation, and then the number of the revision.
func (w *onPlane) awaitObserved() {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		d := w.deployment()
		if d == nil {
			return true, ""
		}
		if d.Status.ObservedGeneration < d.Generation {
			return false, fmt.Sprintf("generation %d is not observed, only %d", d.Generation, d.Status.ObservedGeneration)
		}
		sets := &appsv1.ReplicaSetList{}
		if err := w.Client.List(w.t.Context(), sets, client.InNamespace(w.Namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
			w.t.Fatal(err)
		}
		for _, rs := range sets.Items {
			if templateText(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: rs.Spec.Template}}) == templateText(d) {
				return numberOf(&rs) == numberOf(d), fmt.Sprintf("the revision has number %d, the workload %d", numberOf(&rs), numberOf(d))
			}
		}
		return d.Spec.Paused, "the template has no revision"
	})
}

// awaitLaterSecond waits until the API server's times tell what comes next from what was.
func (w *onPlane) awaitLaterSecond() {
	w.t.Helper()
	made := func() metav1.Time {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "clock-", Namespace: w.Own}}
		if err := w.Client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
		return o.CreationTimestamp
	}
	first := made()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) { return made().After(first.Time), "the second is not over" })
}

// facts are complete when the watches have shown each object as it is.
func (w *onPlane) facts() []histories.Fact {
	w.t.Helper()
	for _, o := range []client.Object{&appsv1.Deployment{}, w.person.source(histories.ConfigMap, ""), w.person.source(histories.Secret, "")} {
		name := cmp.Or(o.GetName(), testkit.Web)
		labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
			err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, o)
			if client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
			want := ""
			if err == nil {
				want = o.GetResourceVersion()
			}
			return w.writes.hasSeen(nameOf(o, name), want), fmt.Sprintf("the watch has not shown %s at %q", name, want)
		})
	}
	all, digests := w.writes.take(), w.digests()
	for _, f := range all {
		if f.Workload != nil {
			f.Workload.Shows = showsOf(w.writes.text(f.Workload), w.person, digests)
		}
	}
	return all
}

// digests are made with the key of the installation, once there is one.
func (w *onPlane) digests() kube.Hashers {
	w.t.Helper()
	key, err := access.ReadInstallationKey(w.t.Context(), w.Client, w.Own, "lockstep-installation-key")
	if err != nil {
		w.t.Fatal(err)
	}
	return kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{
		input.KindConfigMap: {}, input.KindSecret: fingerprint.NewKeyedHasher(key),
	}}
}

var errNotSaid = errors.New("the controller has not decided on the workload")

func (w *onPlane) word() (histories.Word, error) {
	w.t.Helper()
	decided := regexp.MustCompile(`(?m)decided.*workload=Deployment/`+w.Namespace+`/web .*reason=(\w+)`).FindAllStringSubmatch(w.controller.Stderr(), -1)
	text := w.Record(w.t, testkit.Web)
	if len(decided) == 0 || text == "" && w.deployment() != nil {
		return histories.Word{}, errNotSaid
	}
	entry := record.Entry{}
	if text != "" {
		var err error
		if entry, err = record.Decode(text); err != nil {
			return histories.Word{}, err
		}
	}
	return wordOf(decided[len(decided)-1][1], entry, w.person, w.digests()), nil
}

func (w *onPlane) eventually(try func() error) error {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		err := try()
		return err == nil, fmt.Sprint(err)
	})
	return nil
}

// writes are what watches show of the workload and its sources.
type writes struct {
	t *testing.T

	mu    sync.Mutex
	facts []histories.Fact
	// seen is the last resource version of each object, empty when it is gone, and shown
	// what Lockstep wrote into the template of each workload.
	seen, shown map[string]string
	texts       map[*histories.Workload]string
	orphan      bool
	victim      *testkit.Controller
}

func newWrites(t *testing.T, world *testkit.World) *writes {
	t.Helper()
	r := &writes{t: t, seen: map[string]string{}, shown: map[string]string{}, texts: map[*histories.Workload]string{}}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		events, err := testkit.NewClient(t, world.Cluster.Kubeconfig()).Watch(t.Context(), list, client.InNamespace(world.Namespace))
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			for event := range events.ResultChan() {
				if o, ok := event.Object.(client.Object); ok {
					r.note(o, event.Type == "DELETED")
				}
			}
		})
		t.Cleanup(func() { events.Stop(); done.Wait() })
	}
	return r
}

// note makes a fact of an event, and kills whoever is to be killed at its patch.
func (r *writes) note(o client.Object, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := factOf(o)
	if f.Workload != nil && !gone {
		// Whoever writes a field last owns it.
		slim, err := kube.SlimWorkload(kube.Deployment(), o, settings.Native{})
		text := o.(*appsv1.Deployment).Spec.Template.Annotations[settings.Inputs]
		f.Lockstep = err == nil && !slim.MovedAt.IsZero() && r.shown[o.GetName()] != text
		r.shown[o.GetName()], r.texts[f.Workload] = text, text
	}
	if f.Lockstep && r.victim != nil {
		r.victim.Signal(r.t, syscall.SIGKILL)
		r.victim = nil
	}
	if !slices.Contains([]string{testkit.Web, "app", "db"}, o.GetName()) {
		return
	}
	f.Version, _ = strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	f.At = time.Now()
	name := nameOf(o, o.GetName())
	r.seen[name] = o.GetResourceVersion()
	if gone {
		f.Content, f.Held, f.Workload, f.Orphaned = "", false, nil, r.orphan
		r.seen[name] = ""
	}
	r.facts = append(r.facts, f)
}

func (r *writes) arm(victim *testkit.Controller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.victim = victim
}

func (r *writes) isArmed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.victim != nil
}

func (r *writes) orphaning(orphan bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orphan = orphan
}

// text is what Lockstep wrote into a template.
func (r *writes) text(w *histories.Workload) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts[w]
}

func (r *writes) hasSeen(name, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[name] == version
}

// take returns the facts since the last call, in the order of their resource versions.
func (r *writes) take() []histories.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.facts
	r.facts = nil
	slices.SortStableFunc(all, func(a, b histories.Fact) int { return cmp.Compare(a.Version, b.Version) })
	return all
}

// TestOnPlane plays histories to the built controller: three of them, and all twenty when
// HISTORIES=all.
func TestOnPlane(t *testing.T) {
	t.Parallel()
	last := uint64(3)
	if os.Getenv("HISTORIES") == "all" {
		last = 20
	}
	for _, seed := range seeds(t, 1, last) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			h := histories.New(seed, histories.Options{Length: 12, Without: []histories.Verb{histories.Later}})
			playOnPlane(t, h)
		})
	}
}

func playOnPlane(t *testing.T, h histories.History) {
	t.Helper()
	t.Logf("seed %d\n%s", h.Seed, h)
	w := newOnPlane(t)
	if _, err := play(h, w); err != nil {
		t.Errorf("%v\n\nrepeat it with HISTORY_SEED=%d\n\n%s", err, h.Seed, w.controller.Stderr())
	}
}
