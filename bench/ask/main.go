// Command ask measures the cost of listing the state of 5,000 workloads: the time, the
// memory and the requests of "lockstep status -A" on a real API server.
//
//	go run ./bench/ask -out bench/results/ask.json
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/bench/fleet"
	"github.com/lockstep-dev/lockstep/bench/internal/figures"
)

const runs = 5

// Result is one run. A figure beyond its limit makes the command fail.
type Result struct {
	When string `json:"when"`
	Go   string `json:"go"`
	// Load is the machine's load average before the commands, over a minute.
	Load string `json:"load"`
	// Rows is the number of rows in the output, and Waiting how many are not in step.
	Rows    int `json:"rows"`
	Waiting int `json:"waiting"`
	// MedianMs and MostMs are the durations of the command, PeakMiB its peak memory.
	MedianMs int `json:"medianMs"`
	MostMs   int `json:"mostMs"`
	PeakMiB  int `json:"peakMiB"`
	// Requests are the requests of one command, by resource; a list may come in pages.
	Requests map[string]int `json:"requests"`
}

func main() { figures.Main(run) }

func run(ctx context.Context, out string) (err error) {
	s, err := openScene(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.Fill(ctx); err != nil {
		return err
	}
	result, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if err := figures.Write(result, out); err != nil {
		return err
	}
	return result.check()
}

// measure runs the command a few times.
func (s *scene) measure(ctx context.Context) (Result, error) {
	result := Result{When: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		result.Load, _, _ = strings.Cut(string(load), " ")
	}
	var took []time.Duration
	for range runs {
		s.requests.reset()
		one, err := s.ask(ctx)
		if err != nil {
			return result, err
		}
		took = append(took, one.took)
		result.Rows, result.Waiting, result.PeakMiB = one.rows, one.waiting, max(result.PeakMiB, one.peakMiB)
		result.Requests = s.requests.counts()
	}
	slices.Sort(took)
	result.MedianMs, result.MostMs = int(took[runs/2].Milliseconds()), int(took[runs-1].Milliseconds())
	return result, nil
}

// check compares the figures with their limits.
func (r Result) check() error {
	var limits figures.Limits
	if r.Rows != fleet.Workloads || r.Waiting != fleet.Held {
		limits = append(limits, fmt.Errorf("%d rows, of which %d wait; want %d and %d", r.Rows, r.Waiting, fleet.Workloads, fleet.Held))
	}
	limits.Most("ms for the command", r.MostMs, 3000)
	limits.Most("MiB of the command", r.PeakMiB, 100)
	const pages = fleet.Workloads/500 + 1
	limits.Most("requests for deployments", r.Requests["deployments"], pages)
	for _, resource := range []string{"statefulsets", "daemonsets", "cronjobs", "rollouts"} {
		limits.Most("requests for "+resource, r.Requests[resource], 1)
	}
	return limits.Err()
}
