package histories_test

import (
	"math/rand/v2"
	"time"
)

// agenda is what is going to happen, in the order of time. Everything in a history in
// process happens on it, one after the other, so that a seed always leads to the same
// outcome. The clock is that of testing/synctest.
type agenda struct {
	random *rand.Rand
	items  []item
}

type item struct {
	at time.Time
	do func()
}

// after does something later. What is due at the same time is done in the order in which
// it was asked for.
func (a *agenda) after(d time.Duration, do func()) {
	at := time.Now().Add(d)
	i := len(a.items)
	for i > 0 && a.items[i-1].at.After(at) {
		i--
	}
	a.items = append(a.items[:i], append([]item{{at, do}}, a.items[i:]...)...)
}

// soon is a delay as programs and networks have it.
func (a *agenda) soon() time.Duration {
	return time.Duration(1+a.random.IntN(150)) * time.Millisecond
}

// soonOnce does something soon, unless it is going to be done anyway.
func (a *agenda) soonOnce(queued *bool, do func()) {
	if *queued {
		return
	}
	*queued = true
	a.after(a.soon(), func() {
		*queued = false
		do()
	})
}

// pass lets time pass.
func (a *agenda) pass(d time.Duration) {
	end := time.Now().Add(d)
	a.passUntil(func() bool { return len(a.items) == 0 || a.items[0].at.After(end) })
	time.Sleep(time.Until(end))
}

// passUntil lets time pass until something is so, or nothing is going to happen.
func (a *agenda) passUntil(is func() bool) {
	for !is() && len(a.items) > 0 {
		next := a.items[0]
		a.items = a.items[1:]
		time.Sleep(time.Until(next.at))
		next.do()
	}
}
