package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/memory"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// Options of the process.
type Options struct {
	Config *rest.Config
	Log    logr.Logger
	// MetricsAddr, ProbeAddr and PprofAddr serve the metrics, the probes and profiles; "0" and an
	// empty value listen nowhere.
	MetricsAddr, ProbeAddr, PprofAddr listener.Address
	Metrics                           *Metrics
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
	o.Config = rest.CopyConfig(o.Config)
	o.Config.Wrap(retryafter.InSeconds)
	options := o.managerOptions()
	if err := o.identify(&options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(o.Config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := addProbes(mgr, o); err != nil {
		return err
	}
	if err := addMetrics(mgr, o); err != nil {
		return err
	}
	if err := o.serve(mgr, pages{"profiles", o.PprofAddr, profiles()}); err != nil {
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
		HealthProbeBindAddress:        "0", // this package serves all of them itself
		PprofBindAddress:              "0",
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
func addProbes(mgr ctrl.Manager, o Options) error {
	return o.serve(mgr, pages{"probes", o.ProbeAddr, probes(o.Ready)})
}

// pages are what one address serves.
type pages struct {
	name    string
	address listener.Address
	handler http.Handler
}

func (o Options) serve(mgr ctrl.Manager, p pages) error {
	if p.address.Value == "0" || p.address.Value == "" {
		return nil
	}
	open, err := p.address.Listen(p.name)
	if err != nil {
		if o.Unserved == nil {
			return err
		}
		o.Unserved(err)
		return nil
	}
	o.Log.Info(p.name+" are served", "address", open.Addr().String())
	timeout := 2 * time.Second
	return mgr.Add(&manager.Server{
		Name:            p.name,
		Listener:        open,
		Server:          &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second},
		ShutdownTimeout: &timeout,
	})
}
