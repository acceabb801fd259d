package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

var update = flag.Bool("update", false, "write the golden files")

// onRecord are the states that the record can tell: those that something ends, and the rest.
func onRecord(now time.Time) []ask.Report {
	since, next := now.Add(-5*time.Minute), now.Add(30*time.Second)
	states := []ask.Report{{Reason: string(input.InStep), Since: &since, From: ask.FromRecord}}
	for _, e := range input.Explanations() {
		if ends := input.Ends(e.Reason); ends != "" {
			states = append(states, ask.Report{Reason: string(e.Reason), Message: "configmap/app 3fa9c1d2e4 -> 77ab01c9de", Since: &since, Ends: ends, From: ask.FromRecord})
		}
	}
	states[1].Next = &next
	return append(states,
		ask.Report{Reason: string(input.Held), Message: "not rolled out: held", Since: &since, Ends: input.Ends(input.Held), From: ask.FromEvent},
		ask.Report{Reason: string(input.Baseline), Message: "configmap/app", From: ask.FromEstimate})
}

// TestGolden: what people read, for every state, at a fixed time.
func TestGolden(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	inputs := []ask.InputStatus{{Input: "configmap/app", Delivered: "3fa9c1d2e4", Current: "77ab01c9de"}, {Input: "secret/db", Delivered: "b039fb134e", Current: "b039fb134e"}}
	var rows []ask.Summary
	var explained bytes.Buffer
	for _, state := range onRecord(now) {
		inputs := slices.Clone(inputs)
		if state.IsInStep() {
			inputs[0].Current = inputs[0].Delivered
		}
		rows = append(rows, ask.Summary{Namespace: "shop", Workload: "deployment/" + strings.ToLower(state.Reason), State: state, Inputs: inputs})
		workloadAnswer{ask.Explanation{
			Namespace: "shop", Workload: "deployment/web", State: state, Meaning: input.MeaningOf(input.Reason(state.Reason)),
			Controller: ask.Controller{State: ask.Running, Version: "1.2.3"},
			Settings:   []ask.Setting{{Key: "lockstep.dev/reload", Value: "auto", On: "workload"}},
			Inputs: []ask.Use{
				{InputStatus: inputs[0], Followed: true, Places: []string{"volume config"}, WrittenBy: "kubectl", WrittenAt: state.Since},
				{InputStatus: inputs[1], Followed: true, Hidden: "forbidden"},
			},
			Events: []ask.Event{{At: now.Add(-time.Hour), Reason: string(input.Following), Note: "follows configmap/app"}},
		}}.print(&explained, now, false)
		explained.WriteString("\n")
	}
	golden(t, "explain.txt", explained.Bytes())
	for name, o := range map[string]statusOptions{
		"status.txt":      {output: outputOptions{formatTable}},
		"status-wide.txt": {output: outputOptions{formatWide}, scope: scopeOptions{all: true}},
	} {
		var table bytes.Buffer
		if err := o.table(&table, rows, now, true); err != nil {
			t.Fatal(err)
		}
		golden(t, name, table.Bytes())
	}
}

// TestGoldenRest: what only some workloads have, and sources.
func TestGoldenRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	since := now.Add(-5 * time.Minute)
	held := ask.Report{Reason: string(input.Held), Since: &since, Ends: input.Ends(input.Held), From: ask.FromRecord}
	down := ask.Controller{State: ask.Down, Since: &since, Version: "1.2.3", Note: "the states are its last decisions"}
	var text bytes.Buffer
	workloadAnswer{ask.Explanation{
		Namespace: "shop", Workload: "deployment/web", Controller: down, State: ask.Report{Reason: string(input.InStep), Since: &since, From: ask.FromRecord},
		Estimate: &ask.Report{Reason: string(input.QuietWindow), Message: "configmap/app 3fa9c1d2e4 -> 77ab01c9de", From: ask.FromEstimate},
		Notes:    []string{"events are not visible to you"},
		Inputs: []ask.Use{
			{InputStatus: ask.InputStatus{Input: "configmap/other"}, Places: []string{"volume other (all keys)"}},
			{InputStatus: ask.InputStatus{Input: "secret/db"}, Followed: true, Hidden: "forbidden"},
		},
		Warnings: []ask.Event{{At: since, Reason: string(input.SourceUnknown), Note: "the annotation names configmap/gone, which does not exist"}},
	}}.print(&text, now, false)
	text.WriteString("\n")
	sourceAnswer{ask.SourceExplanation{
		Namespace: "shop", Source: "configmap/app", Controller: down, WrittenBy: "kubectl", WrittenAt: &since, Owners: []string{"replicaset/web-1"},
		Settings: []ask.Setting{{Key: "lockstep.dev/hold", Value: "audit", On: "configmap"}},
		Users: []ask.SourceUser{
			{Workload: "deployment/web", State: held, Delivered: "3fa9c1d2e4", Current: "77ab01c9de"},
			{Workload: "deployment/api", State: ask.Report{Reason: string(input.Changed), From: ask.FromEstimate}, Delivered: "3fa9c1d2e4", Current: "77ab01c9de"},
		},
		Events: []ask.Event{{At: since, Reason: string(input.Attached), Note: "belongs to replicaset/web-1"}},
	}}.print(&text, now, false)
	text.WriteString("\n")
	sourceAnswer{ask.SourceExplanation{Namespace: "shop", Source: "secret/new", Controller: ask.Controller{State: ask.Unknown}}}.print(&text, now, false)
	text.WriteString("\n")
	opens := now.Add(14 * time.Hour)
	stops := []ask.Stop{{Namespace: "shop", Reason: "incident 42", Since: &since}, {}}
	failed := []ask.VersionStop{{Input: "configmap/app", Version: "77ab01c9de", FailedOn: []string{"deployment/a", "deployment/b in namespace blog"}, Since: &since, Waiting: 9}, {Input: "secret/root", FailedOn: []string{"deployment/c"}}}
	workloadAnswer{ask.Explanation{
		Namespace: "shop", Workload: "deployment/web", Controller: ask.Controller{State: ask.Running},
		State: ask.Report{Reason: string(input.AwaitsTurn), Message: "configmap/ca 0b1c2d3e4f -> 9e22aa01bc", Since: &since, Ends: "its turn: 12th of 53", From: ask.FromRecord},
		Flow: ask.Flow{Stops: stops, StoppedVersions: failed, Spread: []ask.Spreading{
			{Input: "configmap/ca", Users: 60, Healthy: 3, Rolling: 4, RollingNow: []string{"deployment/a", "deployment/b", "deployment/c"}, Waiting: 53, AtMost: 20, InLine: 53, Next: "deployment/d", Place: 12},
			{Input: "image/web", Users: 5, Rolling: 1, Waiting: 4, InLine: 4, Next: "deployment/web", Place: 1},
		}},
		Window: &ask.Window{Text: "0 2 * * * 2h Europe/Berlin", On: "on the namespace", Opens: &opens},
	}}.print(&text, now, false)
	text.WriteString("\n")
	sourceAnswer{ask.SourceExplanation{
		Namespace: "shop", Source: "configmap/app", Controller: ask.Controller{State: ask.Running}, Hidden: "forbidden",
		Flow:  ask.Flow{Stops: stops[:1], StoppedVersions: failed[:1], Spread: []ask.Spreading{{Input: "configmap/app", Users: 10, Waiting: 10, AtMost: 20, InLine: 9, Next: "deployment/d", Awaits: "deployment/canary in namespace shop goes first, and waits (QuietWindow)"}}},
		Users: []ask.SourceUser{{Workload: "deployment/web", State: held, Delivered: "3fa9c1d2e4", Current: "77ab01c9de"}},
	}}.print(&text, now, false)
	printStops(&text, stops, now)
	golden(t, "explain-rest.txt", text.Bytes())
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is written; look at it and run the tests with -update (-want +got):\n%s", file, diff)
	}
}

// TestColoursOnlyOnATerminal: a file and a pipe get none, and NO_COLOR refuses them anywhere.
func TestColoursOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	env := Environment{Stdout: &bytes.Buffer{}, Lookup: variables(nil)}
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	toFile := Environment{Stdout: file, Lookup: variables(nil)}
	if usesColour(env) || usesColour(toFile) {
		t.Error("what is no terminal gets colours")
	}
	var text bytes.Buffer
	if err := paint(&text, []byte("a\nb\n"), func(line int) string { return []string{"", colourStuck}[line] }); err != nil || text.String() != "a\n"+colourStuck+"b"+colourEnd+"\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// TestChangedRows: -w writes a workload again only when something about it is different.
func TestChangedRows(t *testing.T) {
	t.Parallel()
	row := ask.Summary{Namespace: "shop", Workload: "deployment/web", State: ask.Report{Reason: string(input.InStep)}}
	first, before := changedRows(nil, []ask.Summary{row})
	same, _ := changedRows(before, []ask.Summary{row})
	row.State.Reason = string(input.Held)
	other, _ := changedRows(before, []ask.Summary{row})
	gone, _ := changedRows(before, nil)
	if got := []int{len(first), len(same), len(other), len(gone)}; !slices.Equal(got, []int{1, 0, 1, 1}) {
		t.Errorf("%v rows are written, want the first, none, the changed one, and the one that is gone", got)
	}
}

// TestOneLine: what a tenant writes forges no line and steers no terminal.
func TestOneLine(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	workloadAnswer{ask.Explanation{
		Workload: "deployment/web", State: ask.Report{Reason: string(input.InStep)},
		Settings: []ask.Setting{{Key: "lockstep.dev/hold", Value: "x\nState: forged\x1b[2J", On: "workload"}},
		Events:   []ask.Event{{Reason: "Held", Note: "a\tb\x1b]0;title\a"}},
	}}.print(&text, time.Time{}, false)
	if strings.Contains(text.String(), "\nState: forged") || strings.ContainsAny(text.String(), "\x1b\a") {
		t.Errorf("%q", text.String())
	}
}
