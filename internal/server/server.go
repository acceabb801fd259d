package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dev/lockstep/internal/memory"
)

// Options of the process.
type Options struct {
	Config *rest.Config
	Log    logr.Logger
	// MetricsAddr and ProbeAddr are listen addresses; "0" listens nowhere.
	MetricsAddr string
	ProbeAddr   string
	// PprofAddr serves profiles; empty for none.
	PprofAddr string
	Metrics   *Metrics
	// LeaderElection lets several processes run of which one works. The lease is
	// kept in Namespace under LeaseName.
	LeaderElection bool
	Namespace      string
	LeaseName      string
	// Identity is the leader's name in the lease; by default it is made up.
	Identity string
	// LeaseDuration is how long a leader that vanished blocks the others; the
	// leader gives up at two thirds of it. Default 15 s.
	LeaseDuration time.Duration
	// Ready tells for each thing that readiness depends on how it is.
	Ready func() Readiness
	// Unserved, if set, is called with the reason when an address can't be listened on. Without it
	// that ends the process.
	Unserved func(error)
}

// Setup adds a part to the manager.
type Setup func(ctrl.Manager) error

// Run runs the parts until the context ends, or until the lease is lost, which
// is an error: what another leader does meanwhile must not be done twice.
func Run(ctx context.Context, o Options, parts ...Setup) error {
	options := o.managerOptions()
	if err := o.identify(&options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(o.Config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := addProbes(ctx, mgr, o); err != nil {
		return err
	}
	if err := addMetrics(ctx, mgr, o); err != nil {
		return err
	}
	for _, part := range parts {
		if err := part(mgr); err != nil {
			return err
		}
	}
	// Memory is highest while the first lists stream in. What only the start needed goes before.
	memory.Return()
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	helpers.Go(func() { memory.KeepReturning(ctx) })
	return mgr.Start(ctx)
}

func (o Options) managerOptions() ctrl.Options {
	renew, retry := o.LeaseDuration*2/3, o.LeaseDuration*2/15
	return ctrl.Options{
		// What the library says of its own comings and goings is for debugging.
		Logger:                        o.Log.V(1),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0", // this package serves both itself
		PprofBindAddress:              o.PprofAddr,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              o.LeaseName,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	}
}

// addProbes serves the probes from the first moment, before the API server has
// answered, on every replica.
func addProbes(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return o.serve(ctx, mgr, pages{Probes, o.ProbeAddr, probes(o.Ready)})
}

// pages are what one address serves.
type pages struct {
	name, address string
	handler       http.Handler
}

// ListenError is an address that can't be listened on, most often because its port is in use.
type ListenError struct {
	// Pages are what would be served: Probes or MetricPages.
	Pages, Address string
	Err            error
}

// What addresses serve.
const (
	Probes      = "probes"
	MetricPages = "metrics"
)

func (e *ListenError) Error() string {
	return fmt.Sprintf("listen for %s on %s: %v", e.Pages, e.Address, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

func (o Options) serve(ctx context.Context, mgr ctrl.Manager, p pages) error {
	if p.address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	if err != nil {
		err = &ListenError{Pages: p.name, Address: p.address, Err: err}
		if o.Unserved == nil {
			return err
		}
		o.Unserved(err)
		return nil
	}
	o.Log.Info(p.name+" are served", "address", listener.Addr().String())
	timeout := 2 * time.Second
	return mgr.Add(&manager.Server{
		Name:            p.name,
		Listener:        listener,
		Server:          &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second},
		ShutdownTimeout: &timeout,
	})
}
