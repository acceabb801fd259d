package ask

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

func version(sum string) fingerprint.Version { return fingerprint.Version{Basis: "1:*", Sum: sum} }

// due is a ConfigMap that changes, inStep one that does not.
func due(id input.ID) input.Finding {
	return input.Finding{ID: id, Standing: input.Due, Reason: input.Changed, Versions: input.Versions{Delivered: version("1111111111"), Current: version("2222222222")}, Live: true, Refresh: input.Everything}
}

func inStep(id input.ID) input.Finding {
	return input.Finding{ID: id, Reason: input.InStep, Versions: input.Versions{Delivered: version("1111111111"), Current: version("1111111111")}, Live: true}
}

// gathered is a Deployment that runs an image, with what was found of its inputs.
func gathered(t *testing.T, image string, change func(*kube.Workload, *rollouts.Observation), findings ...input.Finding) rollouts.Gathered {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "1"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	w, err := kube.SlimWorkload(kube.Deployment(), d, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	in := rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Strategy: settings.StrategyTemplate, Quiet: 1 << 40}, Assessment: input.Assessment{Findings: findings}}
	if change != nil {
		change(w, &in)
	}
	return rollouts.Gathered{Workload: w, Observation: in}
}

func TestRow(t *testing.T) {
	t.Parallel()
	app, db := input.ConfigMap("app"), input.Secret("db")
	strategy := func(name settings.StrategyName) func(*kube.Workload, *rollouts.Observation) {
		return func(_ *kube.Workload, in *rollouts.Observation) { in.Intent.Strategy, in.State.Replicas = name, 1 }
	}
	byHand := func(w *kube.Workload, in *rollouts.Observation) {
		w.Status.OnDelete = true
		in.State.Rollout = health.Status{OnDelete: true}
	}
	observe := func(_ *kube.Workload, in *rollouts.Observation) { in.Intent.Observe = true }
	held := func(_ *kube.Workload, in *rollouts.Observation) { in.Intent.Held = true }
	paused := func(w *kube.Workload, in *rollouts.Observation) {
		w.Status.Paused, in.State.Rollout.Paused = true, true
	}
	deleting := func(w *kube.Workload, _ *rollouts.Observation) { w.Deleting = true }
	delivered := inStep(app)
	delivered.Standing, delivered.Reason, delivered.Current = input.Record, input.DeliveredByRollout, version("2222222222")
	const change = "configmap/app 1111111111 -> 2222222222"
	before := gathered(t, "app", nil, inStep(app))
	cases := map[string]struct {
		why  string
		p    prospect
		want PlannedWorkload
	}{
		"Roll":          {"due, and the quiet window is over", prospect{before: before, after: gathered(t, "app", nil, due(app))}, PlannedWorkload{Would: WouldRoll, Reason: input.Reloaded, Because: change + ", after the quiet window"}},
		"DueAnyway":     {"the files change nothing about it", prospect{before: gathered(t, "app", nil, due(app)), after: gathered(t, "app", nil, due(app))}, PlannedWorkload{Would: WouldRoll, Reason: input.Reloaded, Because: change + ", after the quiet window; it is due even without the files"}},
		"Template":      {"Kubernetes rolls it out, and that delivers", prospect{before: before, after: gathered(t, "app:2", nil, delivered)}, PlannedWorkload{Would: WouldRollByTemplate, Reason: input.DeliveredByRollout, Because: "its template changes; " + change + " comes with it"}},
		"TemplateHeld":  {"a hold does not stop another writer's rollout", prospect{before: before, after: gathered(t, "app:2", held, due(app))}, PlannedWorkload{Would: WouldRollByTemplate, Reason: input.Held, Because: "its template changes; held by annotation lockstep.dev/hold: " + change}},
		"Twice":         {"the template came first", prospect{before: before, after: gathered(t, "app:2", nil, due(app))}, PlannedWorkload{Would: WouldRollTwice, Reason: input.Reloaded, Because: "its template changes, and then, in the order of the files, " + change}},
		"TemplatePause": {"a pause stops a rollout", prospect{before: before, after: gathered(t, "app:2", paused, inStep(app))}, PlannedWorkload{Would: WouldWait, Reason: input.Paused, Because: "its template changes, and it is paused (spec.paused)"}},
		"ByHand":        {"its pods wait for a person", prospect{before: before, after: gathered(t, "app:2", byHand, delivered)}, PlannedWorkload{Would: WouldWait, Reason: input.AwaitsPods, Because: "its template changes, and pods load it only after they are deleted"}},
		"Evict":         {"by way of its pods", prospect{before: before, after: gathered(t, "app", strategy(settings.StrategyEvict), due(app))}, PlannedWorkload{Would: WouldEvict, Reason: input.Evicting, Because: change + ", after the quiet window"}},
		"Refresh":       {"no pod restarts", prospect{before: before, after: gathered(t, "app", strategy(settings.StrategyRefresh), due(app))}, PlannedWorkload{Would: WouldRefresh, Reason: input.Refreshed, Because: change + ", after the quiet window"}},
		"Observe":       {"people are only told", prospect{before: before, after: gathered(t, "app", observe, due(app))}, PlannedWorkload{Would: WouldNothing, Reason: input.WouldReload, Because: "observe mode: " + change}},
		"Deleting":      {"it goes", prospect{before: before, after: gathered(t, "app", deleting)}, PlannedWorkload{Would: WouldNothing, Reason: input.NotFollowed, Because: "it is being deleted"}},
		"NewUnasked":    {"a workload that nothing asks for", prospect{after: gathered(t, "app", nil)}, PlannedWorkload{Would: WouldStart, Reason: input.NotFollowed, Because: "it is new, and no annotation enables following it"}},
		"Masked":        {"digests that mean nothing to others are not shown", prospect{before: before, after: gathered(t, "app", nil, due(db)), assumed: []input.ID{db}}, PlannedWorkload{Would: WouldRoll, Reason: input.Reloaded, Because: "secret/db (not visible to you), after the quiet window", Estimate: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.p.key = tc.p.after.Workload.Key
			tc.want.Workload, tc.want.Namespace, tc.want.Rule = "deployment/web", "shop", rule(tc.want.Reason)
			if diff := cmp.Diff(tc.want, tc.p.row()); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.why, diff)
			}
		})
	}
}

// TestRulesAreDocumented: the place that plan names for a reason exists.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, e := range input.Explanations() {
		file, anchor, _ := strings.Cut(rule(e.Reason), "#")
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `<a id="`+anchor+`"></a>`) {
			t.Errorf("%s has no place %s", file, anchor)
		}
	}
}
