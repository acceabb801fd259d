package kube

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestRebased: a decision holds for a later copy only if nothing that it depends on was written
// since. What the patch needs is that of the later copy.
func TestRebased(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 19, 3, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		change func(later *Workload)
		holds  bool
	}{
		"Label":        {"labels aren't kept", func(*Workload) {}, true},
		"Annotation":   {"another tool's first one, which the API server counts as a generation", func(w *Workload) { w.Target.Generation, w.HasAnnotations = 8, true }, true},
		"Written":      {"when doesn't matter", func(w *Workload) { w.WrittenAt = at.Add(time.Minute) }, true},
		"Hold":         {"a user forbids it", func(w *Workload) { w.Annotations = map[string]string{settings.Hold: "incident"} }, false},
		"Template":     {"another writer's rollout may have delivered it", func(w *Workload) { w.templateSum[0]++ }, false},
		"Operator":     {"the template's author writes a label", func(w *Workload) { w.TemplateAt = at.Add(time.Second) }, true},
		"Spec":         {"the template's author writes the rest of the spec, and the revision number shows that the template stayed", func(w *Workload) { w.TemplateAt, w.Target.Generation = at.Add(time.Second), 8 }, true},
		"Unnumbered":   {"another client writes the rest of a StatefulSet's spec", func(w *Workload) { w.Revision, w.Target.Generation = 0, 8 }, true},
		"CameAndWent":  {"a StatefulSet's template was written and taken back", func(w *Workload) { w.Revision, w.TemplateAt, w.Target.Generation = 0, at.Add(time.Second), 9 }, false},
		"NotObserved":  {"its controller acts on the other write", func(w *Workload) { w.Status.Observed, w.Target.Generation = false, 8 }, true},
		"Undone":       {"an undo takes the annotation from Lockstep", func(w *Workload) { w.RolledOutAt = time.Time{} }, false},
		"Installation": {"another installation rolled it out", func(w *Workload) { w.RolledOutBy = "other" }, false},
		"Revision":     {"another revision came and went", func(w *Workload) { w.Revision = 8 }, false},
		"Status":       {"its health may be another", func(w *Workload) { w.Status.Counts.Available = 1 }, false},
		"Paused":       {"a user paused it", func(w *Workload) { w.Status.Paused = true }, false},
		"Scaled":       {"with no pods, nothing rolls", func(w *Workload) { w.Replicas = 0 }, false},
		"Owner":        {"an operator took it over", func(w *Workload) { w.Owner = "Postgres/db" }, false},
		"Deleted":      {"it is going away", func(w *Workload) { w.Deleting = true }, false},
		"Another":      {"another one has its name", func(w *Workload) { w.UID, w.Target.UID = "2", "2" }, false},
		"Lender":       {"the template's object was replaced", func(w *Workload) { w.Target.UID = "2" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Workload{
				Identity: Identity{UID: "1", ResourceVersion: "10"}, Replicas: 2, Revision: 7, Status: Progress{Status: health.Status{Observed: true}},
				TemplateObject: TemplateObject{
					Target: Target{Name: "web", UID: "1", ResourceVersion: "10", Generation: 7}, WrittenAt: at, RolledOutAt: at, TemplateAt: at, TemplateBy: "helm",
				},
				WorkloadHistory: WorkloadHistory{StateSince: at},
			}
			later := *w
			later.ResourceVersion, later.Target.ResourceVersion, later.WorkloadHistory = "11", "11", WorkloadHistory{}
			if tc.change(&later); later.Revision == 0 {
				w.Revision = 0 // of a kind without numbers
			}
			rebased, holds := w.Rebased(&later)
			if holds != tc.holds {
				t.Errorf("%s: it holds: %t, want %t", tc.reason, holds, tc.holds)
			}
			if rebased.ResourceVersion != "11" || rebased.Target.ResourceVersion != "11" || rebased.HasAnnotations != later.HasAnnotations || rebased.StateSince != at {
				t.Errorf("%s: rebased to %+v", tc.reason, rebased)
			}
		})
	}
}
