package histories_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// world is where a history is played.
type world interface { //nolint:interfacebloat // two worlds, and all of it is needed
	// do carries an action out, and returns when the cluster's own controller has acted.
	do(histories.Action) error
	// facts are what was written since the last call, in order.
	facts() []histories.Fact
	// settle returns when Lockstep has decided on everything.
	settle() error
	// isUp reports whether Lockstep runs, and sees whether its watches do.
	isUp() bool
	sees() bool
	// word is what Lockstep says, and eventually tries until what it says is in order: the
	// record is written a little later.
	word() (histories.Word, error)
	eventually(func() error) error
}

// play plays a history and returns how Lockstep broke the rules.
func play(h histories.History, w world) (*histories.Model, error) {
	m := histories.NewModel(h)
	for i, a := range h.Actions {
		if err := step(a, w, m); err != nil {
			return m, fmt.Errorf("at %d, %s: %w", i, a, err)
		}
	}
	return m, nil
}

func step(a histories.Action, w world, m *histories.Model) error {
	wasUp, saw := w.isUp(), w.sees()
	if a.Verb == histories.Settle && !wasUp {
		a = histories.Action{Verb: histories.Start}
		if err := step(a, w, m); err != nil {
			return err
		}
		return step(histories.Action{Verb: histories.Settle}, w, m)
	}
	act := func() error { return w.do(a) }
	if a.Verb == histories.Settle {
		act = w.settle
	}
	if err := act(); err != nil {
		return err
	}
	if err := observe(w, m); err != nil {
		return err
	}
	if a.Verb == histories.Upgrade {
		m.Upgrade()
	}
	if wasUp && !w.isUp() || saw && !w.sees() {
		if err := m.Interrupt(!w.isUp()); err != nil {
			return err
		}
	}
	m.SetBlind(!w.isUp() || !w.sees())
	if a.Verb != histories.Settle || !w.isUp() || !w.sees() {
		return nil
	}
	var broken error
	err := w.eventually(func() error {
		// The model has counted the rollout, so another try wouldn't report it again.
		if broken = observe(w, m); broken != nil {
			return nil //nolint:nilerr // it is returned below; an error here would be another try
		}
		word, err := w.word()
		if err != nil {
			return err
		}
		return m.Settle(word)
	})
	return cmp.Or(broken, err)
}

// observe tells the model what was written.
func observe(w world, m *histories.Model) error {
	for _, f := range w.facts() {
		if err := m.Observe(f); err != nil {
			return err
		}
	}
	return nil
}

// retrying is a world that tries until there is no error, as one on a control plane does. While
// it waits at the second settlement, another Lockstep patch arrives.
type retrying struct {
	*inProcess

	words int
}

func (w *retrying) eventually(try func() error) error {
	for try() != nil {
	}
	return nil
}

func (w *retrying) word() (histories.Word, error) {
	if w.words++; w.words != 2 {
		return w.inProcess.word()
	}
	o := w.kind.NewObject()
	c := w.server.as(kube.FieldManager)
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: testkit.Web}, o); err != nil {
		return histories.Word{}, err
	}
	d := asDeployment(o)
	setOn(&d.Spec.Template, settings.Inputs, "configmap/app~0000000000")
	if err := c.Update(context.Background(), d); err != nil {
		return histories.Word{}, err
	}
	return histories.Word{}, errNotSaid
}

// TestForbiddenRolloutDuringASettlement: a rollout that breaks the rules fails the history even
// when everything is in order at the next try.
func TestForbiddenRolloutDuringASettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, err := newInProcess(join(), false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = play(join(), &retrying{inProcess: w})
		if want := "nothing was due"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the history ends with %v, want an error with %q", err, want)
		}
	})
}
