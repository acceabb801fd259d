package labtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// startTimeout bounds the start of a control plane whose programs are built. It
// takes about six seconds on two idle cores; tests run on busy ones.
const startTimeout = 5 * time.Minute

// errNotOurs is returned to a user of a shared control plane that tries to stop it for the
// others.
var errNotOurs = errors.New("another process started this control plane; use a private one")

// Cluster is a running control plane.
type Cluster struct {
	options Options
	run     *Run
	api     *api
	etcd    int // the port that etcd serves clients at
	secure  int // the port of the API server

	guard *guard

	mu        sync.Mutex
	programs  map[string]program.Built
	processes map[string]*process.Process
}

// Start builds missing programs and starts a control plane. It returns when the API server
// is ready and the controllers work.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	options.With = options.components()
	if slices.Contains(options.With, Node) {
		if err := prepareNode(); err != nil {
			return nil, err
		}
	}
	builder, err := program.NewBuilder(options.progress())
	if err != nil {
		return nil, err
	}
	programs, err := builder.Build(ctx, options.Programs()...)
	if err != nil {
		return nil, err
	}
	if options.Downloaded != nil {
		maps.Copy(programs, options.Downloaded.Programs)
	}
	cluster, err := newCluster(options, programs)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := cluster.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), cluster.Stop())
	}
	return cluster, nil
}

func newCluster(options Options, programs map[string]program.Built) (*Cluster, error) {
	if err := sweep(); err != nil {
		return nil, err
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	guard, err := guardOnce()
	if err != nil {
		return nil, err
	}
	run, err := newRun(options, ports[1])
	if err != nil {
		return nil, err
	}
	run.Registry, run.SecureRegistry = registryAddress(ports[2]), registryAddress(ports[3])
	run.Kubernetes = programs[program.ForKubernetes(program.APIServer, options.kubernetes())].Version
	c := &Cluster{
		options: options, run: run, etcd: ports[0], secure: ports[1], guard: guard,
		programs: programs, processes: map[string]*process.Process{},
	}
	if err := c.writeDir(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// writeDir creates the control plane's directory before any program runs. It registers the
// directory with the guard first, because it contains keys.
func (c *Cluster) writeDir() error {
	if err := c.guard.hold(planeOf(c.run.Dir)); err != nil {
		return err
	}
	if err := c.run.save(); err != nil {
		return err
	}
	if err := c.writeCredentials(); err != nil {
		return err
	}
	var err error
	c.api, err = newAPI(c.run)
	return err
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	// Custom kinds come before the controllers, whose garbage collector would otherwise discover
	// them up to half a minute later.
	for _, component := range c.options.With {
		if err := c.install(ctx, component); err != nil {
			return err
		}
	}
	if _, ok := c.programs[c.release(program.ControllerManager)]; ok {
		if err := c.startControllerManager(ctx); err != nil {
			return err
		}
	}
	for _, component := range c.options.With {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
	}
	if c.options.Detached {
		return c.guard.drop(planeOf(c.run.Dir))
	}
	return nil
}

// Add starts a component that does not run yet.
func (c *Cluster) Add(ctx context.Context, component Component) error {
	if c.Has(component) {
		return nil
	}
	if c.processes == nil {
		return fmt.Errorf("this control plane was started without %s; start it with --with %s", component, component)
	}
	if err := (Options{Kubernetes: c.options.Kubernetes, With: append(c.components(), component)}).Check(); err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	if component == Node {
		if err := prepareNode(); err != nil {
			return err
		}
	}
	if err := c.build(ctx, component.programs()...); err != nil {
		return err
	}
	if err := c.install(ctx, component); err != nil {
		return err
	}
	return c.launch(ctx, component)
}

// AddControllers builds and starts the controller manager of a control plane that was
// started without one.
func (c *Cluster) AddControllers(ctx context.Context) error {
	if c.HasControllers() {
		return nil
	}
	if err := c.build(ctx, c.release(program.ControllerManager)); err != nil {
		return err
	}
	return c.startControllerManager(ctx)
}

// build adds programs to those of the control plane.
func (c *Cluster) build(ctx context.Context, names ...string) error {
	builder, err := program.NewBuilder(c.options.progress())
	if err != nil {
		return err
	}
	built, err := builder.Build(ctx, names...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.programs, built)
	return nil
}

func (c *Cluster) install(ctx context.Context, component Component) error {
	if component == ArgoRollouts {
		return c.installArgoRollouts(ctx)
	}
	return nil
}

func (c *Cluster) launch(ctx context.Context, component Component) error {
	var err error
	switch component {
	case KWOK:
		err = c.launchKWOK(ctx)
	case ArgoRollouts:
		err = c.launchArgoRollouts(ctx)
	case Registry:
		err = c.launchRegistry(ctx)
	case SecureRegistry:
		err = c.launchSecureRegistry(ctx)
	case Node:
		err = c.launchNode(ctx)
	default:
		err = errors.New("unknown component")
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run.With = append(c.run.With, component)
	return c.run.save()
}

// Kubeconfig is the path of a kubeconfig with every permission.
func (c *Cluster) Kubeconfig() string { return c.run.Kubeconfig() }

// Server is the address of the API server.
func (c *Cluster) Server() string { return c.run.Server }

// Version is the Kubernetes version, such as 1.36.3.
func (c *Cluster) Version() string { return c.run.Kubernetes }

// Dir is the directory of this control plane: data, logs, kubeconfig.
func (c *Cluster) Dir() string { return c.run.Dir }

// Log is the path of a program's log.
func (c *Cluster) Log(name string) string { return filepath.Join(c.run.Dir, name+".log") }

// HasControllers reports whether a controller manager was started.
func (c *Cluster) HasControllers() bool {
	return slices.ContainsFunc(c.run.Processes, func(p Member) bool { return p.Name == program.ControllerManager })
}

// Has reports whether a component runs.
func (c *Cluster) Has(component Component) bool { return slices.Contains(c.components(), component) }

func (c *Cluster) components() []Component {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.run.With)
}

// Stop ends every process of the control plane and removes its directory. Only the process
// that started it can. When something can't be removed, the directory stays: the guard, or
// the next start, tries again.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.processes == nil {
		return errNotOurs
	}
	var errs []error
	for _, p := range c.processes {
		errs = append(errs, p.Kill())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	clear(c.processes)
	if err := remains.Remove(c.run.Dir); err != nil {
		return err
	}
	return c.guard.drop(planeOf(c.run.Dir))
}
