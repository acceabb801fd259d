package podsync_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

func at(seconds float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)) }

// timing has a quiet period of 2 s, at most 10 s, and 3 failures.
func timing() podsync.Timing {
	return podsync.Timing{Quiet: 2 * time.Second, MaxWait: 10 * time.Second, MaxFailures: 3, Retry: time.Second, MaxRetry: 8 * time.Second}
}

// input is an agent in step with generation A at second 100.
func input() podsync.Observation {
	return podsync.Observation{
		Now: at(100), Timing: timing(),
		Observed: podsync.Observed{Generation: "A", FirstChange: at(0), LastChange: at(0)},
		State:    podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}, Checks: podsync.Checks{Staged: "A", Checked: "A"}},
	}
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		why  string
		set  func(*podsync.Observation)
		want podsync.Decision
	}{
		"in step": {
			why: "nothing changed, nothing to do", set: func(*podsync.Observation) {},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.InStep},
		},
		"sources unread": {
			why:  "half a set is never published",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State = "", podsync.State{} },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForSources},
		},
		"sources unread after a restart": {
			why:  "what is on the disk stays until the sources are known",
			set:  func(in *podsync.Observation) { in.Observed.Generation = "" },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForSources},
		},
		"damaged": {
			why:  "readers find something else than the set that is published",
			set:  func(in *podsync.Observation) { in.Observed.Damaged, in.State.Staged = true, "" },
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Damaged, Generation: "A"},
		},
		"damaged while it is rolled back": {
			why: "a set that the application refused is not published once more",
			set: func(in *podsync.Observation) {
				in.Observed.Damaged = true
				in.State = podsync.State{Sets: podsync.Sets{Published: "A", Previous: "0"}, Tries: podsync.Tries{Failures: 3, NextTry: at(110)}, RollBackFailures: 1}
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.RetryLater, Until: at(110)},
		},
		"conflict later": {
			why:  "two sources with one file: the old set stays",
			set:  func(in *podsync.Observation) { in.Observed = podsync.Observed{Refused: podsync.SourceConflict} },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.SourceConflict},
		},
		"conflict before anything": {
			why: "nothing can be published",
			set: func(in *podsync.Observation) {
				in.Observed, in.State = podsync.Observed{Refused: podsync.SourceConflict}, podsync.State{}
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.SourceConflict},
		},
		"too large later": {
			why:  "sources beyond the limit: the old set stays",
			set:  func(in *podsync.Observation) { in.Observed = podsync.Observed{Refused: podsync.SetTooLarge} },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.SetTooLarge},
		},
		"first set at once": {
			why: "nobody reads yet, so that there is nothing to wait for",
			set: func(in *podsync.Observation) {
				in.State = podsync.State{}
				in.Observed.LastChange = in.Now
			},
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Changed, Generation: "A"},
		},
		"quiet": {
			why: "more changes may come",
			set: func(in *podsync.Observation) {
				in.Observed = podsync.Observed{Generation: "B", FirstChange: at(99), LastChange: at(99)}
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForQuiet, Until: at(101)},
		},
		"quiet is bounded": {
			why: "sources that never rest are still delivered",
			set: func(in *podsync.Observation) {
				in.Observed = podsync.Observed{Generation: "B", FirstChange: at(89), LastChange: at(99.5)}
			},
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Changed, Generation: "B"},
		},
		"no first change": {
			why: "what is not known bounds nothing",
			set: func(in *podsync.Observation) {
				in.Observed = podsync.Observed{Generation: "B", LastChange: at(99)}
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForQuiet, Until: at(101)},
		},
		"minimum interval": {
			why: "reloads are kept apart, files and reload together",
			set: func(in *podsync.Observation) {
				in.Timing.MinInterval, in.State.LastNotify = 10*time.Second, at(95)
				in.Observed = podsync.Observed{Generation: "B", FirstChange: at(90), LastChange: at(90)}
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.TooSoon, Until: at(105)},
		},
		"staged": {
			why:  "without a checker a staged set is published",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Staged = "B", "B" },
			want: podsync.Decision{Verb: podsync.Publish, Reason: podsync.Changed, Generation: "B"},
		},
		"staged but unchecked": {
			why:  "nothing is published unchecked",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Staged, in.Checks = "B", "B", true },
			want: podsync.Decision{Verb: podsync.Check, Reason: podsync.Changed, Generation: "B"},
		},
		"checked": {
			why: "a good check opens the way",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Staged, in.State.Checked, in.Checks = "B", "B", "B", true
			},
			want: podsync.Decision{Verb: podsync.Publish, Reason: podsync.Changed, Generation: "B"},
		},
		"rejected": {
			why: "a refused set waits, the application is not touched",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Rejected, in.State.NextCheck, in.Checks = "B", "B", at(130), true
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.Rejected, Until: at(130)},
		},
		"rejected at the start": {
			why: "there is nothing else to deliver",
			set: func(in *podsync.Observation) {
				in.State = podsync.State{Checks: podsync.Checks{Rejected: "A", NextCheck: at(130)}}
				in.Checks = true
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.Rejected, Until: at(130)},
		},
		"rejected while the published one is undelivered": {
			why: "a refused newer set does not stop the delivery of the older one",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Rejected, in.State.NextCheck = "B", "B", at(130)
				in.State.Delivered = ""
			},
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"rejected, time to look again": {
			why: "a checker may have failed for a reason that has passed",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Rejected, in.State.NextCheck, in.State.Staged, in.Checks = "B", "B", at(100), "B", true
			},
			want: podsync.Decision{Verb: podsync.Check, Reason: podsync.Changed, Generation: "B"},
		},
		"newer than rejected": {
			why: "something newer does not wait for the refused one's pause",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Rejected, in.State.NextCheck = "C", "B", at(130)
			},
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Changed, Generation: "C"},
		},
		"published": {
			why:  "the application has to be told",
			set:  func(in *podsync.Observation) { in.State.Delivered = "" },
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"told": {
			why:  "and asked, when there is a way to ask",
			set:  func(in *podsync.Observation) { in.State.Confirmed, in.Confirms = "", true },
			want: podsync.Decision{Verb: podsync.Confirm, Reason: podsync.NotConfirmed, Generation: "A"},
		},
		"told, nobody to ask": {
			why:  "an unconfirmed set is left at that",
			set:  func(in *podsync.Observation) { in.State.Confirmed = "" },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.InStep},
		},
		"read at its start": {
			why:  "the first set is neither told nor asked for",
			set:  func(in *podsync.Observation) { in.State.Confirmed, in.State.Initial, in.Confirms = "", "A", true },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.InStep},
		},
		"failed once": {
			why: "a failed reload is tried again after a pause",
			set: func(in *podsync.Observation) {
				in.State.Delivered, in.State.Failures, in.State.NextTry = "", 1, at(101)
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.RetryLater, Until: at(101)},
		},
		"cannot be asked": {
			why: "an application that is starting is asked again, under a reason of its own",
			set: func(in *podsync.Observation) {
				in.State.Delivered, in.State.UnreachableSince, in.State.NextTry = "", at(90), at(101)
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.Unreachable, Until: at(101)},
		},
		"failed often without roll-back": {
			why:  "it is tried until it works or something newer comes",
			set:  func(in *podsync.Observation) { in.State.Delivered, in.State.Failures, in.State.Previous = "", 9, "0" },
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"failed, but something newer is there": {
			why: "only the newest matters",
			set: func(in *podsync.Observation) {
				in.Observed.Generation, in.State.Delivered, in.State.Failures, in.State.NextTry = "B", "", 2, at(130)
			},
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Changed, Generation: "B"},
		},
		"too many failures": {
			why: "the previous set is put back",
			set: func(in *podsync.Observation) {
				in.Timing.RollBack, in.State.Delivered, in.State.Failures, in.State.Previous = true, "", 3, "0"
			},
			want: podsync.Decision{Verb: podsync.RollBack, Reason: podsync.TooManyFailures, Generation: "0"},
		},
		"too many failures, nothing before": {
			why:  "there is nothing to put back",
			set:  func(in *podsync.Observation) { in.Timing.RollBack, in.State.Delivered, in.State.Failures = true, "", 3 },
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"rolled back, application to be told": {
			why: "it is told of the old set; going back twice is not possible",
			set: func(in *podsync.Observation) {
				in.Timing.RollBack = true
				in.Observed.Generation = "B"
				in.State = podsync.State{Sets: podsync.Sets{Published: "A", Previous: "A"}, Barred: "B", Tries: podsync.Tries{Failures: 5}}
			},
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"rolled back": {
			why:  "the barred set is left alone",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Barred = "B", "B" },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.RolledBack},
		},
		"newer than rolled back": {
			why:  "a third set is a new chance",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Barred = "C", "B" },
			want: podsync.Decision{Verb: podsync.Stage, Reason: podsync.Changed, Generation: "C"},
		},
		"child before its files": {
			why: "the child is not started before the first set",
			set: func(in *podsync.Observation) {
				in.State, in.Child, in.Observed.Generation = podsync.State{}, podsync.ChildPending, ""
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForSources},
		},
		"child with old files": {
			why: "files of an earlier life do not start the child while the sources may still be read",
			set: func(in *podsync.Observation) {
				in.Child, in.Observed.Generation, in.Begun = podsync.ChildPending, "", at(95)
			},
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForSources, Until: at(105)},
		},
		"child with old files and no sources": {
			why: "an API server that is away does not keep an application down that has its files",
			set: func(in *podsync.Observation) {
				in.Child, in.Observed.Generation, in.Begun = podsync.ChildPending, "", at(90)
			},
			want: podsync.Decision{Verb: podsync.StartChild, Reason: podsync.ChildNotStarted, Generation: "A"},
		},
		"sidecar with old files": {
			why:  "the application would load the old set first, and the new one after the minimum interval",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Delivered, in.Begun = "", "", at(95) },
			want: podsync.Decision{Verb: podsync.Wait, Reason: podsync.WaitingForSources, Until: at(105)},
		},
		"sidecar with old files and no sources": {
			why:  "the application may not have loaded the files in place",
			set:  func(in *podsync.Observation) { in.Observed.Generation, in.State.Delivered, in.Begun = "", "", at(90) },
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"sidecar with old files and sources in conflict": {
			why: "the sources were read, and no set will come of them",
			set: func(in *podsync.Observation) {
				in.Observed, in.State.Delivered, in.Begun = podsync.Observed{Refused: podsync.SourceConflict}, "", at(95)
			},
			want: podsync.Decision{Verb: podsync.Notify, Reason: podsync.NotDelivered, Generation: "A"},
		},
		"child with its files": {
			why:  "no reload before the start, whatever was delivered",
			set:  func(in *podsync.Observation) { in.Child, in.State.Delivered = podsync.ChildPending, "" },
			want: podsync.Decision{Verb: podsync.StartChild, Reason: podsync.ChildNotStarted, Generation: "A"},
		},
		"child with files of an earlier run": {
			why: "they were published with another check, or with none",
			set: func(in *podsync.Observation) {
				in.Child, in.Checks, in.State.Checked = podsync.ChildPending, true, ""
			},
			want: podsync.Decision{Verb: podsync.Check, Reason: podsync.ChildNotStarted, Generation: "A"},
		},
		"child with the set that was put back": {
			why: "the check of this command line may not have seen it",
			set: func(in *podsync.Observation) {
				in.Child, in.Checks, in.State.Checked, in.State.Restarting = podsync.ChildExited, true, "B", true
			},
			want: podsync.Decision{Verb: podsync.Check, Reason: podsync.ChildStopped, Generation: "A"},
		},
		"child although the newest set is refused": {
			why: "the last good set is better than no application",
			set: func(in *podsync.Observation) {
				in.Child, in.Observed.Generation, in.State.Rejected, in.State.NextCheck = podsync.ChildPending, "B", "B", at(130)
			},
			want: podsync.Decision{Verb: podsync.StartChild, Reason: podsync.ChildNotStarted, Generation: "A"},
		},
		"child ended": {
			why:  "the agent ends with its child",
			set:  func(in *podsync.Observation) { in.Child = podsync.ChildExited },
			want: podsync.Decision{Verb: podsync.Exit, Reason: podsync.ChildStopped},
		},
		"child ended by a reload": {
			why: "the set that ended it is rolled back",
			set: func(in *podsync.Observation) {
				in.Child, in.Timing.RollBack, in.State.Previous, in.State.LastNotify = podsync.ChildExited, true, "0", at(99)
			},
			want: podsync.Decision{Verb: podsync.RollBack, Reason: podsync.ChildStopped, Generation: "0"},
		},
		"child ended by a reload that cannot be rolled back": {
			why: "an agent without its application is of no use to anybody",
			set: func(in *podsync.Observation) {
				in.Child, in.Timing.RollBack, in.State.Previous, in.State.LastNotify = podsync.ChildExited, true, "0", at(99)
				in.State.RollBackFailures = 3
			},
			want: podsync.Decision{Verb: podsync.Exit, Reason: podsync.ChildStopped},
		},
		"child ended while it was asked": {
			why: "asking may take longer than any window",
			set: func(in *podsync.Observation) {
				in.Child, in.Timing.RollBack, in.State.Previous, in.State.LastNotify = podsync.ChildExited, true, "0", at(60)
				in.Confirms, in.State.Confirmed = true, ""
			},
			want: podsync.Decision{Verb: podsync.RollBack, Reason: podsync.ChildStopped, Generation: "0"},
		},
		"child ended before it was told": {
			why: "a set that it does not know of did not end it",
			set: func(in *podsync.Observation) {
				in.Child, in.Timing.RollBack, in.State.Previous, in.State.Delivered = podsync.ChildExited, true, "0", ""
			},
			want: podsync.Decision{Verb: podsync.Exit, Reason: podsync.ChildStopped},
		},
		"child ended long after a reload": {
			why: "that is the child's own affair",
			set: func(in *podsync.Observation) {
				in.Child, in.Timing.RollBack, in.State.Previous, in.State.LastNotify = podsync.ChildExited, true, "0", at(10)
			},
			want: podsync.Decision{Verb: podsync.Exit, Reason: podsync.ChildStopped},
		},
		"child to be started again": {
			why: "after the roll-back it runs with the old set",
			set: func(in *podsync.Observation) {
				in.Child, in.State.Restarting, in.State.Barred = podsync.ChildExited, true, "B"
			},
			want: podsync.Decision{Verb: podsync.StartChild, Reason: podsync.ChildStopped, Generation: "A"},
		},
	}
	met := map[podsync.Reason]bool{}
	for name, c := range cases {
		met[c.want.Reason] = true
		t.Run(name, func(t *testing.T) {
			in := input()
			c.set(&in)
			if diff := cmp.Diff(c.want, podsync.Decide(in)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.why, diff)
			}
		})
	}
	for _, reason := range allReasons(t) {
		if !met[reason] {
			t.Errorf("no case for the reason %s", reason)
		}
	}
}

// allReasons reads the constants from the source, so that a new one without a
// case is found.
func allReasons(t *testing.T) []podsync.Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []podsync.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Reason" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, podsync.Reason(value))
		}
		return true
	})
	if len(reasons) < 10 {
		t.Fatalf("only %d reasons found", len(reasons))
	}
	return reasons
}

func TestAfter(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		why      string
		state    podsync.State
		outcome  podsync.Outcome
		confirms bool
		want     podsync.State
	}{
		"published": {
			why:     "the set before becomes the one to go back to",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}, Barred: "X"},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Publish, Generation: "B"}},
			want:    podsync.State{Sets: podsync.Sets{Published: "B", Previous: "A"}, Answers: podsync.Answers{Confirmed: "A"}},
		},
		"published after a failure": {
			why:     "a set that was never good is not gone back to",
			state:   podsync.State{Sets: podsync.Sets{Published: "B", Previous: "A"}, Tries: podsync.Tries{Failures: 2}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Publish, Generation: "C"}},
			want:    podsync.State{Sets: podsync.Sets{Published: "C", Previous: "A"}},
		},
		"published after a roll-back that failed": {
			why:     "the new set has all its chances",
			state:   podsync.State{Sets: podsync.Sets{Published: "B", Previous: "A"}, RollBackFailures: 2, NextRollBack: at(9), Tries: podsync.Tries{NextTry: at(9)}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Publish, Generation: "C"}},
			want:    podsync.State{Sets: podsync.Sets{Published: "C", Previous: "A"}},
		},
		"published before a confirmation": {
			why:     "a set that nobody has shown to run is not gone back to",
			state:   podsync.State{Sets: podsync.Sets{Published: "B", Previous: "A"}, Answers: podsync.Answers{Delivered: "B", Confirmed: "A"}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Publish, Generation: "C"}}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "C", Previous: "A"}, Answers: podsync.Answers{Confirmed: "A"}},
		},
		"first of a new volume": {
			why:     "the application reads it when it starts; that is not a confirmation",
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Publish, Generation: "A"}, Unread: true},
			want:    podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Initial: "A"}},
		},
		"signal": {
			why:     "a signal that was sent confirms nothing",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Notify, Generation: "A"}, Now: at(1)},
			want:    podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A"}, Tries: podsync.Tries{LastNotify: at(1)}},
		},
		"answered request": {
			why:     "an accepted code is the application's word",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Tries: podsync.Tries{Failures: 2, NextTry: at(0)}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Notify, Generation: "A"}, Now: at(1), Acknowledged: true},
			want:    podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}, Tries: podsync.Tries{LastNotify: at(1)}},
		},
		"answered request with a confirmation to come": {
			why:     "an old confirmation of the same set does not count",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Confirmed: "A"}, Tries: podsync.Tries{Failures: 1}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Notify, Generation: "A"}, Now: at(1), Acknowledged: true}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A"}, Tries: podsync.Tries{Failures: 1, LastNotify: at(1)}},
		},
		"confirmed": {
			why:     "only now the failures are forgotten",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A"}, Tries: podsync.Tries{Failures: 1}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Confirm, Generation: "A"}}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}},
		},
		"confirmation failed": {
			why:     "it is told again, after a pause that has doubled",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A"}, Tries: podsync.Tries{Failures: 1}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Confirm, Generation: "A"}, Err: broken, Now: at(0)}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "A"}, Tries: podsync.Tries{Failures: 2, NextTry: at(2)}},
		},
		"jitter": {
			why:     "replicas do not retry in step",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Confirm, Generation: "A"}, Err: broken, Now: at(0), Jitter: 1}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "A"}, Tries: podsync.Tries{Failures: 1, NextTry: at(0.5)}},
		},
		"pause is bounded": {
			why:     "a broken application is still asked every MaxRetry",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Tries: podsync.Tries{Failures: 60}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Confirm, Generation: "A"}, Err: broken, Now: at(0)}, confirms: true,
			want: podsync.State{Sets: podsync.Sets{Published: "A"}, Tries: podsync.Tries{Failures: 61, NextTry: at(8)}},
		},
		"check failed": {
			why:     "the published set stays as it is",
			state:   podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}, Checks: podsync.Checks{Staged: "B"}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.Check, Generation: "B"}, Err: broken, Now: at(0)},
			want:    podsync.State{Sets: podsync.Sets{Published: "A"}, Answers: podsync.Answers{Delivered: "A", Confirmed: "A"}, Checks: podsync.Checks{Staged: "B", Rejected: "B", Rejections: 1, NextCheck: at(1)}},
		},
		"rolled back": {
			why:     "the failed set is barred, the old one has to be told",
			state:   podsync.State{Sets: podsync.Sets{Published: "B", Previous: "A"}, Tries: podsync.Tries{Failures: 3}},
			outcome: podsync.Outcome{Decision: podsync.Decision{Verb: podsync.RollBack, Reason: podsync.TooManyFailures, Generation: "A"}},
			want:    podsync.State{Sets: podsync.Sets{Published: "A", Previous: "A"}, Barred: "B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.state.After(c.outcome, timing(), c.confirms)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.why, diff)
			}
		})
	}
}
