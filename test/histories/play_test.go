package histories_test

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/test/histories"
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
	if wasUp && !w.isUp() || saw && !w.sees() {
		if err := m.Interrupt(!w.isUp()); err != nil {
			return err
		}
	}
	m.SetBlind(!w.isUp() || !w.sees())
	if a.Verb != histories.Settle || !w.isUp() || !w.sees() {
		return nil
	}
	return w.eventually(func() error {
		if err := observe(w, m); err != nil {
			return err
		}
		word, err := w.word()
		if err != nil {
			return err
		}
		return m.Settle(word)
	})
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
