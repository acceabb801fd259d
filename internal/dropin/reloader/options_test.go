package reloader

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
	"github.com/lockstep-dev/lockstep/internal/run"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := env[name]
		return value, set
	}
}

// inRelease is the environment that the chart sets.
func inRelease() map[string]string {
	return map[string]string{"RELOADER_NAMESPACE": "tools", "RELOADER_DEPLOYMENT_NAME": "reloader-reloader"}
}

// selectors compares label selectors as texts: their types have no exported fields.
func selectors() cmp.Option {
	text := func(s labels.Selector) string {
		if s == nil {
			return "none"
		}
		return s.String()
	}
	return cmp.Comparer(func(a, b labels.Selector) bool { return text(a) == text(b) })
}

func everything() reloader.Scope {
	return reloader.Scope{ConfigMaps: true, Secrets: true, Jobs: true, CronJobs: true}
}

// defaults are the options without flags.
func defaults() Options {
	return Options{
		Flags: Flags{
			Keys:    stakater.DefaultKeys(),
			Reload:  ReloadFlags{Strategy: "env-vars", OnCreate: "false", OnDelete: "false", Quiet: time.Second},
			Watch:   WatchFlags{Rollouts: "false"},
			Process: ProcessFlags{LogLevel: "info", PprofAddr: ":6060", MetricsAddr: ":9090"},
		},
		Log: run.LogOptions{Lower: true},
		Engine: reloader.Options{
			Words: stakater.Words{Keys: stakater.DefaultKeys()}, Strategy: reloader.EnvVars,
			Quiet: time.Second, MaxDelay: 10 * time.Second, State: "tools", Name: "reloader-reloader",
			Scope: everything(),
		},
		MetaNamespace: "tools", Deployment: "reloader-reloader",
	}
}

// TestParse has every flag of the original.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   []string
		env    map[string]string
		change func(*Options)
	}{
		"Nothing":       {"the defaults", nil, nil, func(*Options) {}},
		"AutoReloadAll": {"a switch needs no value", []string{"--auto-reload-all"}, nil, func(o *Options) { o.Reload.AutoAll, o.Engine.Words.AutoAll = true, true }},
		"AutoReloadOff": {"but takes one", []string{"--auto-reload-all=false"}, nil, func(*Options) {}},
		"Strategy": {"the other strategy, after a blank", []string{"--reload-strategy", "annotations"}, nil, func(o *Options) {
			o.Reload.Strategy, o.Engine.Strategy = "annotations", reloader.Annotations
		}},
		"OnCreateAndDelete": {"switches with text", []string{"--reload-on-create=true", "--reload-on-delete=true", "--sync-after-restart"}, nil, func(o *Options) {
			o.Reload.OnCreate, o.Reload.OnDelete, o.Reload.SyncAfterRestart = "true", "true", true
			o.Engine.OnCreate, o.Engine.OnDelete, o.Engine.SyncAfterRestart = true, true, true
		}},
		"AlmostTrue": {"only true is on, and a warning says so", []string{"--reload-on-create=True", "--reload-on-delete=1", "--is-Argo-Rollouts=yes"}, nil, func(o *Options) {
			o.Reload.OnCreate, o.Reload.OnDelete, o.Watch.Rollouts = "True", "1", "yes"
			o.Warnings = []string{
				"--reload-on-create=True is off: write --reload-on-create=true to turn it on",
				"--reload-on-delete=1 is off: write --reload-on-delete=true to turn it on",
				"--is-Argo-Rollouts=yes is off: write --is-Argo-Rollouts=true to turn it on",
			}
		}},
		"PlainlyFalse": {"no warning", []string{"--reload-on-create=False", "--reload-on-delete=0", "--is-Argo-Rollouts="}, nil, func(o *Options) {
			o.Reload.OnCreate, o.Reload.OnDelete, o.Watch.Rollouts = "False", "0", ""
		}},
		"SyncAlone": {"it needs --reload-on-create", []string{"--sync-after-restart"}, nil, func(o *Options) {
			o.Reload.SyncAfterRestart, o.Engine.SyncAfterRestart = true, true
			o.Warnings = []string{"--sync-after-restart has no effect without --reload-on-create=true"}
		}},
		"Rollouts":  {"the capitals are the original's", []string{"--is-Argo-Rollouts=true"}, nil, func(o *Options) { o.Watch.Rollouts, o.Engine.Scope.Rollouts = "true", true }},
		"CSI":       {"SecretProviderClasses", []string{"--enable-csi-integration"}, nil, func(o *Options) { o.Watch.CSI, o.Engine.Scope.Classes = true, true }},
		"NoSecrets": {"in any letter case", []string{"--resources-to-ignore=SECRETS"}, nil, func(o *Options) { o.Watch.IgnoredResources, o.Engine.Scope.Secrets = []string{"SECRETS"}, false }},
		"NoMaps":    {"the other type", []string{"--resources-to-ignore", "configMaps"}, nil, func(o *Options) { o.Watch.IgnoredResources, o.Engine.Scope.ConfigMaps = []string{"configMaps"}, false }},
		"NoJobs":    {"one kind", []string{"--ignored-workload-types=jobs"}, nil, func(o *Options) { o.Watch.IgnoredWorkloads, o.Engine.Scope.Jobs = []string{"jobs"}, false }},
		"NoCronJobs": {"both kinds, in two flags", []string{"--ignored-workload-types=jobs", "--ignored-workload-types=cronjobs"}, nil, func(o *Options) {
			o.Watch.IgnoredWorkloads, o.Engine.Scope.Jobs, o.Engine.Scope.CronJobs = []string{"jobs", "cronjobs"}, false, false
		}},
		"WrongKinds": {"a wrong kind voids the list", []string{"--ignored-workload-types=jobs,CronJobs"}, nil, func(o *Options) {
			o.Watch.IgnoredWorkloads = []string{"jobs", "CronJobs"}
			o.Warnings = []string{`--ignored-workload-types "CronJobs": want jobs or cronjobs, in lower case; the whole list has no effect`}
		}},
		"Namespaces": {"only these, each once", []string{"--namespaces=shop,web", "--namespaces", "shop"}, map[string]string{"KUBERNETES_NAMESPACE": "tools"}, func(o *Options) {
			o.Watch.Namespaces, o.Engine.Scope.Namespaces = []string{"shop", "web", "shop"}, []string{"shop", "web"}
		}},
		"OneNamespace": {"the environment's", nil, map[string]string{"KUBERNETES_NAMESPACE": "shop"}, func(o *Options) { o.Engine.Scope.Namespaces = []string{"shop"} }},
		"NotThese": {"all but these, with the labels", []string{"--namespaces-to-ignore=kube-system, tools", `--namespace-selector="env in (prod,test)",team:shop,gone:*`}, nil, func(o *Options) {
			o.Watch.IgnoredNamespaces, o.Watch.NamespaceSelectors = []string{"kube-system", " tools"}, []string{"env in (prod,test)", "team:shop", "gone:*"}
			o.Engine.Scope.IgnoredNamespaces = []string{"kube-system", "tools"}
			o.Engine.Scope.NamespaceSelector, _ = stakater.Selector([]string{"env in (prod,test)", "team=shop", "gone"})
		}},
		"ScopedNotThese": {"both are void in scoped mode", []string{"--namespaces=shop", "--namespaces-to-ignore=web", "--namespace-selector=a=b"}, nil, func(o *Options) {
			o.Watch.Namespaces, o.Watch.IgnoredNamespaces, o.Watch.NamespaceSelectors = []string{"shop"}, []string{"web"}, []string{"a=b"}
			o.Engine.Scope.Namespaces = []string{"shop"}
			o.Warnings = []string{"--namespaces-to-ignore has no effect: only shop is watched", "--namespace-selector has no effect: only shop is watched"}
		}},
		"ResourceSelector": {"labels of sources", []string{"--resource-label-selector=a=b"}, nil, func(o *Options) {
			o.Watch.ResourceSelectors = []string{"a=b"}
			o.Engine.Scope.ResourceSelector, _ = stakater.Selector([]string{"a=b"})
		}},
		"Webhook": {"instead of reloading", []string{"--webhook-url=https://hooks.example/x"}, nil, func(o *Options) { o.Reload.WebhookURL = "https://hooks.example/x" }},
		"JSON": {"format and level", []string{"--log-format=json", "--log-level=DEBUG"}, nil, func(o *Options) {
			o.Process.LogFormat, o.Process.LogLevel, o.Log.JSON, o.Log.Level = "json", "DEBUG", true, slog.LevelDebug
		}},
		"WrongFormat": {"text of level info", []string{"--log-format=xml", "--log-level=error"}, nil, func(o *Options) {
			o.Process.LogFormat, o.Process.LogLevel = "xml", "error"
			o.Warnings = []string{`--log-format "xml": want json or nothing; the log is text of level info`}
		}},
		"WrongLevel": {"info", []string{"--log-level=loud"}, nil, func(o *Options) {
			o.Process.LogLevel = "loud"
			o.Warnings = []string{`--log-level "loud": want trace, debug, info, warning, error, fatal or panic; the level is info`}
		}},
		"HA": {"with the pod's names", []string{"--enable-ha"}, map[string]string{"POD_NAME": "reloader-0", "POD_NAMESPACE": "ops"}, func(o *Options) {
			o.Process.HA, o.PodName, o.PodNamespace, o.Engine.State, o.Engine.Standby = true, "reloader-0", "ops", "ops", true
		}},
		"Pprof": {"at another address", []string{"--enable-pprof", "--pprof-addr=:7"}, nil, func(o *Options) { o.Process.Pprof, o.Process.PprofAddr = true, ":7" }},
		"Ours": {"new in Lockstep", []string{"--quiet=3m", "--deliver-missed", "--rerun-jobs", "--metrics-addr=0"}, nil, func(o *Options) {
			o.Reload.Quiet, o.Reload.DeliverMissed, o.Reload.RerunJobs, o.Process.MetricsAddr = 3*time.Minute, true, true, "0"
			o.Engine.Quiet, o.Engine.MaxDelay, o.Engine.DeliverMissed, o.Engine.RerunJobs = 3*time.Minute, 3*time.Minute, true, true
		}},
		"Argument":    {"the original ignores it", []string{"run"}, nil, func(o *Options) { o.Warnings = []string{`the argument "run" has no effect`} }},
		"Help":        {"nothing else is read", []string{"--help", "--reload-strategy=x"}, nil, func(o *Options) { *o = Options{Flags: o.Flags}; o.Help, o.Reload.Strategy = true, "x" }},
		"ByNamespace": {"only for this word", nil, map[string]string{"METRICS_COUNT_BY_NAMESPACE": "enabled"}, func(o *Options) { o.ByNamespace = true }},
		"Alerts": {"trimmed; the sink in lower case", nil, map[string]string{
			"ALERT_ON_RELOAD": "true", "ALERT_SINK": " Slack ", "ALERT_WEBHOOK_URL": " https://hooks.example/s ", "ALERT_WEBHOOK_PROXY": " http://proxy:1 ", "ALERT_ADDITIONAL_INFO": " prod ",
		}, func(o *Options) {
			o.Alert = Alert{On: true, Sink: "slack", URL: "https://hooks.example/s", Proxy: "http://proxy:1", Info: "prod"}
		}},
		"AlmostAlerts": {"only true is on", nil, map[string]string{"ALERT_ON_RELOAD": "TRUE"}, func(o *Options) {
			o.Warnings = []string{"ALERT_ON_RELOAD=TRUE is off: write ALERT_ON_RELOAD=true to turn it on"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := inRelease()
			maps.Copy(env, tc.env)
			want := defaults()
			tc.change(&want)
			got, err := Parse(tc.args, lookup(env))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(want, got, selectors()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestParseKeys: ten flags rename an annotation.
func TestParseKeys(t *testing.T) {
	t.Parallel()
	for flag, key := range map[string]func(*stakater.Keys) *string{
		"auto-annotation":                  func(k *stakater.Keys) *string { return &k.Auto },
		"configmap-auto-annotation":        func(k *stakater.Keys) *string { return &k.ConfigMapAuto },
		"secret-auto-annotation":           func(k *stakater.Keys) *string { return &k.SecretAuto },
		"configmap-annotation":             func(k *stakater.Keys) *string { return &k.ConfigMap },
		"secret-annotation":                func(k *stakater.Keys) *string { return &k.Secret },
		"auto-search-annotation":           func(k *stakater.Keys) *string { return &k.Search },
		"search-match-annotation":          func(k *stakater.Keys) *string { return &k.Match },
		"ignore-annotation":                func(k *stakater.Keys) *string { return &k.Ignore },
		"pause-deployment-annotation":      func(k *stakater.Keys) *string { return &k.PausePeriod },
		"pause-deployment-time-annotation": func(k *stakater.Keys) *string { return &k.PausedAt },
	} {
		want := stakater.DefaultKeys()
		*key(&want) = "example.com/own"
		got, err := Parse([]string{"--" + flag + "=example.com/own"}, lookup(inRelease()))
		if err != nil || got.Engine.Words.Keys != want {
			t.Errorf("--%s: %v (-want +got):\n%s", flag, err, cmp.Diff(want, got.Engine.Words.Keys))
		}
	}
}

func TestParseMistakes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   []string
		usage  bool
		want   string
	}{
		"UnknownFlag":   {"the spelling of the original's README", []string{"--is-argo-rollouts=true"}, true, "unknown flag: --is-argo-rollouts; did you mean --is-Argo-Rollouts?"},
		"NoValue":       {"a switch with text needs one", []string{"--reload-on-create"}, true, "--reload-on-create needs a value"},
		"NoBool":        {"a switch", []string{"--enable-ha=maybe"}, true, `--enable-ha "maybe": want true or false`},
		"Strategy":      {"neither of the two", []string{"--reload-strategy=default"}, false, `--reload-strategy "default": want env-vars or annotations`},
		"BothIgnored":   {"nothing is left to follow", []string{"--resources-to-ignore=configmaps,secrets"}, false, `--resources-to-ignore "configmaps,secrets": want configmaps or secrets, one of them`},
		"WrongIgnored":  {"another type", []string{"--resources-to-ignore=pods"}, false, `--resources-to-ignore "pods": want`},
		"Selector":      {"not a selector", []string{"--resource-label-selector=a in"}, false, "--resource-label-selector: "},
		"Namespaces":    {"not a selector", []string{"--namespace-selector=!!"}, false, "--namespace-selector: "},
		"HA":            {"no identity", []string{"--enable-ha"}, false, "--enable-ha: needs the environment variables POD_NAME and POD_NAMESPACE"},
		"NegativeQuiet": {"no such window", []string{"--quiet=-1s"}, false, "--quiet -1s: want a duration from 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tc.args, lookup(inRelease()))
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s: %v, want %q in one line", tc.reason, err, tc.want)
			}
			if _, usage := err.(UsageError); usage != tc.usage { //nolint:errorlint // the type of the whole error decides the exit code
				t.Errorf("%s: a usage error: %t", tc.reason, usage)
			}
		})
	}
}

// TestNoState: without the namespace there is no record, which is said once.
func TestNoState(t *testing.T) {
	t.Parallel()
	o, err := Parse(nil, lookup(nil))
	if err != nil || o.Engine.State != "" || len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "are not recorded") {
		t.Errorf("state %q, warnings %q, %v", o.Engine.State, o.Warnings, err)
	}
}
