package revisions_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// TestKeptAndNewObjects: the Job starts before the Rollout is applied, and the revision of
// yesterday names the ConfigMap that stays. It is attached to the new one as well.
func TestKeptAndNewObjects(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(revisions.Request) revisions.Request{
		"as a job of our chart": func(r revisions.Request) revisions.Request { return r },
		"as configmap-attacher": asConfigmapAttacher,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			kept, older, newer := input.ConfigMap("kept"), input.ConfigMap("older"), input.ConfigMap("newer")
			l.source(kept)
			l.source(newer)
			rollout := l.slowRollout(kept, older)
			rollout.act("1", kept, older)
			rollout.publish("1")
			request := change(l.rolloutRequest(kept, newer))
			request.Grace = request.Timeout
			done := l.attachBeside(request)
			l.wire.await(t, "WATCH replicasets", done)
			rollout.change(kept, newer)
			rollout.act("2", kept, newer)
			rollout.publish("2")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := l.controls(kept); len(got) != 2 || got["web-1"] {
				t.Errorf("the kept ConfigMap belongs to %v, want both revisions", got)
			}
		})
	}
}

// TestNothingChangedButTheWorkload: the Job of a deploy that changes no ConfigMap starts before the
// Rollout is applied. The newest revision owns everything by then, and the Job attaches the
// ConfigMap to the new revision as well.
func TestNothingChangedButTheWorkload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unowned bool // an older revision uses the ConfigMap and isn't an owner, as the original left it
		owners  int
	}{"LeftByUs": {owners: 2}, "LeftByTheOriginal": {unowned: true, owners: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			kept := input.ConfigMap("kept")
			l.source(kept)
			rollout := l.slowRollout(kept)
			rollout.act("1", kept)
			rollout.publish("1")
			request := asConfigmapAttacher(l.rolloutRequest(kept))
			if err := <-l.attachBeside(request); err != nil {
				t.Fatal(err)
			}
			if tc.unowned {
				rollout.act("0", kept, input.ConfigMap("of-yesterday"))
			}
			request.Grace = request.Timeout
			first := len(l.wire.sent())
			done := l.attachBeside(request)
			l.wire.awaitAfter(t, first, "WATCH replicasets", done)
			rollout.change(kept, input.ConfigMap("of-another"))
			rollout.act("2", kept, input.ConfigMap("of-another"))
			rollout.publish("2")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := l.controls(kept); len(got) != tc.owners || got["web-1"] || !got["web-2"] {
				t.Errorf("owners, and which is the controller: %v", got)
			}
		})
	}
}

// TestHashBehindTheNumber: Argo publishes the observed generation one write before the hash of
// the new revision. Its number is on the Rollout by then.
func TestHashBehindTheNumber(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	shared := input.ConfigMap("shared")
	l.source(shared)
	rollout := l.slowRollout(shared)
	rollout.act("1", shared)
	rollout.number("1", 1)
	rollout.publish("1")
	rollout.change(shared, input.ConfigMap("newer"))
	rollout.act("2", shared, input.ConfigMap("newer"))
	rollout.number("2", 2)
	rollout.publish("1") // observed, with the hash before
	done := l.attachBeside(asConfigmapAttacher(l.rolloutRequest(shared)))
	l.wire.await(t, "WATCH replicasets", done)
	rollout.publish("2")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := l.controls(shared); got["web-1"] || !got["web-2"] {
		t.Errorf("owners, and which is the controller: %v", got)
	}
}
