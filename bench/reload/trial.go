package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// trial is one program under one scenario.
type trial struct {
	plane    *plane
	world    *world
	program  *program
	duration time.Duration
	patience time.Duration
	seen     sightings
}

// sightings are what the load itself observes.
type sightings struct {
	// slowest is the time from a change to its rollout, in scenarios that wait for each.
	slowest time.Duration
	// refused counts genuine notifications that the program did not accept.
	refused int
}

// setUp bounds everything before and after the load of one trial. 100,000 objects take long to
// create.
const setUp = 30 * time.Minute

// measure starts a control plane, fills it, starts the program, puts load on it
// and waits until every workload is in step or patience ends.
func measure(ctx context.Context, o options, s scenario, c contender) (result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, setUp+o.duration+2*o.patience, errors.New("the scenario takes too long"))
	defer cancel()
	p, err := startPlane(ctx, o, s)
	if err != nil {
		return result{}, err
	}
	r := &trial{plane: p, world: newWorld(p.load, o.replicas), duration: o.duration, patience: o.patience}
	made, err := r.run(ctx, s, c)
	return made, errors.Join(err, p.stop())
}

func (r *trial) run(ctx context.Context, s scenario, c contender) (result, error) {
	made := result{Scenario: s.name, About: s.about, Program: c.name, Kubernetes: r.plane.cluster.Version()}
	s.build(r.world)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if err := r.world.watch(watching); err != nil {
		return made, err
	}
	if err := r.world.populate(ctx); err != nil {
		return made, err
	}
	if err := r.world.seen(ctx); err != nil {
		return made, err
	}
	if s.steps {
		if err := r.world.settled(ctx); err != nil {
			return made, err
		}
	}
	made.Sources, made.Workloads = len(r.world.sources), len(r.world.workloads)
	began := time.Now()
	var err error
	if r.program, err = startProgram(ctx, r.plane, c, s.flags); err != nil {
		return made, err
	}
	made, err = r.observe(ctx, s, made, began)
	return made, errors.Join(err, r.program.stop())
}

// observe measures the running program.
func (r *trial) observe(ctx context.Context, s scenario, made result, began time.Time) (result, error) {
	rest, err := r.program.rested(ctx, 5*time.Minute)
	if err != nil {
		return made, err
	}
	started, err := r.snapshot()
	if err != nil {
		return made, err
	}
	made.start(started, rest.Sub(began))
	loadBegan := time.Now()
	if err := s.load(ctx, r); err != nil {
		return made, fmt.Errorf("put load on it: %w", err)
	}
	made.Updates, made.LoadSeconds = int(r.world.updates.Load()), round(time.Since(loadBegan).Seconds())
	made.SlowestSeconds, made.Refused = round(r.seen.slowest.Seconds()), r.seen.refused
	inStep, err := r.converge(ctx)
	if err != nil {
		return made, err
	}
	switch {
	case s.still:
		made.LagSeconds = 0
	case !inStep.IsZero():
		made.LagSeconds = round(max(0, inStep.Sub(r.world.lastChange()).Seconds()))
	}
	// Late writes (events, state) and redundant rollouts count.
	if err := sleep(ctx, 3*time.Second); err != nil {
		return made, err
	}
	if _, err := r.program.rested(ctx, time.Minute); err != nil {
		return made, err
	}
	return r.finish(ctx, s, made, started)
}

func (r *trial) finish(ctx context.Context, s scenario, made result, started snapshot) (result, error) {
	ended, err := r.snapshot()
	if err != nil {
		return made, err
	}
	made.end(started, ended)
	stale := r.world.stale()
	misshown, err := r.world.misshown(ctx)
	if err != nil {
		return made, err
	}
	if made.Jobs, err = r.world.jobs(ctx); err != nil {
		return made, err
	}
	if s.floor {
		if made.FloorSeconds, err = r.floor(ctx); err != nil {
			return made, err
		}
	}
	if s.steps {
		made.Spread = r.world.spread()
	}
	made.Stale, made.Misshown = len(stale), len(misshown)
	made.Faults = made.judge(s)
	return made, nil
}

// floor is how long the load generator itself needs to patch every workload, once the
// program has ended: the control plane's cost on this machine, to compare the lag with.
func (r *trial) floor(ctx context.Context) (float64, error) {
	if err := r.program.process.Kill(); err != nil {
		return 0, err
	}
	began := time.Now()
	all := r.world.all()
	err := parallel(ctx, len(all), func(ctx context.Context, i int) error { return all[i].roll(ctx, r.world.client) })
	return round(time.Since(began).Seconds()), err
}

// snapshot contains the counts at one moment.
type snapshot struct {
	requests requests
	rollouts int
	used     cost
}

func (r *trial) snapshot() (snapshot, error) {
	asked, err := readAudit(r.plane.auditLog())
	if err != nil {
		return snapshot{}, err
	}
	used, err := r.program.used()
	if err != nil {
		return snapshot{}, err
	}
	r.world.mu.Lock()
	problem := r.world.problem
	r.world.mu.Unlock()
	return snapshot{requests: asked, rollouts: r.world.rollouts(), used: used}, problem
}

// converge waits until no workload is stale, and returns when the last one was rolled out;
// the zero time when patience ended before.
func (r *trial) converge(ctx context.Context) (time.Time, error) {
	deadline := time.Now().Add(r.patience)
	for time.Now().Before(deadline) {
		if len(r.world.stale()) == 0 {
			r.world.mu.Lock()
			defer r.world.mu.Unlock()
			return r.world.changed, nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

func (r *trial) changeAny(ctx context.Context, among []*source) error {
	return r.world.change(ctx, anyOf(among))
}

// pace is an interval and a duration.
type pace struct {
	each, lasting time.Duration
}

// every calls do at a steady pace for the duration of the load.
func (r *trial) every(ctx context.Context, each time.Duration, do func(context.Context, int) error) error {
	return r.everyFor(ctx, pace{each: each, lasting: r.duration}, do)
}

// everyFor calls do at a steady pace. Each call has its own goroutine, so a slow answer does
// not slow the load down.
func (r *trial) everyFor(ctx context.Context, p pace, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	err := p.steps(ctx, func(i int) error {
		group.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
		return nil
	})
	group.Wait()
	return errors.Join(err, context.Cause(ctx))
}

// oneByOne calls do at a steady pace, but never concurrently.
func (r *trial) oneByOne(ctx context.Context, each time.Duration, do func(context.Context, int) error) error {
	p := pace{each: each, lasting: r.duration}
	return p.steps(ctx, func(i int) error { return do(ctx, i) })
}

// steps keeps to a schedule: after a delay it catches up.
func (p pace) steps(ctx context.Context, do func(int) error) error {
	began := time.Now()
	for i := 0; time.Duration(i)*p.each < p.lasting; i++ {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(i)*p.each))); err != nil {
			return err
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}
