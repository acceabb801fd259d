package histories_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// onPlane is the world of a real control plane and the built controller.
type onPlane struct {
	*testkit.World
	t          *testing.T
	kind       kube.Kind
	witness    *testkit.Witness
	person     *person
	actor      actor
	writes     *writes
	line       *testkit.Line
	through    string // the kubeconfig that goes through the line
	cut        bool
	turns      int
	controller *testkit.Controller
}

// actor makes the workload and carries actions out.
type actor interface {
	begin(context.Context) error
	do(context.Context, histories.Action) error
}

// newOnPlane makes the workload and starts Lockstep.
func newOnPlane(t *testing.T, kind kube.Kind, acts func(*person) actor) *onPlane {
	t.Helper()
	var with []labtest.Component
	if kind.Kind == kube.Rollout().Kind {
		with = append(with, labtest.ArgoRollouts)
	}
	w := &onPlane{World: testkit.NewWorldOn(t, labtest.Shared(t, with...)), t: t, kind: kind}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the API server tells of a new kind a little later
		err := w.Client.List(t.Context(), kind.NewList(), client.InNamespace(w.Namespace))
		return err == nil, fmt.Sprint(err)
	})
	w.writes = newWrites(t, w.World, kind)
	w.person = newPerson(w.Client, w.Namespace, kind)
	w.actor = acts(w.person)
	w.witness = w.NewWitness(t)
	if err := w.actor.begin(t.Context()); err != nil {
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
	switch a.Verb {
	case histories.Kill, histories.Upgrade:
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
	default: // the rest is a person's
	}
	w.writes.orphaning(a.Verb == histories.Orphan)
	if err := w.actor.do(w.t.Context(), a); err != nil {
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
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		return !w.isUp(), "Lockstep hasn't patched anything since it was armed:\n" + w.controller.Stderr()
	})
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

// workload is the workload, nil when there is none.
func (w *onPlane) workload() client.Object {
	w.t.Helper()
	o := w.kind.NewObject()
	err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: testkit.Web}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return o
}

// sets are the revisions.
func (w *onPlane) sets() []*appsv1.ReplicaSet {
	w.t.Helper()
	list := &appsv1.ReplicaSetList{}
	if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
		w.t.Fatal(err)
	}
	var all []*appsv1.ReplicaSet
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func (w *onPlane) awaitGone() {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		o := w.workload()
		if o == nil {
			return true, ""
		}
		return false, fmt.Sprintf("the workload still exists: deleted at %v, finalizers %q", o.GetDeletionTimestamp(), o.GetFinalizers())
	})
}

// awaitObserved waits until the controller of the workload has done everything for it as it
// is: it has noted the generation, and then the number of the revision.
func (w *onPlane) awaitObserved() {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		o := w.workload()
		if o == nil {
			return true, ""
		}
		d, hash := asDeployment(o), ""
		if rollout, ok := o.(*unstructured.Unstructured); ok {
			hash = statusOf(rollout).CurrentPodHash
			if !hasActed(rollout) {
				return false, fmt.Sprintf("generation %d has the status %+v", d.Generation, statusOf(rollout))
			}
		} else if d.Status.ObservedGeneration < d.Generation {
			return false, fmt.Sprintf("generation %d is not observed, only %d", d.Generation, d.Status.ObservedGeneration)
		}
		if w.kind.Kind == kube.StatefulSet().Kind {
			return true, ""
		}
		sets := w.sets()
		for _, rs := range sets {
			if templateOf(rs) == templateText(d) {
				return numberOf(rs) == numberOf(d) && rs.Labels[canaryHashLabel] == hash, fmt.Sprintf("the revision has number %d, the workload %d", numberOf(rs), numberOf(d))
			}
		}
		return d.Spec.Paused, fmt.Sprintf("none of the %d revisions has the template of generation %d", len(sets), d.Generation)
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
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		last := made()
		return last.After(first.Time), fmt.Sprintf("the API server's clock shows %s, the same second as before", last)
	})
}

// facts are complete when the watches have shown each object as it is.
func (w *onPlane) facts() []histories.Fact {
	w.t.Helper()
	w.awaitSeen(histories.ConfigMap, histories.Secret)
	all, digests := w.writes.take(), w.digests()
	var sets []*appsv1.ReplicaSet
	if w.person.canary {
		sets = w.sets()
	}
	var facts []histories.Fact
	for _, written := range all {
		f := written.fact
		if f.Workload != nil {
			text, rollout := w.writes.text(f.Workload)
			f.Workload.Shows = showsOf(text, w.person, digests)
			if rollout != nil {
				addCanary(f.Workload, rollout, sets)
			}
		}
		facts = append(facts, f)
	}
	return facts
}

// awaitSeen waits until the watches have shown the workload and the sources as they are.
func (w *onPlane) awaitSeen(sources ...string) {
	w.t.Helper()
	all := []client.Object{w.kind.NewObject()}
	for _, source := range sources {
		all = append(all, w.person.source(source, ""))
	}
	for _, o := range all {
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

// reason is that of the last decision, empty when there is none.
func (w *onPlane) reason() string {
	decided := regexp.MustCompile(`(?m)decided.*workload=`+w.kind.Kind+`/`+w.Namespace+`/web .*reason=(\w+)`).FindAllStringSubmatch(w.controller.Stderr(), -1)
	if len(decided) == 0 {
		return ""
	}
	return decided[len(decided)-1][1]
}

func (w *onPlane) word() (histories.Word, error) {
	w.t.Helper()
	reason := w.reason()
	text := w.RecordOf(w.t, w.kind.GroupKind(), testkit.Web)
	if reason == "" || text == "" && w.workload() != nil {
		return histories.Word{}, errNotSaid
	}
	entry := record.Entry{}
	if text != "" {
		var err error
		if entry, err = record.Decode(text); err != nil {
			return histories.Word{}, err
		}
	}
	return wordOf(reason, entry, w.person, w.digests()), nil
}

func (w *onPlane) eventually(try func() error) error {
	w.t.Helper()
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		err := try()
		return err == nil, fmt.Sprint(err)
	})
	return nil
}

// TestOnPlane plays histories to the built controller: three of them, and all twenty when
// HISTORIES=all. There are no nodes, so the workload asks for no pods: one that doesn't become available may start at any time.
func TestOnPlane(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	last := uint64(3)
	if os.Getenv("HISTORIES") == "all" {
		last = 20
	}
	playSeedsOnPlane(t, seeds(t, 1, last), histories.Options{Length: 12, Without: []histories.Verb{histories.Later, histories.Scale}})
}

// TestCanaryOnPlane plays histories of a Rollout with the controller of Argo Rollouts: the
// one of seed 9, which has two aborts and a retry, and six when HISTORIES=all. There are no
// nodes, so it asks for no pods.
func TestCanaryOnPlane(t *testing.T) {
	t.Parallel()
	first, last := uint64(9), uint64(9)
	if os.Getenv("HISTORIES") == "all" {
		first, last = 7, 12
	}
	playSeedsOnPlane(t, seeds(t, first, last), histories.Options{Length: 12, Without: []histories.Verb{histories.Later, histories.Scale}, Canary: true})
}

func playSeedsOnPlane(t *testing.T, seeds []uint64, o histories.Options) {
	t.Helper()
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			playOnPlane(t, histories.New(seed, o))
		})
	}
}

func playOnPlane(t *testing.T, h histories.History) {
	t.Helper()
	t.Logf("seed %d\n%s", h.Seed, h)
	w := newOnPlane(t, kindOf(h.Canary), func(p *person) actor { return p })
	if _, err := play(h, w); err != nil {
		t.Errorf("%v\n\nrepeat it with HISTORY_SEED=%d\n\n%s", err, h.Seed, w.controller.Stderr())
	}
}
