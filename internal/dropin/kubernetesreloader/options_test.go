package kubernetesreloader_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubernetesreloader"
)

func TestParse(t *testing.T) {
	t.Parallel()
	base := kubernetesreloader.Options{Namespace: "ns", StateName: "state", Quiet: 5 * time.Second, Port: 8080}
	with := func(change func(*kubernetesreloader.Options)) kubernetesreloader.Options {
		o := base
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		reason string
		args   string
		env    map[string]string
		want   kubernetesreloader.Options
	}{
		"Manifest": {"the published manifest", "--port=8080 --namespace=ns --configmap=state", nil, base},
		"ManifestOptions": {
			"the published manifest with all that it proposes", "--port=8080 --namespace=ns --configmap=state" +
				" --alternative-configmap-annotation=configmap.reloader.stakater.com/reload" +
				" --alternative-secret-annotation=secret.reloader.stakater.com/reload --coalesce-period=10000", nil,
			with(func(o *kubernetesreloader.Options) {
				o.AlternativeConfigMap, o.AlternativeSecret = "configmap.reloader.stakater.com/reload", "secret.reloader.stakater.com/reload"
				o.Quiet = 10 * time.Second
			}),
		},
		"Spaces":    {"values behind a space", "--namespace ns --configmap state", nil, base},
		"CamelCase": {"yargs takes both spellings", "--namespace=ns --configmap=state --coalescePeriod=250", nil, with(func(o *kubernetesreloader.Options) { o.Quiet = 250 * time.Millisecond })},
		"Array":     {"an array takes values up to the next flag", "--ignored-config-resource-types v1.Secret --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.IgnoreSecrets = true })},
		"Unknown":   {"unknown flags were accepted", "--namespace=ns --configmap=state --frobnicate=7 --verbose", nil, base},
		"Unused": {"KR-20: a flag without effect is warned of", "--namespace=ns --configmap=state --resource-type=v1.Deployment", nil, with(func(o *kubernetesreloader.Options) {
			o.Warnings = []string{"--resource-type has no effect, as in the original"}
		})},
		"PortEnv":  {"PORT where no flag is", "--namespace=ns --configmap=state", map[string]string{"PORT": "9"}, with(func(o *kubernetesreloader.Options) { o.Port = 9 })},
		"PortFlag": {"the flag wins", "--namespace=ns --configmap=state --port 7", map[string]string{"PORT": "9"}, with(func(o *kubernetesreloader.Options) { o.Port = 7 })},
		"Aliases": {"short and alternative names", "-s https://x --cacert=ca --cert=c --key=k --insecure-skip-tls-verify --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) {
			o.Cluster.Server, o.Cluster.CAFile, o.Cluster.ClientCertFile, o.Cluster.ClientKeyFile, o.Cluster.Insecure = "https://x", "ca", "c", "k", true
		})},
		"Alternatives": {"further annotations", "--namespace=ns --configmap=state --alternative-configmap-annotation=c/x --alternative-secret-annotation s/x", nil, with(func(o *kubernetesreloader.Options) {
			o.AlternativeConfigMap, o.AlternativeSecret = "c/x", "s/x"
		})},
		"OneValue":   {"a flag of text takes one value; the rest belongs to nobody", "--namespace ns other --configmap state more", nil, base},
		"Positional": {"a word before the flags belongs to nobody", "watch --namespace ns --configmap state", nil, base},
		"DoubleDash": {"nothing counts after two dashes", "--namespace ns --configmap state -- --port 1 --help", nil, base},
		"Repeated":   {"the last of a repeated flag", "--namespace=a --namespace=ns --configmap=state --port=1 --port=8080", nil, base},
		"Arrays": {"an array goes on behind =, and may repeat", "--resource-type=a b --ignored-config-resource-types=v1.Pod v1.Secret --resourceType c --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) {
			o.IgnoreSecrets = true
			o.Warnings = []string{"--ignored-config-resource-types v1.Pod: only v1.ConfigMap and v1.Secret have an effect", "--resource-type has no effect, as in the original"}
		})},
		"SwitchThenWord": {"a switch takes no other word", "--insecure-skip-tls-verify word --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.Cluster.Insecure = true })},
		"SwitchFalse":    {"but it takes false", "--insecure-skip-tls-verify false --namespace=ns --configmap=state", nil, base},
		"Negated":        {"--no-flag is false", "--insecureSkipTlsVerify --no-insecure-skip-tls-verify --no-help --namespace=ns --configmap=state", nil, base},
		"NegatedText":    {"--no-flag of text is as if it was not given", "--token=t --no-token --namespace=ns --configmap=state", nil, base},
		"DashValue":      {"behind = a value may begin with a dash", "--token=-x --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.Cluster.Token = "-x" })},
		"FlagIsNoValue":  {"behind a space it is the next flag", "--token --namespace ns --configmap state", nil, base},
		"EqualsInside":   {"only the first = separates", "--token=a=b --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.Cluster.Token = "a=b" })},
		"ShortEquals":    {"-s=URL", "-s=https://x --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.Cluster.Server = "https://x" })},
		"Letters":        {"letters behind one dash are flags of their own", "-namespace x --namespace=ns --configmap=state", nil, base},
		"Exponent":       {"a number in any spelling", "--namespace=ns --configmap=state --coalesce-period 1e3", nil, with(func(o *kubernetesreloader.Options) { o.Quiet = time.Second })},
		"Zero":           {"no quiet at all", "--namespace=ns --configmap=state --coalesce-period 0", nil, with(func(o *kubernetesreloader.Options) { o.Quiet = 0 })},
		"Basic":          {"undeclared and accepted", "--username u --password p --namespace=ns --configmap=state", nil, with(func(o *kubernetesreloader.Options) { o.Cluster.Username, o.Cluster.Password = "u", "p" })},
		"EmptyPort":      {"a variable without a value", "--namespace=ns --configmap=state", map[string]string{"PORT": ""}, base},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := func(key string) (string, bool) { v, ok := tc.env[key]; return v, ok }
			got, err := kubernetesreloader.Parse(strings.Fields(tc.args), lookup)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--configmap=state": "missing required arguments: namespace",
		"":                  "missing required arguments: namespace, configmap",
		"--namespace=n --configmap=s --coalesce-period=-1":                                   "want milliseconds",
		"--namespace=n --configmap=s --coalesce-period -1":                                   "want milliseconds",
		"--namespace=n --configmap=s --coalesce-period=NaN":                                  "want milliseconds",
		"--namespace=n --configmap=s --coalesce-period=Infinity":                             "want milliseconds",
		"--namespace=n --configmap=s --coalesce-period=5s":                                   "want milliseconds",
		"--namespace=n --configmap=":                                                         "missing required arguments: configmap",
		"-- --namespace=n --configmap=s":                                                     "missing required arguments: namespace, configmap",
		"--namespace=n --configmap=s --port=70000":                                           "want a number",
		"--namespace=n --configmap=s --port=http":                                            "want a number",
		"--namespace=n --configmap=s --ignored-config-resource-types v1.Secret v1.ConfigMap": "nothing to watch",
	} {
		_, err := kubernetesreloader.Parse(strings.Fields(args), func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want an error with %q", args, err, want)
		}
	}
}

// FuzzParse: options that are accepted can be run with.
func FuzzParse(f *testing.F) {
	f.Add("--namespace=ns --configmap state -s x")
	for _, more := range []string{"--port=70000", "--port -1", "--coalesce-period=-1", "--coalesce-period=1e300", "--ignored-config-resource-types v1.Secret v1.ConfigMap"} {
		f.Add("--namespace=ns --configmap=state " + more)
	}
	f.Fuzz(func(t *testing.T, line string) {
		o, err := kubernetesreloader.Parse(strings.Fields(line), func(string) (string, bool) { return "", false })
		if err != nil || o.Help || o.Version {
			return
		}
		if o.Namespace == "" || o.StateName == "" || o.IgnoreConfigMaps && o.IgnoreSecrets {
			t.Errorf("%q is accepted, and there is nothing to follow: %+v", line, o)
		}
		if o.Quiet < 0 || o.Quiet > 24*time.Hour || o.MaxDelay() < o.Quiet || o.Port < 0 || o.Port > 65535 {
			t.Errorf("%q is accepted with a period of %s, a maximum delay of %s and port %d", line, o.Quiet, o.MaxDelay(), o.Port)
		}
	})
}

func TestMaxDelay(t *testing.T) {
	t.Parallel()
	for quiet, want := range map[time.Duration]time.Duration{
		0:                      0,
		300 * time.Millisecond: 3 * time.Second,
		5 * time.Second:        50 * time.Second,
		10 * time.Second:       time.Minute,
		2 * time.Minute:        2 * time.Minute,
	} {
		if got := (kubernetesreloader.Options{Quiet: quiet}).MaxDelay(); got != want {
			t.Errorf("with a period of %s the maximum delay is %s, want %s", quiet, got, want)
		}
	}
}
