package kubeimagedeployer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/joho/godotenv"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/identity"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/run"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// Run replaces kube-image-deployer: its flags and variables, its label and annotations and its
// image form, within its role. It omits features that the role does not allow (leases, pull
// secrets), and writes events only where a role allows more than the original's.
func Run(ctx context.Context, args []string, env run.Environment) int {
	warnings := loadDotEnv()
	o, err := Parse(args, env.Lookup, env.Stderr)
	o.Warnings = append(warnings, o.Warnings...)
	if usage, wrong := errors.AsType[UsageError](err); wrong {
		if usage.IsHelp() {
			return commandline.ExitOK
		}
		return commandline.ExitUsage
	}
	level := slog.LevelInfo
	if o.Verbose > 1 {
		level = slog.LevelDebug
	}
	code := commandline.ExitUsage
	if err == nil {
		log := env.Logger(ctx, commandline.Raw(env.Stderr), run.LogOptions{Level: level})
		code, err = commandline.ExitFailed, serve(ctx, o, log, env)
	}
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return code
	}
	return commandline.ExitOK
}

// loadDotEnv sets the unset variables from the file .env in the working directory, as the
// original did. Libraries see them too: they may be AWS keys. The warning doesn't quote the
// file, because it may contain a secret.
func loadDotEnv() (warnings []string) {
	if err := godotenv.Load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{"the file .env cannot be read, and has no effect"}
	}
	return nil
}

func serve(ctx context.Context, o Options, log logr.Logger, env run.Environment) error {
	for _, warning := range o.Warnings {
		log.Info("an option has no effect, or another effect than intended", "message", warning)
	}
	config, err := clusterConfig(o.Kubeconfig, env.Lookup, rest.InClusterConfig)
	if err != nil {
		return err
	}
	c, err := access.NewClient(ctx, config, client.Options{Mapper: run.FixedMapper(kinds(o))})
	if err != nil {
		return err
	}
	env.BoundGarbage()
	p, err := newParts(o, c, log, env)
	if err != nil {
		return err
	}
	log.Info("running as a replacement for kube-image-deployer", "watchKey", o.Words.Key, "namespace", o.Namespace, "platform", o.Words.Platform,
		"interval", o.Interval.String(), "ttl", o.TTL.String(), "slack", p.slack != nil)
	err = server.Run(ctx, server.Options{
		Config: config, Log: log, Metrics: p.metrics, LeaseDuration: 15 * time.Second, Ready: p.ready,
		MetricsAddr: listener.Address{Value: o.MetricsAddr, Setting: "METRICS_ADDR"}, ProbeAddr: listener.Address{Value: o.ProbeAddr, Setting: "PROBE_ADDR"},
		Unserved: func(err error) {
			log.Error(err, "cannot serve a port, and everything else works; 0 listens nowhere")
		},
	}, p.setup)
	p.slack.Flush(ctx)
	p.notifier.Flush(ctx)
	return err
}

// parts holds the parts of the drop-in.
type parts struct {
	options Options
	log     logr.Logger
	env     run.Environment
	client  client.WithWatch
	cache   *cluster.Cache
	records ledger.None
	metrics *server.Metrics
	// slack gets the messages of the original; notifier is for the targets of a file.
	slack, notifier *notify.Notifier
}

func newParts(o Options, c client.WithWatch, log logr.Logger, env run.Environment) (*parts, error) {
	selector, err := labels.Parse(o.Words.Selector())
	if err != nil {
		return nil, err
	}
	p := &parts{options: o, log: log, env: env, client: c, metrics: server.NewMetrics()}
	what := cluster.CacheOptions{
		Kinds: kinds(o), Workloads: selector, Vocabulary: o.Words, IgnoreNamespaces: true, Now: env.Now,
		Report: func(s mirror.Sync) { run.ReportStatus(log, s) },
	}
	if o.Namespace != "" {
		what.Namespaces = []string{o.Namespace}
	}
	p.cache = cluster.NewCache(c, what)
	p.notifier = env.Notifier(log, p.metrics)
	if o.SlackWebhook != "" {
		config := notice.Plain(notice.Hidden(o.SlackWebhook), o.SlackPrefix)
		p.slack = notify.New(notify.Options{
			Config: &config, Now: env.Now,
			Report: func(err error) { log.Error(err, "cannot notify Slack") },
		})
	}
	return p, nil
}

func kinds(o Options) []kube.Kind {
	var kinds []kube.Kind
	for _, k := range []struct {
		kind kube.Kind
		off  bool
	}{
		{kube.Deployment(), o.OffDeployments},
		{kube.StatefulSet(), o.OffStatefulSets},
		{kube.DaemonSet(), o.OffDaemonSets},
		{kube.CronJob(), o.OffCronJobs},
	} {
		if !k.off {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

func (p *parts) ready() server.Readiness {
	return run.Readiness(append(p.cache.Status(), p.records.Status()), mirror.RoleSource, mirror.RoleWorkload)
}

func (p *parts) setup(mgr ctrl.Manager) error {
	p.metrics.MustRegister(monitoring.NewCollector(p.cache, nil))
	resolver, inputs := p.images()
	p.metrics.MustRegister(images.NewCollector(inputs))
	events, err := newEvents(mgr, p)
	if err != nil {
		return err
	}
	tasks := []func(context.Context){func(ctx context.Context) { p.cache.Run(ctx, kube.Hashers{}) }, resolver.Run, events.Run, p.slack.Run, p.notifier.Run}
	for _, run := range tasks {
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			run(ctx)
			return nil
		})); err != nil {
			return err
		}
	}
	loop := rollouts.New(rollouts.DefaultOptions(), rollouts.Dependencies{
		Vocabulary: p.options.Words, Cluster: p.cache, Families: []rollouts.Family{inputs}, Records: p.records,
		Roller:    patcher.NewPatcher(p.client, patcher.Unshown),
		Announcer: announce.Several{events, p.slack, p.notifier},
		Metrics:   p.metrics,
		Log:       p.log, Now: p.env.Now,
	})
	return loop.Setup(mgr, func(ctx context.Context, add func(kube.Key)) { cluster.Feed(ctx, p.cache, p.records, add, inputs) })
}

// images are the images that annotations name. All workloads use the same credentials: the role
// doesn't allow reading pull secrets.
func (p *parts) images() (*imagewatch.Resolver, *images.Inputs) {
	metrics := images.NewMetrics(p.metrics, p.env.Now)
	resolver := imagewatch.New(imagewatch.Options{
		Registries: registry.Options{Local: IsLocal, UserAgent: "lockstep/" + p.env.Version, Observe: metrics.Observe, Forgotten: metrics.Forgotten},
		Interval:   p.options.Interval, TTL: p.options.TTL, Checked: images.Checked(metrics, p.log, p.env.Now), Exceeded: metrics.Exceeded,
	})
	own := credentials(p.env)
	return resolver, images.New(images.Options{
		Watch:       func(q imagewatch.Question, wake func()) images.Watch { return resolver.Watch(q, wake) },
		Credentials: func(*kube.Workload) (keychain.Source, string) { return own, "" },
		Platforms:   func(*kube.Workload) ([]v1.Platform, bool) { return nil, true },
		Enforced:    true, Now: p.env.Now, Exceeded: metrics.Exceeded,
	})
}

// credentials are those that the original used: from AWS, and from Docker's configuration.
func credentials(env run.Environment) keychain.Chain {
	chain := keychain.Chain{}
	for _, file := range DockerConfigs(env.Lookup) {
		chain = append(chain, keychain.File{Path: file})
	}
	return append(chain, &identity.ECR{})
}

// clusterConfig finds the cluster as the original did: the pod's service account, else a
// kubeconfig. KUBECONFIG isn't read.
func clusterConfig(file string, lookup func(string) (string, bool), inCluster func() (*rest.Config, error)) (*rest.Config, error) {
	config, err := inCluster()
	if errors.Is(err, rest.ErrNotInCluster) {
		if file == "" {
			home, _ := lookup("HOME")
			file = filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)
		}
		config, err = clientcmd.BuildConfigFromFlags("", file)
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster: neither a pod's service account nor the kubeconfig %s: %w", file, err)
	}
	config.QPS = -1
	return config, nil
}
