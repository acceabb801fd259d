package reloader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/run"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// leaseName is the original's Lease, so the two never work at the same time.
const leaseName = "stakater-reloader-lock"

// Run replaces Stakater Reloader: its flags and environment, annotations, marks in templates,
// metrics, events and alerts, within its roles.
func Run(ctx context.Context, args []string, env run.Environment) int {
	o, err := Parse(args, env.Lookup)
	if _, wrong := errors.AsType[UsageError](err); wrong {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return commandline.ExitUsage
	}
	switch {
	case o.Help:
		_, _ = fmt.Fprint(env.Stdout, Usage())
		return commandline.ExitOK
	case o.Version:
		_, _ = fmt.Fprintln(env.Stdout, env.Version)
		return commandline.ExitOK
	}
	to := commandline.Raw(env.Stderr)
	if o.Log.JSON {
		to = commandline.JSON(env.Stderr)
	}
	log := env.Logger(ctx, to, o.Log)
	if err == nil {
		err = serve(ctx, o, log, env)
	}
	if err != nil {
		log.Error(err, "reloader ends")
		return commandline.ExitFailed
	}
	return commandline.ExitOK
}

func serve(ctx context.Context, o Options, log logr.Logger, env run.Environment) error {
	for _, warning := range o.Warnings {
		warn(log, warning)
	}
	config, err := clusterConfig(env.Lookup, rest.InClusterConfig)
	if err != nil {
		return err
	}
	c, err := access.NewClient(ctx, config, client.Options{Mapper: mapper(o.Engine.Scope)})
	if err != nil {
		return err
	}
	env.BoundGarbage()
	if env.LogLibraries != nil { // A library keeps the metric in a process variable too.
		ctrlmetrics.RegisterRESTClientMetrics(ctrlmetrics.MetricRequestLatency)
	}
	p := newParts(o, c, log, env)
	log.Info("running as a replacement for Stakater Reloader", "version", env.Version, "strategy", o.Reload.Strategy, "autoReloadAll", o.Reload.AutoAll,
		"namespaces", o.Engine.Scope.Namespaces, "highAvailability", o.Process.HA, "alerts", p.alerts != nil, "webhook", p.webhook != nil)
	err = server.Run(ctx, p.server(config), p.setup)
	for _, n := range p.notifiers() {
		n.Flush(ctx)
	}
	return err
}

// parts holds the parts of the drop-in.
type parts struct {
	options Options
	log     logr.Logger
	version string
	client  client.WithWatch
	metrics *server.Metrics
	engine  *reloader.Reloader
	events  *announce.Announcer
	// alerts gets the messages of the original and webhook its requests; notifier is for the
	// targets of a file. Each is nil unless it is configured.
	alerts, webhook, notifier *notify.Notifier
}

func newParts(o Options, c client.WithWatch, log logr.Logger, env run.Environment) *parts {
	p := &parts{options: o, log: log, version: env.Version, client: c, metrics: server.NewMetrics()}
	p.events = announce.NewCoreAnnouncer(c, Name, p.metrics)
	p.notifier = env.Notifier(log, p.metrics)
	var err error
	if p.alerts, err = newAlerts(o.Alert, notify.Options{Now: env.Now, Report: p.failing("cannot send alerts")}); err != nil {
		log.Error(err, "cannot send alerts")
	}
	d := reloader.Dependencies{
		Client: c, Tell: p.tell, Report: p.report, Metrics: reloader.NewMetrics(p.metrics, o.ByNamespace), Log: log, Now: env.Now,
	}
	if u := notice.Hidden(o.Reload.WebhookURL); u != "" {
		p.webhook = newWebhook(u, notify.Options{Now: env.Now, Report: p.failing("cannot call the webhook"), Answered: p.answered})
		d.Webhook = func() { call(p.webhook) }
	}
	p.engine = reloader.New(o.Engine, d)
	return p
}

func (p *parts) notifiers() []*notify.Notifier {
	return []*notify.Notifier{p.alerts, p.webhook, p.notifier}
}

func (p *parts) failing(message string) func(error) {
	return func(err error) { p.log.Error(err, message) }
}

func (p *parts) answered(status int, body []byte) {
	p.log.Info("the webhook answered", "status", status, "body", commandline.OneLine(string(body)))
}

// server is how the parts run. Under --enable-ha all replicas watch, and one works.
func (p *parts) server(config *rest.Config) server.Options {
	o := server.Options{
		Config: config, Log: p.log, MetricsAddr: listener.Address{Value: p.options.Process.MetricsAddr, Setting: "--metrics-addr"}, Metrics: p.metrics,
		LeaderElection: p.options.Process.HA, Namespace: p.options.PodNamespace, LeaseName: leaseName, Identity: p.options.PodName,
		LeaseDuration: 15 * time.Second,
	}
	if p.options.Process.Pprof {
		o.PprofAddr = listener.Address{Value: p.options.Process.PprofAddr, Setting: "--pprof-addr"}
	}
	return o
}

func (p *parts) setup(mgr ctrl.Manager) error {
	p.metrics.Probes(p.ready)
	p.metrics.Page("/live", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "alive") }))
	all := []manager.Runnable{run.OnEveryReplica(p.engine.Watch), run.OnEveryReplica(p.describe), run.OnEveryReplica(p.events.Run)}
	for _, n := range p.notifiers() {
		all = append(all, run.OnEveryReplica(func(ctx context.Context) error {
			n.Run(ctx)
			return nil
		}))
	}
	for _, part := range all {
		if err := mgr.Add(part); err != nil {
			return err
		}
	}
	return p.engine.Setup(mgr)
}

// describe writes the meta-info ConfigMap once.
func (p *parts) describe(ctx context.Context) error {
	if p.options.MetaNamespace == "" {
		warn(p.log, "RELOADER_NAMESPACE is not set: the ConfigMap "+metaInfoName+" is not written")
		return nil
	}
	if err := p.options.writeMetaInfo(ctx, p.client, p.version); err != nil && ctx.Err() == nil {
		warn(p.log, "cannot write the meta-info", "err", err.Error())
	}
	return nil
}

func (p *parts) ready() server.Readiness {
	return run.Readiness(p.engine.Status(), mirror.RoleWorkload, mirror.RoleRecord)
}

// report is called when a resource can be read, or no longer.
func (p *parts) report(s mirror.Sync) {
	if s.NotInstalled() {
		warn(p.log, "not installed in this cluster; it is followed as soon as it is installed", "resource", s.Resource)
		return
	}
	run.ReportStatus(p.log, s)
}

// tell logs what happened to a workload, and writes it as an event and an alert.
func (p *parts) tell(e reloader.Event) {
	by := Name
	if e.Source.Name != "" {
		by += "-" + reloader.Resource(e.Source.Type)
	}
	event := announce.Event{About: &e.About, By: by, Warning: e.Warning, Reason: e.Reason, Note: e.Note}
	announce.Several{p.events, p.notifier}.Announce(event)
	about := []any{"reason", e.Reason, "kind", e.About.Kind, "namespace", e.About.Namespace, "name", e.About.Name}
	switch e.Reason {
	case reloader.Reloaded:
		p.log.Info(e.Note, about...)
		event.Note = alertText(e)
		p.alerts.Announce(event)
	case reloader.ReloadFail:
		p.log.Error(nil, e.Note, about...)
	default:
		warn(p.log, e.Note, about...)
	}
}

// mapper knows the kinds that the roles of the original name.
func mapper(s reloader.Scope) meta.RESTMapper {
	var kinds []kube.Kind
	for _, k := range reloader.Kinds(s) {
		kinds = append(kinds, k.Kind)
	}
	m := run.FixedMapper(kinds, "ConfigMap", "Secret", "Event")
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace) // CronJobs need it even if Jobs aren't reloaded.
	m.Add(reloader.PodStatus(), meta.RESTScopeNamespace)
	m.Add(reloader.Class(), meta.RESTScopeNamespace)
	return m
}

// clusterConfig finds the cluster as the original did: one kubeconfig file, else the pod's service
// account.
func clusterConfig(lookup func(string) (string, bool), inCluster func() (*rest.Config, error)) (*rest.Config, error) {
	file, _ := lookup("KUBECONFIG")
	if file == "" {
		home, _ := lookup("HOME")
		file = filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)
	}
	var config *rest.Config
	_, err := os.Stat(file)
	if err == nil {
		config, err = clientcmd.BuildConfigFromFlags("", file)
	} else {
		config, err = inCluster()
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster: neither the kubeconfig %s nor a pod's service account: %w", file, err)
	}
	config.QPS = -1
	return config, nil
}
