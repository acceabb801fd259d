// Command sync measures the in-pod agent against a real API server: how long a
// change takes to become a file, how much memory and CPU a process uses, and
// how large the program is. configmap-reload is measured in the same run.
//
//	go run ./bench/sync -out bench/sync/result.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Result is one run. Limits are checked at the end: a figure beyond its limit
// makes the command fail.
type Result struct {
	When       string `json:"when"`
	Kubernetes string `json:"kubernetes"`
	// LoadAverageAtStart and AtEnd are the machine's: with more than one process per core, the
	// load dominates the latencies.
	LoadAverageAtStart string  `json:"loadAverageAtStart"`
	LoadAverageAtEnd   string  `json:"loadAverageAtEnd"`
	BinaryMB           float64 `json:"binaryMB"`

	// WriteMs is the API server's part of LatencyMs: from sending the change to the server's
	// response.
	WriteMs Percentiles `json:"writeMs"`
	// LatencyMs is from sending the change to the API server to reading it
	// from the file.
	LatencyMs Percentiles `json:"latencyMs"`
	// IdleRSSMiB is with one ConfigMap; IdleCPUms is CPU time in IdleSeconds.
	IdleRSSMiB  float64 `json:"idleRSSMiB"`
	IdleCPUms   float64 `json:"idleCPUms"`
	IdleSeconds float64 `json:"idleSeconds"`
	// StartedRSSMiB is three seconds after the start, with one ConfigMap.
	StartedRSSMiB float64 `json:"startedRSSMiBAfterThreeSeconds"`
	// TwoIdleRSSMiB is the sum of two agents, as next to Grafana.
	TwoIdleRSSMiB float64 `json:"twoIdleRSSMiB"`
	// Loaded is with 300 ConfigMaps of 50 kB.
	LoadedPeakMiB float64 `json:"loadedPeakMiB"`
	LoadedRSSMiB  float64 `json:"loadedRSSMiBAfterAMinute"`

	// Mounted compares the two programs on the same mounted directory.
	Mounted []Mounted `json:"mounted"`
}

// Percentiles are of one series of measurements.
type Percentiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// ours is the agent's name among the programs that are compared.
const ours = "lockstep-sync"

// Mounted is a program that watches a mounted directory and calls a URL.
type Mounted struct {
	Program   string      `json:"program"`
	BinaryMB  float64     `json:"binaryMB"`
	RSSMiB    float64     `json:"rssMiB"`
	LatencyMs Percentiles `json:"latencyMs"`
}

func main() {
	out := flag.String("out", "", "file for the result; empty means standard output only")
	memoryOnly := flag.Bool("memory", false, "measure only memory after the start and when idle, of one agent and of two; no other limits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out, *memoryOnly)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out string, memoryOnly bool) error {
	dir, err := os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cluster, err := labtest.Start(ctx, labtest.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			log.Print(err)
		}
	}()
	b, err := newBench(ctx, dir, cluster)
	if err != nil {
		return err
	}
	result := &Result{When: time.Now().UTC().Format(time.RFC3339), Kubernetes: cluster.Version(), LoadAverageAtStart: loadAverage()}
	measures := []func(context.Context, *Result) error{b.size, b.latency, b.idle, b.two, b.loaded, b.mounted}
	if memoryOnly {
		measures = []func(context.Context, *Result) error{b.prepare, b.idle, b.two}
	}
	for _, measure := range measures {
		if err := measure(ctx, result); err != nil {
			return err
		}
	}
	result.LoadAverageAtEnd = loadAverage()
	return errors.Join(write(result, out), result.check())
}

// loadAverage is of the last 1, 5 and 15 minutes.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}

func write(result *Result, out string) error {
	raw, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if _, err := os.Stdout.Write(raw); err != nil || out == "" {
		return err
	}
	return os.WriteFile(out, raw, 0o644)
}

// figure is one number and its limit.
type figure struct {
	what       string
	got, limit float64
}

// figures are the numbers that have a limit.
func (r *Result) figures() []figure {
	all := []figure{
		{"idle memory (MiB)", r.IdleRSSMiB, 14},
		{"memory 3 s after the start (MiB)", r.StartedRSSMiB, 16},
		{"two agents idle, together (MiB)", r.TwoIdleRSSMiB, 24},
		{"CPU while idle (ms in 30 s)", r.IdleCPUms, 30},
	}
	if r.LatencyMs.Count == 0 {
		return all // only memory was measured
	}
	all = append(all,
		figure{"binary (MB)", r.BinaryMB, 14},
		figure{"change to file, p50 (ms)", r.LatencyMs.P50, 10},
		figure{"change to file, p99 (ms)", r.LatencyMs.P99, 100},
		figure{"peak memory while loading (MiB)", r.LoadedPeakMiB, 40},
		figure{"memory a minute after loading (MiB)", r.LoadedRSSMiB, 16},
	)
	for _, m := range r.Mounted {
		if m.Program == ours {
			all = append(all, figure{"mounted directory: change to call, p50 (ms)", m.LatencyMs.P50, 10},
				figure{"mounted directory: change to call, p99 (ms)", m.LatencyMs.P99, 100},
				figure{"mounted directory: idle memory (MiB)", m.RSSMiB, 14})
		}
	}
	return all
}

// check compares the figures with their limits.
func (r *Result) check() error {
	var failed []error
	for _, c := range r.figures() {
		log.Printf("%-40s %8.2f  limit %g", c.what, c.got, c.limit)
		if c.got > c.limit {
			failed = append(failed, fmt.Errorf("%s: %.2f is over the limit of %g", c.what, c.got, c.limit))
		}
	}
	return errors.Join(failed...)
}

// build builds the program as it is released.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "lockstep-sync")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/lockstep-sync")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, output)
	}
	return path, nil
}
