package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is the result of one program under one scenario.
type result struct {
	Scenario   string `json:"scenario"`
	About      string `json:"about"`
	Program    string `json:"program"`
	Kubernetes string `json:"kubernetes"`
	Sources    int    `json:"sources"`
	Workloads  int    `json:"workloads"`

	startCost
	loadCost
	// FloorSeconds is how long the load generator needs to patch every workload
	// without any program, 0 where that was not measured.
	FloorSeconds float64 `json:"floorSeconds,omitempty"`
	// Spread is how a change went through its steps, where there are some.
	Spread *spreadCost `json:"spread,omitempty"`
	Faults []string    `json:"faults,omitempty"`
}

// startCost is the cost of the start, until the program rests.
type startCost struct {
	StartSeconds    float64  `json:"startSeconds"`
	StartCPUSeconds float64  `json:"startCPUSeconds"`
	StartRollouts   int      `json:"startRollouts"`
	StartRequests   requests `json:"startRequests"`
	StartPeakMiB    float64  `json:"startPeakMiB"`
}

// loadCost is the cost of the load and its consequences.
type loadCost struct {
	Updates     int     `json:"updates"`
	LoadSeconds float64 `json:"loadSeconds"`
	Rollouts    int     `json:"rollouts"`
	// Stale counts stale workloads after the load. Misshown counts those whose template shows
	// another version than the current one. If such a workload isn't stale, the API server
	// accepted a change just before a patch for an earlier one: the pods read the change, the
	// patch could not show it, and a second rollout would be useless.
	Stale    int `json:"stale"`
	Misshown int `json:"misshown"`
	// LagSeconds is from the last change to the last rollout that it required, including the
	// program's own waiting; -1 when patience ended before.
	LagSeconds float64 `json:"lagSeconds"`
	// SlowestSeconds is the longest time from a change to its rollout, in scenarios that wait
	// for each.
	SlowestSeconds float64 `json:"slowestSeconds,omitempty"`
	// Refused counts genuine notifications that the program did not accept.
	Refused    int      `json:"refused,omitempty"`
	Requests   requests `json:"requests"`
	CPUSeconds float64  `json:"cpuSeconds"`
	PeakMiB    float64  `json:"peakMiB"`
	Jobs       int      `json:"jobs"`
}

func (r *result) start(s snapshot, took time.Duration) {
	r.StartSeconds, r.StartCPUSeconds = round(took.Seconds()), round(s.used.cpu.Seconds())
	r.StartRollouts, r.StartRequests = s.rollouts, s.requests
	r.StartPeakMiB = round(float64(s.used.peak) / (1 << 20))
	r.LagSeconds = -1
}

func (r *result) end(started, ended snapshot) {
	r.Rollouts = ended.rollouts - started.rollouts
	r.Requests = ended.requests.minus(started.requests)
	r.CPUSeconds = round((ended.used.cpu - started.used.cpu).Seconds())
	r.PeakMiB = round(float64(ended.used.peak) / (1 << 20))
}

// judge lists results that no reloader should have.
func (r *result) judge(s scenario) []string {
	var faults []string
	fault := func(n int, text string) {
		if n > 0 {
			faults = append(faults, fmt.Sprintf("%d %s", n, text))
		}
	}
	fault(r.Stale, "workloads stale")
	fault(r.StartRollouts, "rollouts because the program started")
	fault(r.Jobs, "Jobs started off schedule")
	fault(r.Refused, "genuine notifications refused")
	if s.peak > 0 && r.PeakMiB > float64(s.peak) {
		fault(int(math.Ceil(r.PeakMiB)), fmt.Sprintf("MiB at the peak, and %d are the limit", s.peak))
	}
	if s.still {
		fault(r.Rollouts, "rollouts although no content changed")
	}
	if r.Spread != nil {
		faults = append(faults, r.Spread.faults()...)
	}
	return faults
}

func (r *result) summary() string {
	text := fmt.Sprintf("%d updates, %d rollouts, %d stale, lag %s, peak %.0f MiB, CPU %.1f s at start and %.1f s after",
		r.Updates, r.Rollouts, r.Stale, r.lag(), r.PeakMiB, r.StartCPUSeconds, r.CPUSeconds)
	if r.SlowestSeconds > 0 {
		text += fmt.Sprintf(", slowest %.2f s", r.SlowestSeconds)
	}
	if r.FloorSeconds > 0 {
		text += fmt.Sprintf(", bare patches take %.2f s", r.FloorSeconds)
	}
	if r.Spread != nil {
		text += ", " + r.Spread.String()
	}
	if len(r.Faults) > 0 {
		text += "; FAULT: " + strings.Join(r.Faults, ", ")
	}
	return text
}

func (r *result) lag() string {
	if r.LagSeconds < 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f s", r.LagSeconds)
}

// slowest is empty where the load does not wait for each rollout.
func (r *result) slowest() string {
	if r.SlowestSeconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f s", r.SlowestSeconds)
}

// report is everything that one run measured.
type report struct {
	When       time.Time `json:"when"`
	Command    []string  `json:"command"`
	Kubernetes string    `json:"kubernetes"`
	Machine    machine   `json:"machine"`
	Programs   []string  `json:"programs"`
	Results    []result  `json:"results"`
}

func newReport(o options) *report {
	r := &report{When: time.Now().UTC().Truncate(time.Second), Kubernetes: o.kubernetes, Machine: thisMachine()}
	r.Command = append([]string{"go", "run", "./bench/reload"}, o.args...)
	for _, c := range o.contenders {
		r.Programs = append(r.Programs, c.name)
	}
	return r
}

// add judges a result by its control run, which came before it, and keeps it.
func (r *report) add(one result) result {
	if runs := r.runs(one.Scenario+control, one.Program); len(runs) > 0 {
		later := one.SlowestSeconds - runs[len(runs)-1].SlowestSeconds
		if later > tenantDelay.Seconds() {
			one.Faults = append(one.Faults, fmt.Sprintf("the slowest rollout came %.2f s later than in the control run", later))
		}
	}
	r.Results = append(r.Results, one)
	return one
}

// write replaces the file in one step.
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (r *report) print(to io.Writer) {
	t := tabwriter.NewWriter(to, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tprogram\tupdates\trollouts\tstale\tlag\tslowest\tlists\tgets\tpatches\tevents\tstate writes\tpeak MiB\tstart s\tstart CPU s\tCPU s\t")
	for _, one := range r.Results {
		asked := one.Requests
		events := asked["create events"] + asked["patch events"]
		// A review of one's own permissions is a create only by its verb.
		writes := asked.verb("create", "update", "patch", "delete") - events - asked["create selfsubjectaccessreviews"]
		states := asked["patch configmaps"] + asked["create configmaps"]
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t\n",
			one.Scenario, one.Program, one.Updates, one.Rollouts, one.Stale, one.lag(), one.slowest(),
			asked.verb("list", "stream"), asked.verb("get")-asked.discovery(), writes-states, events, states,
			one.PeakMiB, one.StartSeconds, one.StartCPUSeconds, one.CPUSeconds)
	}
	_ = t.Flush()
	for _, one := range r.Results {
		if one.Spread != nil {
			fmt.Fprintf(to, "%s, %s: %s\n", one.Scenario, one.Program, one.Spread)
		}
		for _, fault := range one.Faults {
			fmt.Fprintf(to, "FAULT %s, %s: %s\n", one.Scenario, one.Program, fault)
		}
	}
}

// faults is an error when the first program, which is Lockstep by default, did something
// that no reloader should do.
func (r *report) faults() error {
	for _, one := range r.Results {
		if one.Program == r.Programs[0] && len(one.Faults) > 0 {
			return fmt.Errorf("%s has faults", one.Program)
		}
	}
	return nil
}

// compareFiles shows where two runs differ by more than a fifth.
func compareFiles(to io.Writer, paths []string) error {
	var both [2]report
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &both[i]); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	t := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tprogram\tfigure\tfirst\tsecond\tdifference\t")
	compared, apart := 0, 0
	for _, a := range both[0].Results {
		i := slices.IndexFunc(both[1].Results, func(b result) bool { return a.Scenario == b.Scenario && a.Program == b.Program })
		if i < 0 {
			continue
		}
		for _, f := range figures(a, both[1].Results[i]) {
			compared++
			if f.apart() <= 0.2 {
				continue
			}
			apart++
			fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%.0f %%\t\n", a.Scenario, a.Program, f.name, f.a, f.b, 100*f.apart())
		}
	}
	_ = t.Flush()
	fmt.Fprintf(to, "%d of %d figures are more than 20 %% apart\n", apart, compared)
	if compared == 0 {
		return errors.New("the files have no scenario in common")
	}
	return nil
}

type figure struct {
	name string
	a, b float64
	// least is the resolution of the measure; a smaller difference is insignificant.
	least float64
}

func (f figure) apart() float64 {
	if math.Abs(f.a-f.b) <= f.least {
		return 0
	}
	return math.Abs(f.a-f.b) / max(f.a, f.b)
}

func figures(a, b result) []figure {
	return []figure{
		{"stale", float64(a.Stale), float64(b.Stale), 0},
		{"rollouts", float64(a.Rollouts), float64(b.Rollouts), 0},
		{"lag, s", a.LagSeconds, b.LagSeconds, 0.1},
		{"requests", float64(a.Requests.total()), float64(b.Requests.total()), 2},
		{"peak memory, MiB", a.PeakMiB, b.PeakMiB, 0},
		{"CPU at start, s", a.StartCPUSeconds, b.StartCPUSeconds, 0.1},
		{"CPU, s", a.CPUSeconds, b.CPUSeconds, 0.1},
	}
}

func round(f float64) float64 { return math.Round(f*100) / 100 }
