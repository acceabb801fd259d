package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	groupTenant = "tenant"
	// control ends the name of a control run: the same objects and writes, but nobody follows
	// the objects.
	control = "/control"
	// tenantPeak is the most memory that the program may need, in MiB, and tenantDelay how much
	// later than in the control run the neighbour's slowest rollout may come.
	tenantPeak  = 200
	tenantDelay = time.Second
)

// attack is one way for a tenant to cause load, with permissions in its own namespace only.
type attack struct {
	name, about string
	// flags are those that the program needs besides the usual ones.
	flags string
	// apps and configs are how many Deployments and ConfigMaps the tenant has, and onApps and
	// onConfigs their annotations.
	apps, configs     int
	onApps, onConfigs map[string]string
	// letters is the length of the ConfigMaps' names, without their number.
	letters int
	// revisions is how many old ones each Deployment has, of so many bytes. Each Deployment
	// selects the revisions of all.
	revisions, bytes int
	// down means that the program is down during the tenant's only write. Otherwise the tenant
	// writes 20 times a second.
	down bool
	// beside runs beside the writes, until the context ends.
	beside func(ctx context.Context, r *trial, hostile bool) error
	// shape changes the objects before they are made, but not in a control run.
	shape shape
	// memory means that only the peak is compared: there is no control run.
	memory bool
}

// tenants are scenarios in which one tenant causes as much load as the API server accepts,
// and another one waits for a rollout. Each has a control run, which comes first.
func tenants(s sizes) []scenario {
	var all []scenario
	for _, a := range slices.Concat(attacks(), shapedAttacks()) {
		a.apps, a.configs, a.revisions = s.share(a.apps), s.share(a.configs), s.share(a.revisions)
		if !a.memory {
			all = append(all, tenant(a, false))
		}
		all = append(all, tenant(a, true))
	}
	return all
}

// withImages are the flags of attacks that name registries.
const withImages = "--images --image-interval 10s --image-platforms linux/amd64 --cloud-identity=false "

func attacks() []attack {
	slow := func(i int) string { return fmt.Sprintf("configmap/*%s%02d", strings.Repeat("a", 120), i) }
	matching := func(i int) string {
		n := settings.MaxStarsEach
		return "configmap/a" + strings.Repeat("a", i/n) + strings.Repeat("*a", i%n) + "*"
	}
	return []attack{
		{
			name: "annotation", about: "256 KiB of patterns each",
			apps: 200, configs: 200, letters: 240, onApps: reload(strings.Repeat("configmap/*a*,", 18000)),
		},
		{
			name: "patterns", about: "64 patterns each that are slow to match",
			apps: 200, configs: 200, letters: 240, onApps: reload(patterns(slow)),
		},
		{
			name: "matching", about: "64 patterns each that match every ConfigMap",
			apps: 600, configs: 600, letters: 240, onApps: reload(patterns(matching)),
		},
		{
			name: "within-bounds", about: "64 patterns each that match every ConfigMap, which are just few enough to be followed",
			apps: 600, configs: 200, letters: 70, onApps: reload(patterns(matching)),
		},
		{
			name: "revisions", about: "old revisions of 900 KB each, which all Deployments select; one change while the program is down",
			apps: 32, configs: 1, onApps: reload("configmap/*"), revisions: 20, bytes: 900_000, down: true,
		},
		{
			name: "configs", about: "an annotation of 250 KB on each ConfigMap",
			configs: 800, onConfigs: reload(strings.Repeat("a", 250_000)),
		},
		{
			name: "registry", about: "an image annotation with a registry whose list of tags never ends, 7.5 MB a tag, gzipped",
			flags: withImages + "--plain-http-registry {registry}",
			apps:  1, onApps: map[string]string{"image.lockstep.dev/app": "{registry}/endless:^1"},
		},
		{
			name: "webhook", about: "64 slow notifications without a proof at a time, beside genuine ones",
			flags:  withImages + "--image-webhook-addr {webhook} --image-webhook-secret-file {secret}",
			beside: notify,
		},
	}
}

// reload is the annotation that lists what to follow.
func reload(what string) map[string]string { return map[string]string{"lockstep.dev/reload": what} }

// patterns lists as many of them as an annotation may have.
func patterns(pattern func(i int) string) string {
	list := make([]string, settings.MaxPatterns)
	for i := range list {
		list[i] = pattern(i)
	}
	return strings.Join(list, ",")
}

// tenant changes one ConfigMap of a modest tenant again and again, while the greedy one
// attacks.
func tenant(a attack, hostile bool) scenario {
	name, about := groupTenant+"/"+a.name, a.about
	if !hostile {
		name, about = name+control, "the same without an effect on the program: "+about
	}
	return scenario{
		name:  name,
		about: fmt.Sprintf("1 Deployment of one tenant; %d Deployments and %d ConfigMaps of another: %s", a.apps, a.configs, about),
		flags: a.flags, peak: tenantPeak,
		build: func(w *world) { w.addWorkload(kindDeployment, "app", w.configMap("config")) },
		load: func(ctx context.Context, r *trial) error {
			g := &greedy{attack: a, world: r.world, plane: r.plane, hostile: hostile}
			if err := g.populate(ctx); err != nil {
				return fmt.Errorf("make the greedy tenant's objects: %w", err)
			}
			beside := []func(context.Context) error{}
			if a.down {
				if err := r.restartAround(ctx, func() error { return g.write(ctx, 0) }); err != nil {
					return err
				}
			} else if a.apps+a.configs > 0 {
				beside = append(beside, g.keepBusy)
			}
			if a.beside != nil {
				beside = append(beside, func(ctx context.Context) error { return a.beside(ctx, r, hostile) })
			}
			return whileBusy(ctx, beside, r.changeAndWait)
		},
	}
}

// whileBusy calls do while others run, and ends them.
func whileBusy(ctx context.Context, others []func(context.Context) error, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var busy sync.WaitGroup
	errDone := errors.New("done")
	for _, other := range others {
		busy.Go(func() {
			if err := other(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	err := do(ctx)
	cancel(errDone)
	busy.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errDone) {
		return cause
	}
	return err
}

// restartAround lets the program see the tenant's objects, kills it, and starts it again after
// the change.
func (r *trial) restartAround(ctx context.Context, change func() error) error {
	if _, err := r.program.rested(ctx, r.patience); err != nil {
		return err
	}
	if err := r.program.kill(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return r.program.start()
}

// changeAndWait changes the one source and waits for its rollout until the time of the load
// is over, and records the slowest rollout.
func (r *trial) changeAndWait(ctx context.Context) error {
	for end := time.Now().Add(r.duration); time.Now().Before(end); {
		if err := r.world.change(ctx, r.world.sources[0]); err != nil {
			return err
		}
		_, changed := r.world.sources[0].lastWrite()
		inStep, err := r.converge(ctx)
		if err != nil {
			return err
		}
		if inStep.IsZero() {
			say("  the rollout after a change did not come")
			r.seen.slowest = time.Since(changed)
			return nil
		}
		r.seen.slowest = max(r.seen.slowest, inStep.Sub(changed))
	}
	return nil
}
