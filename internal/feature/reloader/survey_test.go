package reloader

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// TestInspectsAll: a workload that follows nothing may still have to be resumed, or have annotations
// that aren't understood.
func TestInspectsAll(t *testing.T) {
	t.Parallel()
	r := testReloader(EnvVars)
	told, woken := 0, 0
	r.Tell, r.add = func(Event) { told++ }, func(kube.Key) { woken++ }
	o := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Annotations: map[string]string{
			r.Words.Keys.Auto: "yes", r.Words.Keys.PausedAt: "2026-11-01T12:00:00Z",
		}},
		Spec: appsv1.DeploymentSpec{Paused: true, Template: *follower().Template},
	}
	r.inspect(Kind{Kind: kube.Deployment()}, o, true, map[string]map[id]bool{})
	if told != 1 || woken != 1 {
		t.Errorf("%d warnings, want 1; looked at %d paused Deployments, want 1", told, woken)
	}
}

// TestShownBy: the record has no hash of a Secret that no template shows.
func TestShownBy(t *testing.T) {
	t.Parallel()
	all := []due{{change: of(func(c *change) { c.Type, c.Name = stakater.Secret, "db" })}, {change: of()}}
	for _, tc := range []struct {
		reason   string
		strategy Strategy
		action   action
		want     int
	}{
		{"a variable for each", EnvVars, action{}, 2},
		{"an annotation for the last", Annotations, action{}, 1},
		{"a restarted Rollout shows nothing", EnvVars, action{unmarked: true}, 0},
	} {
		if got := testReloader(tc.strategy).shownBy(task{due: all, action: tc.action}); len(got) != tc.want || len(got) == 1 && got[0].Type == stakater.Secret {
			t.Errorf("%s: %d are shown", tc.reason, len(got))
		}
	}
}

// TestDeletedIsForgotten: a source that is deleted and created again, neither of which counts, isn't
// a missed change for the next process.
func TestDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	r := New(Options{}, dependencies(time.Now))
	s := &source{Source: stakater.Source{Type: stakater.ConfigMap, Name: "app"}, namespace: "shop", hash: oldHash}
	r.record.put("shop", s.id(), entry{hash: oldHash})
	r.changed(s, nil)
	if _, known := r.record.entry("shop", s.id()); known {
		t.Error("it is still on record")
	}
}

// TestRefusals: what may not be written is named in the readiness, until it may be.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := testReloader(EnvVars)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "reloader-state-00", errors.New("no role"))
	r.record.report(refused)
	if all := r.listed.refusals(); len(all) != 1 || !all[0].Forbidden() {
		t.Errorf("refused is %v", all)
	}
	r.listed.wrote("write deployments", apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed")))
	r.record.report(nil)
	if all := r.listed.refusals(); len(all) != 0 {
		t.Errorf("%v is still refused", all)
	}
}
