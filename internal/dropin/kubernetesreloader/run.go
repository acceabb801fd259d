package kubernetesreloader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/legacyform"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/run"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// Run replaces kubernetes-reloader: its flags, annotations, state and environment variables,
// within its role. It omits features that the role does not allow (events, leases, namespaces).
func Run(ctx context.Context, args []string, env run.Environment) int {
	o, err := Parse(args, env.Lookup)
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(env.Stderr, "%s\n%v\n", Usage, err)
		return commandline.ExitFailed
	case o.Help:
		_, _ = fmt.Fprint(env.Stdout, Usage)
		return commandline.ExitOK
	case o.Version:
		_, _ = fmt.Fprintln(env.Stdout, env.Version)
		return commandline.ExitOK
	}
	if err := serve(ctx, o, env.Logger(ctx, commandline.Raw(env.Stdout), run.LogOptions{Level: slog.LevelInfo}), env); err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return commandline.ExitFailed
	}
	return commandline.ExitOK
}

func serve(ctx context.Context, o Options, log logr.Logger, env run.Environment) error {
	for _, warning := range o.Warnings {
		log.Info("flag without effect", "message", warning)
	}
	config, err := clusterConfig(o, rest.InClusterConfig)
	if err != nil {
		return err
	}
	c, err := access.NewClient(ctx, config, client.Options{Mapper: run.FixedMapper(kinds(), "ConfigMap", "Secret")})
	if err != nil {
		return err
	}
	env.BoundGarbage()
	p := newParts(o, c, log, env.Now)
	p.notifier = env.Notifier(log, p.metrics)
	log.Info("running as a replacement for kubernetes-reloader", "namespace", o.Namespace, "state", o.StateName, "coalescePeriod", o.Quiet.String())
	err = server.Run(ctx, server.Options{
		Config: config, Log: log, Metrics: p.metrics, LeaseDuration: 15 * time.Second,
		MetricsAddr: listener.Address{Value: fmt.Sprintf(":%d", o.Port), Setting: "--port"},
	}, p.setup)
	p.notifier.Flush(ctx)
	return err
}

// parts holds the parts of the drop-in.
type parts struct {
	options Options
	log     logr.Logger
	now     func() time.Time
	client  client.WithWatch
	words   legacy.Words
	cache   *cluster.Cache
	records *ledger.Legacy
	metrics *server.Metrics
	// notifier is nil unless the environment names notification targets.
	notifier *notify.Notifier
	// answered decides once, when the API server has answered for every resource, whether
	// there is anything to do; begun then gets an error or nil.
	answered sync.Once
	begun    chan error
}

func newParts(o Options, c client.WithWatch, log logr.Logger, now func() time.Time) *parts {
	p := &parts{options: o, log: log, client: c, now: now, metrics: server.NewMetrics(), begun: make(chan error, 1), words: legacy.Words{
		AlternativeConfigMap: o.AlternativeConfigMap, AlternativeSecret: o.AlternativeSecret,
		IgnoreConfigMaps: o.IgnoreConfigMaps, IgnoreSecrets: o.IgnoreSecrets,
		StateName: o.StateName, Quiet: o.Quiet,
	}}
	p.cache = cluster.NewCache(c, cluster.CacheOptions{
		Kinds:   kinds(),
		Sources: p.sources(), Namespaces: []string{o.Namespace},
		Vocabulary: p.words, IgnoreNamespaces: true, Now: p.now,
		Report: p.report,
	})
	p.records = ledger.NewLegacy(c, p.cache, ledger.LegacyOptions{
		Namespace: o.Namespace, Name: o.StateName, Words: p.words, Now: p.now,
		Report: func(err error) { log.Error(err, "cannot read or write the state") },
		Status: func(s mirror.Sync) { run.ReportStatus(log, s) },
	})
	return p
}

func (p *parts) sources() []input.Kind {
	var kinds []input.Kind
	if !p.options.IgnoreConfigMaps {
		kinds = append(kinds, input.KindConfigMap)
	}
	if !p.options.IgnoreSecrets {
		kinds = append(kinds, input.KindSecret)
	}
	return kinds
}

func (p *parts) setup(mgr ctrl.Manager) error {
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "up", Help: "1 while the process runs."})
	up.Set(1)
	p.metrics.MustRegister(up, monitoring.NewCollector(p.cache, nil))
	p.metrics.Probes(p.ready)
	for _, part := range []manager.RunnableFunc{p.watch, p.begin, p.records.Run, p.notify} {
		if err := mgr.Add(part); err != nil {
			return err
		}
	}
	inputs := configs.New(configs.Options{
		View: p.cache, Original: true,
		// The state does not record since when a kind is followed.
		Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return time.Time{}, false },
	})
	options := rollouts.DefaultOptions()
	options.Quiet, options.MaxDelay = p.options.Quiet, p.options.MaxDelay()
	loop := rollouts.New(options, rollouts.Dependencies{
		Vocabulary: p.words, Cluster: p.cache, Families: []rollouts.Family{inputs}, Records: p.records,
		Roller:    patcher.NewPatcher(p.client, legacyform.Form{Source: p.cache.Source}.Variables),
		Announcer: p.notifier,
		Metrics:   p.metrics,
		Log:       p.log, Now: p.now,
	})
	return loop.Setup(mgr, func(ctx context.Context, add func(kube.Key)) { cluster.Feed(ctx, p.cache, p.records, add) })
}

func (p *parts) notify(ctx context.Context) error {
	p.notifier.Run(ctx)
	return nil
}

func (p *parts) watch(ctx context.Context) error {
	var watches wait.Group
	watches.StartWithContext(ctx, p.records.Watch)
	p.cache.Run(ctx, kube.Hashers{Legacy: true, Kinds: map[input.Kind]fingerprint.Hasher{}})
	watches.Wait()
	return nil
}

// report is called when a watch starts or stops working.
func (p *parts) report(s mirror.Sync) {
	run.ReportStatus(p.log, s)
	all := p.cache.Status()
	if !slices.ContainsFunc(all, func(s mirror.Sync) bool { return !s.Answered() && !s.Unauthorized() }) {
		p.answered.Do(func() { p.begun <- refusal(all) })
	}
}

// begin ends the process at its start if it may not do anything, as the original did. Later the
// process stays up: a permission that was revoked may be granted again.
func (p *parts) begin(ctx context.Context) error {
	select {
	case err := <-p.begun:
		return err
	case <-ctx.Done():
		return nil
	}
}

// refusal names the missing permissions, or the credentials that the API server doesn't accept,
// if no kind of source or no kind of workload may be followed. A single kind that is missing
// doesn't affect the others.
func refusal(all []mirror.Sync) error {
	allowed := map[mirror.Role]bool{}
	var missing []string
	var cause error
	for _, s := range all {
		refused := s.Forbidden() || s.Unauthorized()
		allowed[s.Role] = allowed[s.Role] || !refused
		if refused {
			missing, cause = append(missing, s.Resource), cmp.Or(cause, s.Err)
		}
	}
	if allowed[mirror.RoleSource] && allowed[mirror.RoleWorkload] {
		return nil
	}
	if apierrors.IsUnauthorized(cause) {
		return fmt.Errorf("the API server doesn't accept the credentials: check --token, --username and --password, or --client-certificate and --client-key; without --server, the pod's service account: %w", cause)
	}
	return fmt.Errorf("permission is missing: list and watch %s: %w", strings.Join(missing, ", "), cause)
}

func (p *parts) ready() server.Readiness {
	return run.Readiness(append(p.cache.Status(), p.records.Status()))
}

func kinds() []kube.Kind {
	return []kube.Kind{kube.Deployment(), kube.DaemonSet(), kube.StatefulSet()}
}

// clusterConfig finds the cluster as the original did: --server, else the pod's service account,
// never a kubeconfig. The pod's token stays a file, so a token that the kubelet renewed is read
// again.
func clusterConfig(o Options, inCluster func() (*rest.Config, error)) (*rest.Config, error) {
	if o.Cluster.Server == "" {
		config, err := inCluster()
		if err != nil {
			return nil, errors.New("no cluster: neither --server nor a pod's service account; pass --server URL with --token, or run in a pod")
		}
		config.QPS = -1
		return config, nil
	}
	config := &rest.Config{
		Host: o.Cluster.Server, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: o.Cluster.CAFile, Insecure: o.Cluster.Insecure},
	}
	switch {
	case o.Cluster.Token != "":
		config.BearerToken = o.Cluster.Token
	case o.Cluster.Username != "":
		config.Username, config.Password = o.Cluster.Username, o.Cluster.Password
	default:
		config.CertFile, config.KeyFile = o.Cluster.ClientCertFile, o.Cluster.ClientKeyFile
	}
	if o.Cluster.Insecure {
		config.CAFile = ""
	}
	return config, nil
}
