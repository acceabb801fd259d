// Command ui measures the pages of "lockstep ui" with 5,000 workloads, in a real Chromium and on
// a real API server: how soon the table follows what is typed, how soon a change appears, the
// size of the overview, and the memory of the process.
//
//	go run ./bench/ui -out bench/results/ui.json
package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/bench/fleet"
	"github.com/lockstep-dev/lockstep/bench/internal/figures"
)

// runs is how often each time is measured.
const runs = 5

// Result is one run. A figure beyond its limit makes the command fail.
type Result struct {
	When string `json:"when"`
	Go   string `json:"go"`
	// Load is the machine's load average before the measurements, over a minute.
	Load      string `json:"load"`
	Browser   string `json:"browser"`
	Workloads int    `json:"workloads"`
	// Start is from the start of the command to the first complete overview.
	Start int `json:"startMs"`
	// Interactive is from the request for the overview until its scripts have run, Filter from a
	// key press to the painted result, and Live from a change in the API server to the painted row.
	Interactive Times `json:"interactive"`
	Filter      Times `json:"filter"`
	Live        Times `json:"live"`
	// OverviewKiB is the compressed overview with its first rows, AllKiB with all of them.
	OverviewKiB int `json:"overviewKiB"`
	AllKiB      int `json:"allKiB"`
	// PeakMiB is the peak memory of the command.
	PeakMiB int `json:"peakMiB"`
}

// Times are the durations of a few runs, in milliseconds.
type Times struct {
	MedianMs int `json:"medianMs"`
	MostMs   int `json:"mostMs"`
}

func times(took []time.Duration) Times {
	slices.Sort(took)
	return Times{MedianMs: int(took[len(took)/2].Milliseconds()), MostMs: int(took[len(took)-1].Milliseconds())}
}

func main() { figures.Main(run) }

func run(ctx context.Context, out string) (err error) {
	f, err := fleet.Open(ctx, "ui")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Fill(ctx); err != nil {
		return err
	}
	result := Result{When: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), Workloads: fleet.Workloads}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		result.Load, _, _ = strings.Cut(string(load), " ")
	}
	if err := measure(ctx, f, &result); err != nil {
		return err
	}
	if err := figures.Write(result, out); err != nil {
		return err
	}
	return result.check()
}

// check compares the figures with their limits.
func (r *Result) check() error {
	var limits figures.Limits
	limits.Most("ms from a key press to the painted table, median", r.Filter.MedianMs, 100)
	limits.Most("ms until the overview is interactive, median", r.Interactive.MedianMs, 1000)
	limits.Most("ms from a change to its row, median", r.Live.MedianMs, 1000)
	limits.Most("KiB of the compressed overview", r.OverviewKiB, 300)
	limits.Most("KiB of the compressed overview with all rows", r.AllKiB, 300)
	limits.Most("MiB of the command", r.PeakMiB, 150)
	return limits.Err()
}
