package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// scenario is one kind of load.
type scenario struct {
	name  string
	about string
	// build defines the objects that exist before the program starts.
	build func(w *world)
	// load changes them.
	load func(ctx context.Context, r *trial) error
	// still is true when no workload may be rolled out at all.
	still bool
	// flags are those that Lockstep needs besides the usual ones.
	flags string
	// peak is the most memory that the program may need, in MiB; 0 for no limit.
	peak int
	// floor measures the time that bare patches of all workloads take.
	floor bool
	// steps is true when pods become available, on a fake node, and the steps of a change are measured.
	steps bool
}

// The names of groups of scenarios, in the order in which they run.
const (
	groupFanOut = "fan-out"
	groupBig    = "big"
)

// bigPeak is the most memory that the program may need for 100,000 ConfigMaps and Secrets, in
// MiB.
const bigPeak = 160

func scenarios(s sizes) []scenario {
	all := []scenario{
		burst(), noOp(), churn(), restart(), pressure(), large(), kinds(), mixed(), pair(),
	}
	all = append(all, tenants(s)...)
	all = append(all, ramp(s.ramp))
	for _, n := range s.fanOut {
		all = append(all, fanOut(n))
	}
	for _, bytes := range s.bytes {
		all = append(all, big(s, bytes))
	}
	return all
}

func scenarioNames() string {
	return "all, burst, no-op, churn, restart, pressure, large, kinds, mixed, pair, ramp, " + groupTenant + ", " + groupFanOut + ", " + groupBig
}

// chooseScenarios finds scenarios by name, or by the name of their group: "tenant", and
// "tenant/patterns" with its control run.
func chooseScenarios(names string, s sizes) ([]scenario, error) {
	var chosen []scenario
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		before := len(chosen)
		for _, one := range scenarios(s) {
			if name == "all" || name == one.name || strings.HasPrefix(one.name, name+"/") {
				chosen = append(chosen, one)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("--scenario %q: there is %s", name, scenarioNames())
		}
	}
	return chosen, nil
}

// pairs defines n ConfigMaps, each used by one Deployment.
func pairs(w *world, n int) {
	for i := range n {
		w.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), w.configMap(fmt.Sprintf("config-%d", i)))
	}
}

func burst() scenario {
	return scenario{
		name: "burst", about: "10 ConfigMaps, 10 Deployments; 10 random changes a second",
		build: func(w *world) { pairs(w, 10) },
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 100*time.Millisecond, func(ctx context.Context, _ int) error { return r.changeAny(ctx, r.world.sources) })
		},
	}
}

func noOp() scenario {
	return scenario{
		name: "no-op", about: "10 ConfigMaps, 10 Deployments; 10 changes of annotations a second, content unchanged", still: true,
		build: func(w *world) { pairs(w, 10) },
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 100*time.Millisecond, func(ctx context.Context, _ int) error {
				r.world.updates.Add(1)
				return anyOf(r.world.sources).touch(ctx, r.world.client)
			})
		},
	}
}

func churn() scenario {
	const kept = 10
	return scenario{
		name: "churn", about: "1 ConfigMap; 5 new Deployments a second of which 10 are kept; a change every 2 s",
		build: func(w *world) { w.configMap("config") },
		load: func(ctx context.Context, r *trial) error {
			shared := r.world.sources[0]
			made := []*workload{}
			return r.oneByOne(ctx, 200*time.Millisecond, func(ctx context.Context, i int) error {
				next := r.world.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), shared)
				if err := next.create(ctx, r.world.client); err != nil {
					return err
				}
				made = append(made, next)
				if len(made) > kept {
					if err := made[len(made)-1-kept].remove(ctx, r.world.client); err != nil {
						return err
					}
				}
				if i%10 == 9 {
					return r.world.change(ctx, shared)
				}
				return nil
			})
		},
	}
}

// restart kills the program at a third of the load. Half of the sources that change while it
// is down are not changed again, so a missed change can't hide behind a later one.
func restart() scenario {
	return scenario{
		name: "restart", about: "20 ConfigMaps, 20 Deployments; 5 changes a second; kill -9, 3 s away during which all 20 change, started again",
		build: func(w *world) { pairs(w, 20) },
		load: func(ctx context.Context, r *trial) error {
			all := r.world.sources
			steps := func(part int, among []*source) error {
				return r.everyFor(ctx, pace{each: 200 * time.Millisecond, lasting: r.duration * time.Duration(part) / 3}, func(ctx context.Context, _ int) error {
					return r.changeAny(ctx, among)
				})
			}
			if err := steps(1, all); err != nil {
				return err
			}
			if err := r.program.kill(); err != nil {
				return err
			}
			for _, s := range all {
				if err := r.world.change(ctx, s); err != nil {
					return err
				}
			}
			if err := sleep(ctx, 3*time.Second); err != nil {
				return err
			}
			if err := r.program.start(); err != nil {
				return err
			}
			return steps(2, all[:len(all)/2])
		},
	}
}

func pressure() scenario {
	return scenario{
		name: "pressure", about: "50 ConfigMaps, 50 Deployments; 100 random changes a second",
		build: func(w *world) { pairs(w, 50) },
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 10*time.Millisecond, func(ctx context.Context, _ int) error { return r.changeAny(ctx, r.world.sources) })
		},
	}
}

func large() scenario {
	return scenario{
		name: "large", about: "10 ConfigMaps of 2 x 100 KiB, 10 Deployments; one key rewritten, 5 a second",
		build: func(w *world) {
			for i := range 10 {
				s := w.addSource(input.KindConfigMap, fmt.Sprintf("config-%d", i), 100<<10, 100<<10)
				w.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), s)
			}
		},
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 200*time.Millisecond, func(ctx context.Context, _ int) error { return r.changeAny(ctx, r.world.sources) })
		},
	}
}

func kinds() scenario {
	return scenario{
		name: "kinds", about: "1 ConfigMap; 5 Deployments, 3 StatefulSets, 2 DaemonSets, 2 CronJobs; a change every 10 s",
		build: func(w *world) {
			shared := w.configMap("config")
			for kind, n := range map[string]int{kindDeployment: 5, kindStatefulSet: 3, kindDaemonSet: 2, kindCronJob: 2} {
				for i := range n {
					w.addWorkload(kind, fmt.Sprintf("app-%d", i), shared)
				}
			}
		},
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 10*time.Second, func(ctx context.Context, _ int) error { return r.world.change(ctx, r.world.sources[0]) })
		},
	}
}

func mixed() scenario {
	return scenario{
		name: "mixed", about: "5 ConfigMaps and 5 Secrets; 10 Deployments that use one or both; 2 random changes a second",
		build: func(w *world) {
			for i := range 5 {
				cm := w.configMap(fmt.Sprintf("config-%d", i))
				secret := w.addSource(input.KindSecret, fmt.Sprintf("secret-%d", i), 64, 0)
				w.addWorkload(kindDeployment, fmt.Sprintf("secret-%d", i), secret)
				switch {
				case i < 3:
					w.addWorkload(kindDeployment, fmt.Sprintf("config-%d", i), cm)
				default:
					w.addWorkload(kindDeployment, fmt.Sprintf("both-%d", i), cm, secret)
				}
			}
		},
		load: func(ctx context.Context, r *trial) error {
			return r.every(ctx, 500*time.Millisecond, func(ctx context.Context, _ int) error { return r.changeAny(ctx, r.world.sources) })
		},
	}
}

// pair changes a ConfigMap and a Secret together: a deployment, as Helm does it.
func pair() scenario {
	return scenario{
		name: "pair", about: "20 Deployments, each with a ConfigMap and a Secret of its own; all 40 change once",
		build: func(w *world) {
			for i := range 20 {
				cm := w.configMap(fmt.Sprintf("config-%d", i))
				secret := w.addSource(input.KindSecret, fmt.Sprintf("secret-%d", i), 64, 0)
				w.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), cm, secret)
			}
		},
		load: func(ctx context.Context, r *trial) error {
			for _, s := range r.world.sources {
				if err := r.world.change(ctx, s); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// fanOut changes the source twice, the second time when all workloads have followed the
// first change.
func fanOut(n int) scenario {
	return scenario{
		name: fmt.Sprintf("%s/%d", groupFanOut, n), floor: true, about: fmt.Sprintf("1 ConfigMap that %d Deployments use; 2 changes, one after the other", n),
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
			if _, err := r.converge(ctx); err != nil {
				return err
			}
			if err := sleep(ctx, 2*time.Second); err != nil {
				return err
			}
			return r.world.change(ctx, r.world.sources[0])
		},
	}
}

// big measures the cost of size: one change of a hundred sources among many.
func big(s sizes, bytes int) scenario {
	return scenario{
		name: fmt.Sprintf("%s/%d", groupBig, bytes), peak: bigPeak,
		about: fmt.Sprintf("%d ConfigMaps and Secrets of %d bytes, %d Deployments with one of each; first start, then 100 of them change", s.objects, bytes, s.workloads),
		build: func(w *world) {
			for i := range s.objects / 2 {
				cm := w.addSource(input.KindConfigMap, fmt.Sprintf("config-%d", i), bytes, 0)
				secret := w.addSource(input.KindSecret, fmt.Sprintf("secret-%d", i), bytes, 0)
				if i < s.workloads {
					w.addWorkload(kindDeployment, fmt.Sprintf("app-%d", i), cm, secret)
				}
			}
		},
		load: func(ctx context.Context, r *trial) error {
			some := r.world.sources[:min(100, len(r.world.sources))]
			return parallel(ctx, len(some), func(ctx context.Context, i int) error { return r.world.change(ctx, some[i]) })
		},
	}
}

func anyOf(among []*source) *source {
	return among[rand.IntN(len(among))]
}

// sleep waits, unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
