package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// progress counts completed breaks.
type progress struct {
	all       int
	takenOver int           // from an earlier run
	ran       int           // in this run
	elapsed   time.Duration // of this run
}

// begin describes the upcoming run.
func (p progress) begin() string {
	if p.takenOver == 0 {
		return fmt.Sprintf("%d breaks", p.all)
	}
	return fmt.Sprintf("%d of %d breaks were noticed by an earlier run of the same tree; --fresh runs them again", p.takenOver, p.all)
}

// line reports a break that has just run.
func (p progress) line(b Break, missed error, took time.Duration) string {
	took = took.Round(time.Second)
	what := fmt.Sprintf("noticed by %s in %s", b.Test, took)
	if missed != nil {
		first, _, _ := strings.Cut(missed.Error(), "\n")
		what = fmt.Sprintf("MISSED after %s: %s", took, strings.TrimSuffix(first, ":"))
	}
	line := fmt.Sprintf("[%d/%d] %s %s", p.takenOver+p.ran, p.all, b.ID, what)
	if left := p.left(); left > 0 {
		line += fmt.Sprintf(" (about %s left)", program.Rough(left))
	}
	return line
}

// left estimates how long the rest takes, if a break takes as long as the earlier ones:
// after 10 breaks in 2 minutes, 50 breaks take 10 minutes.
func (p progress) left() time.Duration {
	if p.ran == 0 {
		return 0
	}
	return p.elapsed / time.Duration(p.ran) * time.Duration(p.all-p.takenOver-p.ran)
}
