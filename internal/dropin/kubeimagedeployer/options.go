package kubeimagedeployer

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
)

// Name is the program's executable, and Short what it does.
const (
	Name  = "kube-image-deployer"
	Short = "roll workloads to the newest digest of a tag"
)

// Options are the options of the original.
type Options struct {
	// Kubeconfig is for a process outside of a pod, by default ~/.kube/config.
	Kubeconfig string
	// OffDeployments and the others disable a kind of workload.
	OffDeployments, OffStatefulSets, OffDaemonSets, OffCronJobs bool
	// TTL is the maximum age of a digest, and Interval how often it is checked.
	TTL, Interval time.Duration
	Words         Words
	// Namespace is the only one that is watched, empty for all.
	Namespace string
	// SlackWebhook is secret, and empty for none; SlackPrefix is the prefix of messages.
	SlackWebhook, SlackPrefix string
	// MetricsAddr and ProbeAddr are new in Lockstep; 0 disables them.
	MetricsAddr, ProbeAddr string
	// Verbose is the klog verbosity.
	Verbose int
	// Warnings are about settings without effect.
	Warnings []string
}

// UsageError is an invalid command line, which package flag has reported on standard error.
type UsageError struct{ error }

// IsHelp reports whether only help was requested.
func (e UsageError) IsHelp() bool { return errors.Is(e.error, flag.ErrHelp) }

// seconds are the flags in seconds.
type seconds struct{ ttl, interval uint }

// Parse reads a command line and the variables of the original. Non-empty variables win.
func Parse(args []string, lookup func(string) (string, bool), output io.Writer) (Options, error) {
	var o Options
	var given seconds
	fs := flag.NewFlagSet(Name, flag.ContinueOnError)
	fs.SetOutput(output)
	cronJobV1 := o.bind(fs, &given)
	ours := flagNames(fs)
	o.bindKlog(fs)
	if err := fs.Parse(args); err != nil {
		return o, UsageError{err}
	}
	o.readVariables(fs, ours, lookup)
	if *cronJobV1 {
		o.warn("use-cronjob-v1 has no effect: CronJobs are always read as batch/v1")
	}
	if fs.NArg() > 0 {
		o.warn("the argument %q has no effect", fs.Arg(0))
	}
	o.TTL, o.Interval = duration(given.ttl), duration(given.interval)
	if given.interval == 0 {
		o.Interval = time.Second
		o.warn("image-check-interval-sec 0 counts as 1, so registries aren't queried without a pause")
	}
	o.SlackPrefix = cmp.Or(o.SlackPrefix, "["+hostname()+"]")
	return o, o.validate()
}

// duration is a number of seconds, a year at most.
func duration(seconds uint) time.Duration {
	return time.Duration(min(seconds, 365*24*60*60)) * time.Second
}

func (o *Options) bind(fs *flag.FlagSet, given *seconds) (cronJobV1 *bool) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file, outside of a pod (default ~/.kube/config)")
	fs.BoolVar(&o.OffDeployments, "off-deployments", false, "leave Deployments alone")
	fs.BoolVar(&o.OffStatefulSets, "off-statefulsets", false, "leave StatefulSets alone")
	fs.BoolVar(&o.OffDaemonSets, "off-daemonsets", false, "leave DaemonSets alone")
	fs.BoolVar(&o.OffCronJobs, "off-cronjobs", false, "leave CronJobs alone")
	cronJobV1 = fs.Bool("use-cronjob-v1", false, "without effect: CronJobs are always batch/v1")
	fs.UintVar(&given.ttl, "image-hash-cache-ttl-sec", 60, "maximum age of a tag's digest, in seconds; 0 queries it at each interval")
	fs.UintVar(&given.interval, "image-check-interval-sec", 10, "interval between checks for new digests, in seconds")
	fs.StringVar(&o.Words.Key, "controller-watch-key", DefaultKey, "label of the workloads, and beginning of the annotations")
	fs.StringVar(&o.Namespace, "controller-watch-namespace", "", "the only namespace to watch (default all)")
	fs.StringVar(&o.Words.Platform, "image-default-platform", "linux/amd64", "platform whose image is pinned; index pins that of every platform")
	fs.StringVar(&o.SlackWebhook, "slack-webhook", "", "URL of a Slack webhook (default none)")
	fs.StringVar(&o.SlackPrefix, "slack-msg-prefix", "", "beginning of the messages (default [hostname])")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address that serves /metrics; 0 for none")
	fs.StringVar(&o.ProbeAddr, "probe-addr", ":8081", "address that serves /healthz and /readyz; 0 for none")
	return cronJobV1
}

func flagNames(fs *flag.FlagSet) []string {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// Variable is the environment variable of a flag.
func Variable(name string) string {
	if name == "kubeconfig" {
		return "KUBECONFIG_PATH"
	}
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// readVariables sets the flags whose variable is not empty. In the original any text enabled a
// switch, even "false", and an invalid number was ignored.
func (o *Options) readVariables(fs *flag.FlagSet, names []string, lookup func(string) (string, bool)) {
	for _, name := range names {
		value, _ := lookup(Variable(name))
		before := fs.Lookup(name).Value.String()
		if value == "" || fs.Set(name, value) == nil {
			continue
		}
		if isSwitch(fs.Lookup(name).Value) {
			_ = fs.Set(name, "true")
			o.warn("%s=%s is neither true nor false, and counts as true", Variable(name), value)
			continue
		}
		_ = fs.Set(name, before) // An invalid number has set it to 0.
		o.warn("%s=%s isn't a number of seconds, and has no effect", Variable(name), value)
	}
}

func isSwitch(v flag.Value) bool {
	b, ok := v.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (o *Options) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...))
}

// bindKlog accepts the klog flags of the original. Only -v has an effect.
func (o *Options) bindKlog(fs *flag.FlagSet) {
	known := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(known)
	known.VisitAll(func(f *flag.Flag) {
		fs.Var(unused{f.Name, isSwitch(f.Value), o}, f.Name, "of klog")
	})
}

// unused is a klog flag.
type unused struct {
	name     string
	isSwitch bool
	options  *Options
}

// Set reads the verbosity, and warns about any other flag.
func (u unused) Set(value string) error {
	if u.name != "v" {
		u.options.warn("-%s has no effect: logs are lines on standard error", u.name)
		return nil
	}
	n, err := strconv.Atoi(value)
	u.options.Verbose = n
	return err
}

// String is the default.
func (u unused) String() string { return "" }

// IsBoolFlag reports whether the flag doesn't need a value.
func (u unused) IsBoolFlag() bool { return u.isSwitch }

func (o *Options) validate() error {
	var wrong []error
	key := o.Words.Key
	if strings.Contains(key, "/") || len(slices.Concat(validation.IsQualifiedName(key), validation.IsDNS1123Subdomain(strings.ToLower(key)))) > 0 {
		wrong = append(wrong, fmt.Errorf("controller-watch-key %q: want the name of a label without a slash, such as %s", key, DefaultKey))
	}
	// Blanks around the name are dropped, but blanks alone don't stand for all namespaces.
	if trimmed := strings.TrimSpace(o.Namespace); o.Namespace == "" || len(validation.IsDNS1123Label(trimmed)) == 0 {
		o.Namespace = trimmed
	} else {
		wrong = append(wrong, fmt.Errorf("controller-watch-namespace %q: want the name of one namespace, or nothing for all", o.Namespace))
	}
	platform, err := ParsePlatform(o.Words.Platform)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("image-default-platform: %w", err))
	}
	o.Words.Platform = platform
	o.SlackWebhook = strings.TrimSpace(o.SlackWebhook)
	if u, err := url.Parse(o.SlackWebhook); o.SlackWebhook != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		o.SlackWebhook = ""
		o.warn("slack-webhook has no effect: want a URL that begins with https://") // The value is secret.
	}
	if o.OffDeployments && o.OffStatefulSets && o.OffDaemonSets && o.OffCronJobs {
		o.warn("every kind of workload is off: there is nothing left to watch")
	}
	return errors.Join(wrong...)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
