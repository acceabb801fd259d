package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// rampBudget is how many workloads may roll at the same time in the scenario ramp.
	rampBudget = 20
	// rampWait is the most that the program may wait in a step once the workloads are healthy, as the median.
	rampWait = 100 * time.Millisecond
	// rampPatience bounds the wait for pods of a fake node, which the machine's speed determines.
	rampPatience = 15 * time.Minute
)

// ramp measures how a change spreads in steps. A fake node runs the pods: with --settle=0, a workload is healthy as soon as its pods are.
func ramp(n int) scenario {
	return scenario{
		name: "ramp", steps: true, flags: fmt.Sprintf("--ramp=true --max-rolling=%d --settle=0s", rampBudget),
		about: fmt.Sprintf("1 ConfigMap that %d Deployments use, with pods on a fake node; 1 change, in steps", n),
		build: func(w *world) {
			shared := w.configMap("config")
			for i := range n {
				w.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), shared)
			}
		},
		load: func(ctx context.Context, r *trial) error {
			if err := r.world.change(ctx, r.world.sources[0]); err != nil {
				return err
			}
			return r.world.healthy(ctx)
		},
	}
}

// move is a rollout that began, or that is done, as the watch shows it.
type move struct {
	at   time.Time
	done bool
}

// isDone reports whether all pods of a Deployment are available and have its template.
func isDone(object runtime.Object) bool {
	d, ok := object.(*appsv1.Deployment)
	if !ok || d.Spec.Replicas == nil {
		return false
	}
	want, s := *d.Spec.Replicas, d.Status
	return s.ObservedGeneration >= d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want
}

// healthy waits until all workloads are in step and their pods available.
func (w *world) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rampPatience, errors.New("the workloads don't become healthy"))
	defer cancel()
	for {
		rolling := 0
		w.mu.Lock()
		for _, made := range w.workloads {
			if made.rolling {
				rolling++
			}
		}
		problem := w.problem
		w.mu.Unlock()
		stale := len(w.stale())
		if problem != nil || rolling == 0 && stale == 0 {
			return problem
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%d workloads roll, %d are stale: %w", rolling, stale, err)
		}
	}
}

// settled waits until the pods of all workloads are available for the first time, and forgets how they got there.
func (w *world) settled(ctx context.Context) error {
	if err := w.healthy(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves = nil
	return nil
}

// spread says how the last change spread.
func (w *world) spread() *spreadCost {
	began := w.lastChange()
	w.mu.Lock()
	defer w.mu.Unlock()
	cost := spreadOf(began, w.moves, rampBudget)
	return &cost
}

// spreadCost is how long a change took in steps.
type spreadCost struct {
	// HealthySeconds is from the change until every workload is healthy with it.
	HealthySeconds float64 `json:"healthySeconds"`
	// Steps is how often the program had to wait for healthy workloads before it could patch others.
	Steps int `json:"steps"`
	// MedianMillis and SlowestMillis are from the status that the program waited for to its next patch. FirstMillis are those of the
	// doubling steps, in which it waited for all workloads before.
	MedianMillis  float64   `json:"medianMillis"`
	SlowestMillis float64   `json:"slowestMillis"`
	FirstMillis   []float64 `json:"firstMillis"`
	// MostRolling is how many workloads rolled at the same time, and Early how many were patched before their step.
	MostRolling int `json:"mostRolling"`
	Early       int `json:"early"`
}

// spreadOf says how a change spread that began at a time. Nothing is derived from the program's own numbers.
func spreadOf(began time.Time, moves []move, budget int) spreadCost {
	var cost spreadCost
	var done []time.Time
	var waits []time.Duration
	patched, step := 0, -1
	for _, m := range moves {
		if m.done {
			done = append(done, m.at)
			continue
		}
		patched++
		cost.MostRolling = max(cost.MostRolling, patched-len(done))
		needed := healthyBefore(patched, budget)
		if needed > len(done) {
			cost.Early++
			continue
		}
		if needed == step || needed == 0 {
			continue // It is the same step, or the first one, which waits for no other workload.
		}
		step = needed
		waits = append(waits, m.at.Sub(done[needed-1]))
		if needed > patched-budget {
			cost.FirstMillis = append(cost.FirstMillis, millis(waits[len(waits)-1]))
		}
	}
	cost.Steps = len(waits)
	if len(done) > 0 {
		cost.HealthySeconds = round(done[len(done)-1].Sub(began).Seconds())
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		cost.MedianMillis, cost.SlowestMillis = millis(waits[len(waits)/2]), millis(waits[len(waits)-1])
	}
	return cost
}

// healthyBefore is how many workloads must be healthy before the n-th may roll: those of all steps before, which have 1, 2, 4, … workloads,
// until a step would be larger than the budget; then as many as leave room in it.
func healthyBefore(n, budget int) int {
	step := 1
	for n > 2*step-1 && step < budget {
		step *= 2
	}
	return max(step-1, n-budget)
}

func millis(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// faults lists what no program should do that spreads a change.
func (c *spreadCost) faults() []string {
	var faults []string
	if c.MostRolling > rampBudget {
		faults = append(faults, fmt.Sprintf("%d workloads rolled at the same time, and %d are the limit", c.MostRolling, rampBudget))
	}
	if c.Early > 0 {
		faults = append(faults, fmt.Sprintf("%d workloads patched before the earlier ones were healthy", c.Early))
	}
	if c.MedianMillis > millis(rampWait) {
		faults = append(faults, fmt.Sprintf("%.0f ms between healthy workloads and the next step, and %.0f are the limit", c.MedianMillis, millis(rampWait)))
	}
	return faults
}

func (c *spreadCost) String() string {
	return fmt.Sprintf("healthy after %.1f s, %d steps with %.0f ms each (median; slowest %.0f, first ones %.0f), at most %d rolling",
		c.HealthySeconds, c.Steps, c.MedianMillis, c.SlowestMillis, c.FirstMillis, c.MostRolling)
}
