package reloader

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// Name is the program's executable, and Short what it does; ImageName is the executable in the
// original's image.
const (
	Name      = "reloader"
	Short     = "reload workloads when a ConfigMap or Secret changes (Stakater Reloader)"
	ImageName = "manager"
)

// Options are those of the original, from its command line and its environment.
type Options struct {
	Flags

	Log run.LogOptions
	// Engine is what the flags ask of the engine.
	Engine reloader.Options
	Alert  Alert
	// PodName and PodNamespace are the process's own, empty if they aren't known.
	PodName, PodNamespace string
	// MetaNamespace is where the meta-info ConfigMap is written, empty for nowhere; Deployment is
	// the name that it shows.
	MetaNamespace, Deployment string
	// ByNamespace counts reloads by namespace.
	ByNamespace bool
	// Warnings are about settings without effect.
	Warnings []string
}

// Alert is where users are notified of reloads.
type Alert struct {
	On bool
	// Sink is the kind of receiver, and Info begins each message.
	Sink, Info string
	URL, Proxy notice.Hidden
}

// UsageError is a command line that can't be read.
type UsageError struct{ error }

// Parse reads a command line and the environment of the original.
func Parse(args []string, lookup func(string) (string, bool)) (Options, error) {
	flags, fs := newFlags()
	if err := fs.Parse(args); err != nil {
		return Options{}, UsageError{commandline.FlagError(fs, err)}
	}
	o := Options{Flags: *flags}
	if o.Help || o.Version {
		return o, nil
	}
	if fs.NArg() > 0 {
		o.warn("the argument %q has no effect", fs.Arg(0))
	}
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	o.readLog()
	o.readEnvironment(get)
	err := errors.Join(o.readEngine(), o.readSources(), o.readNamespaces(get("KUBERNETES_NAMESPACE")), o.readElection())
	o.readWorkloads()
	return o, err
}

// Usage is what --help prints.
func Usage() string {
	_, fs := newFlags()
	return "reloader: reload workloads when the ConfigMaps and Secrets that they use change.\n" +
		"This is Lockstep, running as a replacement for Stakater Reloader.\n\nOptions:\n" + fs.FlagUsages()
}

func (o *Options) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...))
}

// isOn reads a switch whose value is text. Only "true" turns it on, as in the original; another
// value that looks like it deserves a warning.
func (o *Options) isOn(name, value string) bool {
	if on, err := strconv.ParseBool(value); value != "true" && value != "" && (err != nil || on) {
		o.warn("%s=%s is off: write %s=true to turn it on", name, value, name)
	}
	return value == "true"
}

func (o *Options) readEnvironment(get func(string) string) {
	o.PodName, o.PodNamespace = get("POD_NAME"), get("POD_NAMESPACE")
	o.MetaNamespace, o.Deployment = get("RELOADER_NAMESPACE"), get("RELOADER_DEPLOYMENT_NAME")
	o.ByNamespace = get("METRICS_COUNT_BY_NAMESPACE") == "enabled"
	trimmed := func(name string) string { return strings.TrimSpace(get(name)) }
	o.Alert = Alert{
		On: o.isOn("ALERT_ON_RELOAD", get("ALERT_ON_RELOAD")), Sink: strings.ToLower(trimmed("ALERT_SINK")), Info: trimmed("ALERT_ADDITIONAL_INFO"),
		URL: notice.Hidden(trimmed("ALERT_WEBHOOK_URL")), Proxy: notice.Hidden(trimmed("ALERT_WEBHOOK_PROXY")),
	}
}

func (o *Options) readEngine() error {
	f := o.Reload
	o.Engine = reloader.Options{
		Words:    stakater.Words{Keys: o.Keys, AutoAll: f.AutoAll},
		Strategy: reloader.Strategy(f.Strategy),
		OnCreate: o.isOn("--reload-on-create", f.OnCreate), OnDelete: o.isOn("--reload-on-delete", f.OnDelete),
		SyncAfterRestart: f.SyncAfterRestart,
		Quiet:            f.Quiet, MaxDelay: maxDelay(f.Quiet),
		RerunJobs: f.RerunJobs, DeliverMissed: f.DeliverMissed,
		State: cmp.Or(o.PodNamespace, o.MetaNamespace), Name: cmp.Or(o.Deployment, Name), Standby: o.Process.HA,
	}
	if f.SyncAfterRestart && !o.Engine.OnCreate {
		o.warn("--sync-after-restart has no effect without --reload-on-create=true")
	}
	if o.Engine.State == "" {
		o.warn("neither POD_NAMESPACE nor RELOADER_NAMESPACE is set: handled changes are not recorded, so changes while this process is down are missed")
	}
	if s := o.Engine.Strategy; s != reloader.EnvVars && s != reloader.Annotations {
		return fmt.Errorf("--reload-strategy %q: want %s or %s", s, reloader.EnvVars, reloader.Annotations)
	}
	if f.Quiet < 0 {
		return fmt.Errorf("--quiet %s: want a duration from 0s", f.Quiet)
	}
	return nil
}

// maxDelay is the maximum time continuous changes can delay a reload: ten times the quiet window,
// but at most a minute unless the window itself is longer.
func maxDelay(quiet time.Duration) time.Duration {
	return max(quiet, min(10*quiet, time.Minute))
}

func (o *Options) readSources() error {
	scope := &o.Engine.Scope
	scope.ConfigMaps, scope.Secrets, scope.Classes = true, true, o.Watch.CSI
	ignored := names(o.Watch.IgnoredResources)
	switch {
	case len(ignored) == 0:
	case len(ignored) == 1 && strings.EqualFold(ignored[0], "configmaps"):
		scope.ConfigMaps = false
	case len(ignored) == 1 && strings.EqualFold(ignored[0], "secrets"):
		scope.Secrets = false
	default:
		return fmt.Errorf("--resources-to-ignore %q: want configmaps or secrets, one of them", strings.Join(ignored, ","))
	}
	var err error
	scope.ResourceSelector, err = selector("--resource-label-selector", o.Watch.ResourceSelectors)
	return err
}

// readWorkloads reads which kinds are reloaded. A wrong kind voids the whole list, as in the
// original.
func (o *Options) readWorkloads() {
	ignored := o.Watch.IgnoredWorkloads
	for _, kind := range ignored {
		if kind != "jobs" && kind != "cronjobs" {
			o.warn("--ignored-workload-types %q: want jobs or cronjobs, in lower case; the whole list has no effect", kind)
			ignored = nil
			break
		}
	}
	scope := &o.Engine.Scope
	scope.Jobs, scope.CronJobs = !slices.Contains(ignored, "jobs"), !slices.Contains(ignored, "cronjobs")
	scope.Rollouts = o.isOn("--is-Argo-Rollouts", o.Watch.Rollouts)
}

// readNamespaces reads which namespaces are watched: those of the flag, else only the given one,
// else all that the other flags choose.
func (o *Options) readNamespaces(only string) error {
	scope := &o.Engine.Scope
	chosen, err := selector("--namespace-selector", o.Watch.NamespaceSelectors)
	if err != nil {
		return err
	}
	scope.Namespaces = names(o.Watch.Namespaces)
	if len(scope.Namespaces) == 0 && only != "" {
		scope.Namespaces = []string{only}
	}
	ignored := names(o.Watch.IgnoredNamespaces)
	if len(scope.Namespaces) == 0 {
		scope.IgnoredNamespaces, scope.NamespaceSelector = ignored, chosen
		return nil
	}
	only = strings.Join(scope.Namespaces, ", ")
	if len(ignored) > 0 {
		o.warn("--namespaces-to-ignore has no effect: only %s is watched", only)
	}
	if chosen != nil {
		o.warn("--namespace-selector has no effect: only %s is watched", only)
	}
	return nil
}

func (o *Options) readElection() error {
	if o.Process.HA && (o.PodName == "" || o.PodNamespace == "") {
		return errors.New("--enable-ha: needs the environment variables POD_NAME and POD_NAMESPACE")
	}
	return nil
}

// names are the items of a list, each once, without blanks around them.
func names(items []string) []string {
	var list []string
	for _, item := range items {
		if name := strings.TrimSpace(item); name != "" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// selector is nil without items.
func selector(flag string, items []string) (labels.Selector, error) {
	if len(items) == 0 {
		return nil, nil //nolint:nilnil // no selector chooses everything
	}
	chosen, err := stakater.Selector(items)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return chosen, nil
}
