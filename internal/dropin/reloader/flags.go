package reloader

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
)

// Flags are the values of a command line as they were passed.
type Flags struct {
	Keys    stakater.Keys
	Reload  ReloadFlags
	Watch   WatchFlags
	Process ProcessFlags
	// Help and Version request only that output.
	Help, Version bool
}

// ReloadFlags say when and how workloads are reloaded.
type ReloadFlags struct {
	AutoAll  bool
	Strategy string
	// OnCreate and OnDelete are switches whose value is text, which only "true" turns on.
	OnCreate, OnDelete string
	SyncAfterRestart   bool
	WebhookURL         string
	// Quiet, DeliverMissed and RerunJobs are new in Lockstep.
	Quiet                    time.Duration
	DeliverMissed, RerunJobs bool
}

// WatchFlags say which sources and workloads are followed.
type WatchFlags struct {
	// Rollouts is a switch whose value is text, which only "true" turns on.
	Rollouts                              string
	CSI                                   bool
	IgnoredResources, IgnoredWorkloads    []string
	Namespaces, IgnoredNamespaces         []string
	NamespaceSelectors, ResourceSelectors []string
}

// ProcessFlags are about the process itself.
type ProcessFlags struct {
	LogFormat, LogLevel string
	HA, Pprof           bool
	PprofAddr           string
	// MetricsAddr is new in Lockstep.
	MetricsAddr string
}

// newFlags makes the flags of the original and of Lockstep, with their defaults.
func newFlags() (*Flags, *pflag.FlagSet) {
	f := &Flags{Keys: stakater.DefaultKeys()}
	fs := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	fs.Usage = func() {} // The caller reports mistakes, in one line.
	f.bindKeys(fs)
	f.Reload.bind(fs)
	f.Watch.bind(fs)
	f.Process.bind(fs)
	fs.BoolVarP(&f.Help, "help", "h", false, "print this text")
	fs.BoolVar(&f.Version, "version", false, "print the version of Lockstep")
	return f, fs
}

func (f *Flags) bindKeys(fs *pflag.FlagSet) {
	k := &f.Keys
	for _, flag := range []struct {
		key         *string
		name, usage string
	}{
		{&k.Auto, "auto-annotation", "annotation of workloads that follow all sources they use"},
		{&k.ConfigMapAuto, "configmap-auto-annotation", "annotation of workloads that follow the ConfigMaps they use"},
		{&k.SecretAuto, "secret-auto-annotation", "annotation of workloads that follow the Secrets they use"},
		{&k.ConfigMap, "configmap-annotation", "annotation that lists ConfigMaps to follow"},
		{&k.Secret, "secret-annotation", "annotation that lists Secrets to follow"},
		{&k.Search, "auto-search-annotation", "annotation of workloads that follow the marked sources they use"},
		{&k.Match, "search-match-annotation", "annotation that marks sources for such workloads"},
		{&k.Ignore, "ignore-annotation", "annotation of sources that are not followed"},
		{&k.PausePeriod, "pause-deployment-annotation", "annotation that pauses a Deployment for a time after a reload"},
		{&k.PausedAt, "pause-deployment-time-annotation", "annotation that remembers when a Deployment was paused"},
	} {
		fs.StringVar(flag.key, flag.name, *flag.key, flag.usage)
	}
}

func (f *ReloadFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.AutoAll, "auto-reload-all", false, "follow the sources of every workload, unless an auto annotation is false")
	fs.StringVar(&f.Strategy, "reload-strategy", string(reloader.EnvVars), "what a reload writes into the pod template: env-vars or annotations")
	fs.StringVar(&f.OnCreate, "reload-on-create", "false", "true also reloads when a source is created")
	fs.StringVar(&f.OnDelete, "reload-on-delete", "false", "true also reloads when a source is deleted")
	fs.BoolVar(&f.SyncAfterRestart, "sync-after-restart", false, "treat sources that exist at the start as created; needs --reload-on-create=true")
	fs.StringVar(&f.WebhookURL, "webhook-url", "", "send a request to this URL for each change, and don't reload workloads")
	fs.DurationVar(&f.Quiet, "quiet", time.Second, "how long sources must be unchanged before workloads are reloaded (new in Lockstep)")
	fs.BoolVar(&f.DeliverMissed, "deliver-missed", false, "at the first start, deliver changes that the pod templates show as missed (new in Lockstep)")
	fs.BoolVar(&f.RerunJobs, "rerun-jobs", false, "also run finished Jobs, Jobs of CronJobs and suspended CronJobs again, as the original does (new in Lockstep)")
}

func (f *WatchFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Rollouts, "is-Argo-Rollouts", "false", "true also reloads Argo Rollouts")
	fs.BoolVar(&f.CSI, "enable-csi-integration", false, "also follow SecretProviderClasses")
	fs.StringSliceVar(&f.IgnoredResources, "resources-to-ignore", nil, "one type of source that is not followed: configmaps or secrets")
	fs.StringSliceVar(&f.IgnoredWorkloads, "ignored-workload-types", nil, "kinds of workloads that are not reloaded: jobs, cronjobs")
	fs.StringSliceVar(&f.Namespaces, "namespaces", nil, "the only namespaces to watch")
	fs.StringSliceVar(&f.IgnoredNamespaces, "namespaces-to-ignore", nil, "namespaces that are not watched")
	fs.StringSliceVar(&f.NamespaceSelectors, "namespace-selector", nil, "labels of the namespaces to watch")
	fs.StringSliceVar(&f.ResourceSelectors, "resource-label-selector", nil, "labels of the sources to follow")
}

func (f *ProcessFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.LogFormat, "log-format", "", "format of log lines: json, or text if empty")
	fs.StringVar(&f.LogLevel, "log-level", "info", "lowest level that is logged: trace, debug, info, warning, error, fatal or panic")
	fs.BoolVar(&f.HA, "enable-ha", false, "use leader election: one replica is active, the others stand by; needs POD_NAME and POD_NAMESPACE")
	fs.BoolVar(&f.Pprof, "enable-pprof", false, "serve profiles at --pprof-addr")
	fs.StringVar(&f.PprofAddr, "pprof-addr", ":6060", "address of the profiles")
	fs.StringVar(&f.MetricsAddr, "metrics-addr", ":9090", "address that serves /metrics, /live, /healthz and /readyz (new in Lockstep)")
}
