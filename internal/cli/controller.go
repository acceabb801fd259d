package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/run"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// controllerOptions are the flags of "lockstep controller".
type controllerOptions struct {
	kube      kubeOptions
	log       logOptions
	server    server.Options
	rollouts  rollouts.Options
	safety    safetyFlags
	revisions revisionsOptions
	images    imagesOptions
	own       run.Own
	scope     scopeFlags
	reload    bool
	auto      bool
	observe   bool
	form      string
	pods      bool
}

// scopeFlags configure what is watched.
type scopeFlags struct {
	namespaces []string
	selector   string
	builtIn    []string
	kinds      []string
}

func newController(env Environment) *cobra.Command {
	o := controllerOptions{rollouts: rollouts.SafeOptions()}
	cmd := &cobra.Command{
		Use:   controllerName,
		Short: "Follow ConfigMaps, Secrets and images, and roll out the workloads that use them",
		Long: `Follow ConfigMaps, Secrets and images, and roll out the workloads that use them.

Annotate a workload to have it followed:

    lockstep.dev/reload: auto                        everything that its pods reference
    lockstep.dev/reload: configmap/app, secret/db-*  these, referenced or not
    lockstep.dev/reload: never                       nothing

With --images, the controller pins a container to the newest image that matches a spec:

    image.lockstep.dev/web: registry.example/web:1.4.*

The controller rolls out a workload once its sources have been unchanged for --quiet, at the
latest --max-delay after the first change. It records the delivered versions in ConfigMaps in its
own namespace. Changes made while the controller was down are therefore delivered after it
starts, and starting it doesn't restart pods.`,
		Example: `  # on your machine, for the cluster of your kubeconfig
  lockstep controller --leader-elect=false

  # only two namespaces, a longer quiet window, JSON logs
  lockstep controller --namespaces shop,blog --quiet 30s --log-format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.own.Namespace = ownNamespace(o.own.Namespace, env.Lookup)
			return o.run(cmd.Context(), env)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *controllerOptions) bind(fs *pflag.FlagSet) {
	o.kube.bind(fs)
	o.log.bind(fs)
	fs.BoolVar(&o.reload, "reload", true, "follow ConfigMaps and Secrets; if false, the controller doesn't read them and keeps their recorded versions")
	o.revisions.bind(fs)
	o.images.bind(fs)
	fs.StringSliceVar(&o.scope.namespaces, "namespaces", nil, "namespaces to watch, separated by commas (default all)")
	fs.StringVar(&o.scope.selector, "namespace-selector", "", "watch only namespaces with these labels, such as team=shop; the controller watches each one separately and doesn't read anything in other namespaces")
	fs.StringSliceVar(&o.scope.builtIn, "built-in-kinds", builtInNames(), "built-in kinds of workloads to follow, separated by commas; the controller neither reads nor changes the others")
	fs.StringArrayVar(&o.scope.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	fs.BoolVar(&o.auto, "auto", false, "follow every workload without settings of its own, as if annotated with lockstep.dev/reload: auto")
	fs.BoolVar(&o.observe, "observe", false, "decide and report, but don't change workloads; switching this off later doesn't restart pods")
	fs.StringVar(&o.form, "form", formAnnotation, "what Lockstep writes into the pod template: annotation, or env for an environment variable")
	fs.BoolVar(&o.pods, "pod-strategies", false, "allow lockstep.dev/strategy: evict and refresh, which need permissions on pods")
	fs.StringVar(&o.own.Namespace, "own-namespace", "", "namespace for the controller's own objects (default $POD_NAMESPACE, then the pod's, then lockstep-system)")
	fs.StringVar(&o.own.Record, "state-name", ask.DefaultState, "name prefix of the ConfigMaps that record delivered versions")
	fs.StringVar(&o.own.Key, "key-name", ask.DefaultKey, "name of the Secret with the key for Secret digests")
	fs.DurationVar(&o.rollouts.Quiet, "quiet", o.rollouts.Quiet, "how long a workload's sources must be unchanged before a rollout")
	fs.DurationVar(&o.rollouts.MaxDelay, "max-delay", o.rollouts.MaxDelay, "maximum time continuous changes can delay a rollout")
	o.safety.bind(fs, &o.rollouts.Safety)
	fs.IntVar(&o.rollouts.Workers, "workers", o.rollouts.Workers, "workloads processed in parallel")
	fs.BoolVar(&o.server.LeaderElection, "leader-elect", true, "use leader election: one replica is active, the others stand by")
	fs.StringVar(&o.server.LeaseName, "lease-name", ask.DefaultLease, "name of the Lease for leader election")
	fs.DurationVar(&o.server.LeaseDuration, "lease-duration", 15*time.Second, "how long the other replicas wait for a leader that disappeared")
	o.server.MetricsAddr.Setting, o.server.ProbeAddr.Setting = "--metrics-addr", "--probe-addr"
	fs.StringVar(&o.server.MetricsAddr.Value, "metrics-addr", ":8080", "address that serves /metrics; 0 for none")
	fs.StringVar(&o.server.ProbeAddr.Value, "probe-addr", ":8081", "address that serves /healthz and /readyz; 0 for none")
}

func (o *controllerOptions) run(ctx context.Context, env Environment) error {
	if err := o.validate(); err != nil {
		return usageError{err}
	}
	// Each namespace once: of two watches on one namespace, one would never run.
	slices.Sort(o.scope.namespaces)
	o.scope.namespaces = slices.Compact(o.scope.namespaces)
	log, err := o.log.logger(ctx, env.Stderr, env)
	if err != nil {
		return err
	}
	o.server.Config, err = o.kube.config()
	if err != nil {
		return err
	}
	o.server.Metrics = server.NewMetrics()
	o.server.Log, o.server.Namespace = log, o.own.Namespace
	options, err := o.options()
	if err != nil {
		return usageError{err}
	}
	options.Now, options.Version = env.Now, env.Version
	env.BoundGarbage()
	if o.observe {
		log.Info("observe mode: Lockstep reports every decision and doesn't change workloads")
	}
	for _, kind := range kube.Off(options.Scope.Kinds) {
		log.Info("--built-in-kinds switches a kind of workload off", "kind", kind.Name(), "reason", input.KindOff)
	}
	if options.IsIdle() {
		log.Info("nothing to do: use --reload, --images or --revisions")
	}
	log.Info("lockstep starts", "version", env.Version, "server", o.server.Config.Host, "namespace", o.own.Namespace)
	return run.Controller(ctx, options)
}

func (o *controllerOptions) validate() error {
	for _, ns := range append([]string{o.own.Namespace}, o.scope.namespaces...) {
		if wrong := validation.IsDNS1123Label(ns); len(wrong) > 0 {
			return fmt.Errorf("namespace %q: %s", ns, wrong[0])
		}
	}
	if err := validForm(o.form); err != nil {
		return err
	}
	if o.scope.selector != "" && len(o.scope.namespaces) > 0 {
		return errors.New("--namespaces and --namespace-selector exclude each other: use one of them")
	}
	if o.server.LeaseDuration < time.Second {
		return fmt.Errorf("--lease-duration %s: need at least 1s", o.server.LeaseDuration)
	}
	if o.auto && !o.reload {
		return errors.New("--auto: needs --reload")
	}
	if o.images.reads.reads(toolStakater) && !o.reload {
		return fmt.Errorf("--read-annotations=%s: needs --reload", toolStakater)
	}
	return errors.Join(o.rollouts.Validate(), o.revisions.Validate(), o.images.Validate())
}

// options converts the flags.
func (o *controllerOptions) options() (run.Options, error) {
	kinds, err := o.scope.followed()
	if err != nil {
		return run.Options{}, err
	}
	words, err := o.images.words(settings.Defaults{Auto: o.auto, Observe: o.observe, Quiet: o.rollouts.Quiet})
	if err != nil {
		return run.Options{}, err
	}
	images, err := o.images.options()
	if err != nil {
		return run.Options{}, err
	}
	shared, err := o.safety.ids()
	if err != nil {
		return run.Options{}, err
	}
	scope := run.Scope{Namespaces: o.scope.namespaces, Kinds: kinds}
	if o.scope.selector != "" {
		if scope.Selector, err = labels.Parse(o.scope.selector); err != nil {
			return run.Options{}, fmt.Errorf("--namespace-selector %q: %w", o.scope.selector, err)
		}
	}
	return run.Options{
		Own: o.own, Scope: scope, Words: words,
		Reload: o.reload, Follow: o.rollouts, Rollout: run.Rollout{Form: templateForm(o.form), Pods: o.pods},
		Shared: shared, Revisions: o.revisions.options(), Images: images, NotifyFile: o.safety.notifyFile, Server: o.server,
	}, nil
}
