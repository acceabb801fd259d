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
func (p progress) line(b Break, o outcome) string {
	took := o.took.Round(time.Second)
	what := fmt.Sprintf("noticed by %s in %s", b.Test, took)
	switch {
	case o.missed != nil:
		what = fmt.Sprintf("MISSED after %s: %s", took, firstLine(o.missed))
	case o.late:
		what += ", by a wait in vain"
	}
	line := fmt.Sprintf("[%d/%d] %s %s", p.takenOver+p.ran, p.all, b.ID, what)
	if left := p.left(); left > 0 {
		line += fmt.Sprintf(" (about %s left)", program.Rough(left))
	}
	return line
}

// controlLine reports what a test did without a break.
func controlLine(g group, failed error, took time.Duration) string {
	if failed != nil {
		return fmt.Sprintf("        CONTROL FAILED after %s: %s", took.Round(time.Second), firstLine(failed))
	}
	return fmt.Sprintf("        %s passes without a break in %s", g.Test, took.Round(time.Second))
}

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(first, ":")
}

// left estimates how long the rest takes, if a break takes as long as the earlier ones:
// after 10 breaks in 2 minutes, 50 breaks take 10 minutes.
func (p progress) left() time.Duration {
	if p.ran == 0 {
		return 0
	}
	return p.elapsed / time.Duration(p.ran) * time.Duration(p.all-p.takenOver-p.ran)
}
