package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// printed is what a person sees, without the blanks at the ends of lines.
func printed(t *testing.T, show func(*bytes.Buffer) error) string {
	t.Helper()
	var text bytes.Buffer
	if err := show(&text); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func TestPrintHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	pods := func(n int) *int { return &n }
	h := ask.History{
		Revisions: []ask.Revision{
			{Number: 4, Name: "web-a", Started: ago(time.Minute), Current: true, Again: true, Pods: pods(2), By: "kubectl-rollout", Changed: []ask.Change{{What: "configmap/app", From: "2222222222", To: "1111111111"}}},
			{Number: 3, Name: "web-c", Started: ago(time.Hour), Pods: pods(0), By: ask.ByLockstep, Inputs: map[string]string{"secret/db": "3333333333", "configmap/app": "2222222222"}, Changed: []ask.Change{
				{What: "image/app", From: "app:1", To: "app:1@sha256:77ab01c9de77ab01c9de77ab01c9de77ab01c9de77ab01c9de77ab01c9de77ab"}, {What: "secret/db", To: "3333333333"},
			}},
			{Number: 2, Name: "web-a", Again: true, By: ask.ByUnknown, Changed: []ask.Change{{What: "other fields of the template"}}},
			{Number: 1, Name: "web-b", Started: ago(48 * time.Hour), First: true, By: ask.ByUnknown},
		},
		Notes:  []string{"events cannot be read: forbidden"},
		Events: []ask.Event{{At: now.Add(-time.Hour), Reason: "ScalingReplicaSet", Note: "Scaled up", By: "deployment-controller"}, {At: now.Add(-time.Minute), Reason: "Undone", Note: "configmap/app was reverted", By: "lockstep"}},
	}
	want := `
REVISION    AGE   PODS   CHANGED                                                             BY
4 current   60s   2      configmap/app 2222222222 -> 1111111111, an earlier revision again   kubectl-rollout
3           60m   0      image/app app:1 -> app:1@77ab01c9de, secret/db -> 3333333333        Lockstep
2           -     -      other fields of the template, an earlier revision again             not known
1           2d    -      (the oldest revision)                                               not known
events cannot be read: forbidden

AGE   REASON   BY         EVENT
60s   Undone   lockstep   configmap/app was reverted
`
	if diff := cmp.Diff(want, printed(t, func(to *bytes.Buffer) error { return printHistory(to, h, now, false) })); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	wide := printed(t, func(to *bytes.Buffer) error { return printHistory(to, h, now, true) })
	for _, text := range []string{"NAME", "web-c", "configmap/app 2222222222, secret/db 3333333333", "ScalingReplicaSet"} {
		if !strings.Contains(wide, text) {
			t.Errorf("-o wide lacks %q:\n%s", text, wide)
		}
	}
}

func TestPrintPlan(t *testing.T) {
	t.Parallel()
	p := ask.Plan{
		Workloads: []ask.PlannedWorkload{
			{Namespace: "shop", Workload: "deployment/web", Would: ask.WouldRoll, Reason: input.Reloaded, Rule: "docs/reference/reasons.md#reloaded", Because: "configmap/app 1111111111 -> 2222222222, after the quiet window"},
			{Namespace: "shop", Workload: "deployment/db", Would: ask.WouldWait, Reason: input.Held, Because: "held", Estimate: true},
		},
		Sources: []ask.PlannedSource{
			{Source: "configmap/app", Namespace: "shop", Change: ask.Changed, Users: 2},
			{Source: "configmap/fixed", Namespace: "shop", Change: ask.Refused, Users: 1},
			{Source: "configmap/lost", Namespace: "shop", Change: ask.Created},
			{Source: "configmap/same", Namespace: "shop", Change: ask.Unchanged},
			{Source: "secret/db", Namespace: "shop", Change: ask.Assumed, Users: 1},
		},
		Others: map[string]int{"Service": 2, "Ingress": 1},
		Notes:  []string{"the record cannot be read: the current versions count as delivered"},
	}
	want := `
NAMESPACE   WORKLOAD         WOULD       REASON     BECAUSE
shop        deployment/web   roll once   Reloaded   configmap/app 1111111111 -> 2222222222, after the quiet window
shop        deployment/db    wait        Held       held (estimate)
configmap/fixed in namespace shop is immutable: the API server would refuse this change; give the new content a new name
configmap/lost in namespace shop: created, and no workload uses it
secret/db in namespace shop is not visible to you: assumed to change
other objects, which don't restart workloads: 1 Ingress, 2 Service
the record cannot be read: the current versions count as delivered
`
	if diff := cmp.Diff(want, printed(t, func(to *bytes.Buffer) error { return printPlan(to, p, false) })); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if wide := printed(t, func(to *bytes.Buffer) error { return printPlan(to, p, true) }); !strings.Contains(wide, "docs/reference/reasons.md#reloaded") {
		t.Errorf("-o wide names no rule:\n%s", wide)
	}
	if got := printed(t, func(to *bytes.Buffer) error { return printPlan(to, ask.Plan{}, false) }); got != "\nno workload would change\n" {
		t.Errorf("an empty plan says %q", got)
	}
}

// TestPlanUsage: what is wrong with files is told before a cluster is looked for.
func TestPlanUsage(t *testing.T) {
	t.Parallel()
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("# values\nreplicas: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"NoFile":    {[]string{"plan"}, "name a file, a directory or - with --filename (-f)"},
		"Values":    {[]string{"plan", "-f", values}, "values.yaml:2: not a manifest: apiVersion is missing"},
		"Missing":   {[]string{"plan", "-f", values + "x"}, "values.yamlx: no such file"},
		"Output":    {[]string{"plan", "-f", values, "-o", "xml"}, `--output "xml"`},
		"Argument":  {[]string{"plan", values}, "not a manifest: apiVersion is missing"},
		"NoCluster": {[]string{"history", "deployment/web", "--kubeconfig", values + "x"}, "values.yamlx"},
		"Kind":      {[]string{"history", "service/web"}, `unknown kind "service"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			env := Environment{Stdout: &stdout, Stderr: &stderr, Lookup: func(string) (string, bool) { return "", false }, Now: time.Now}
			if code := Run(t.Context(), tc.args, env); code != exitUsage || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("%q ended with %d and says %q, want %q", tc.args, code, stderr.String(), tc.want)
			}
		})
	}
}
