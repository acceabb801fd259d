// Package damping slows down what happens again and again: rollouts of one workload, or
// versions of one source. The first few come at once; then each pause is twice as long as the
// one before, up to a bound. A long quiet time ends the series.
//
// A Secret that changes every ten seconds for an hour, with pauses from 30 seconds to 15
// minutes:
//
//	at 0:00, 0:10, 0:20, 0:30, 0:40          at once
//	at 1:10, 2:10, 4:10, 8:10, 16:10         30 s, 1, 2, 4 and 8 minutes after the one before
//	at 31:10, 46:10                          15 minutes after the one before
package damping

import "time"

const (
	// free is how many of a series begin at once.
	free = 5
	// quietGaps and quietFirsts are how many pauses, the last one or the first one, have to be
	// quiet until the series ends.
	quietGaps, quietFirsts = 4, 10
)

// Policy is how long the pauses are. The zero value has none.
type Policy struct {
	// First is the pause after the free ones, and Most the longest one.
	First, Most time.Duration
}

// State is where a series is. The zero value is before its first.
type State struct {
	// Level counts those that began.
	Level int
	// Last is when the last one began.
	Last time.Time
}

// Until is when the next one may begin, zero for at once.
func (p Policy) Until(s State) time.Time {
	gap := p.gap(s.Level)
	if gap == 0 {
		return time.Time{}
	}
	return s.Last.Add(gap)
}

// After is the state after one that begins now. Without pauses it stays zero.
func (p Policy) After(s State, now time.Time) State {
	switch {
	case p.First <= 0:
		return State{}
	case p.IsOver(s, now):
		return State{Level: 1, Last: now}
	}
	return State{Level: s.Level + 1, Last: now}
}

// IsOver reports whether it was quiet for so long that the series has ended.
func (p Policy) IsOver(s State, now time.Time) bool {
	return s.Level <= 0 || p.First <= 0 || now.Sub(s.Last) >= max(quietGaps*p.gap(s.Level), quietFirsts*p.First)
}

// Delays reports whether the series has pauses. Before that, nothing is lost when it is forgotten.
func (p Policy) Delays(s State) bool {
	return p.gap(s.Level) > 0
}

// gap is the pause after that many of a series.
func (p Policy) gap(level int) time.Duration {
	if level < free {
		return 0
	}
	gap := p.First
	for ; level > free && gap < p.Most; level-- {
		gap *= 2
	}
	return min(gap, p.Most)
}
