package monitoring_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestRules has promtool check the rules and run their cases.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool := labtest.Need(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", rulesFile}, {"test", "rules", casesFile}} {
		run := labtest.StartCommand(t, labtest.Command{Path: promtool, Args: args})
		// The cases are days of samples, which take long on a busy machine.
		if code := run.ExitCode(t, 5*time.Minute); code != 0 {
			t.Errorf("promtool %s: exit %d\n%s%s", strings.Join(args, " "), code, run.Stdout(), run.Stderr())
		}
	}
}

// TestEveryAlertHasCases: one in which it fires, and one beside it in which it does not.
func TestEveryAlertHasCases(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Name   string `json:"name"`
			Checks []struct {
				Expr    string           `json:"expr"`
				Samples []map[string]any `json:"exp_samples"`
			} `json:"promql_expr_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, casesFile), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]int{}, map[string]int{}
	name := regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing"\}$`)
	for _, test := range file.Tests {
		for _, check := range test.Checks {
			found := name.FindStringSubmatch(check.Expr)
			if found == nil || !strings.HasPrefix(test.Name, found[1]+" ") {
				t.Fatalf("%q checks %s: want the firing alerts of the name that the case begins with", test.Name, check.Expr)
			}
			if len(check.Samples) > 0 {
				fires[found[1]]++
			} else {
				silent[found[1]]++
			}
		}
	}
	for _, a := range readAlerts(t) {
		if fires[a.Alert] == 0 || silent[a.Alert] == 0 {
			t.Errorf("%s fires in %d cases and is silent in %d; want one of each at least", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		delete(fires, a.Alert)
	}
	if len(fires) > 0 {
		t.Errorf("there are cases for alerts that do not exist: %v", slices.Sorted(maps.Keys(fires)))
	}
}

// TestEveryAlertIsExplained: it has a severity, says what it is about, and leads to its
// section of the guide.
func TestEveryAlertIsExplained(t *testing.T) {
	t.Parallel()
	text := string(read(t, guide))
	var headings []string
	for _, found := range regexp.MustCompile(`(?m)^## (Lockstep\w+)$`).FindAllStringSubmatch(text, -1) {
		headings = append(headings, found[1])
	}
	var names []string
	for _, a := range readAlerts(t) {
		names = append(names, a.Alert)
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s has the severity %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		want := "https://github.com/lockstep-dev/lockstep/blob/main/docs/reference/alerts.md#" + strings.ToLower(a.Alert)
		if a.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(text, fmt.Sprintf("| [`%s`](#%s) | %s |", a.Alert, strings.ToLower(a.Alert), a.Labels["severity"])) {
			t.Errorf("the table of the guide has no row of %s with its severity", a.Alert)
		}
	}
	if !slices.Equal(names, headings) {
		t.Errorf("the guide explains %q, want %q", headings, names)
	}
}

// TestReasonsExist: the reasons that rules and panels select are those of the controller.
func TestReasonsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, e := range input.Explanations() {
		known[string(e.Reason)] = true
	}
	queries := map[string]string{}
	for _, a := range readAlerts(t) {
		queries[a.Alert] = a.Expr
	}
	for _, p := range readDashboard(t).Panels {
		for i, target := range p.Targets {
			queries[fmt.Sprint(p.Title, " ", i)] = target.Expr
		}
	}
	selected := 0
	for where, query := range queries {
		for _, found := range regexp.MustCompile(`\breason[!=]~?"([^"]*)"`).FindAllStringSubmatch(query, -1) {
			for reason := range strings.SplitSeq(found[1], "|") {
				selected++
				if !known[reason] {
					t.Errorf("%s selects the reason %q, which does not exist", where, reason)
				}
			}
		}
	}
	if selected == 0 {
		t.Error("no query selects a reason, or this test reads them wrongly")
	}
}

// TestDashboardIsTidy: panels have their own place, an identity, and say what they show.
func TestDashboardIsTidy(t *testing.T) {
	t.Parallel()
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		if other, twice := ids[p.ID]; twice {
			t.Errorf("%q and %q have the same id", other, p.Title)
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("%q has no description or no query", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, full := taken[at]; full || at[0] >= 24 {
					t.Fatalf("%q lies on %q or beside the dashboard", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
}
