package kubeimagedeployer_test

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

func lookup(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
}

// defaults are those of the original, and of what it did not have.
func defaults() kubeimagedeployer.Options {
	host, _ := os.Hostname()
	return kubeimagedeployer.Options{
		TTL: time.Minute, Interval: 10 * time.Second, Words: kubeimagedeployer.Words{Key: "kube-image-deployer", Platform: "linux/amd64"},
		SlackPrefix: "[" + host + "]", MetricsAddr: ":8080", ProbeAddr: ":8081",
	}
}

// everything is what can be said by flags and by variables alike.
func everything(o *kubeimagedeployer.Options) {
	o.Kubeconfig, o.Namespace = "/k", "shop"
	o.OffDeployments, o.OffStatefulSets, o.OffDaemonSets = true, true, true
	o.TTL, o.Interval = 30*time.Second, 5*time.Second
	o.Words = kubeimagedeployer.Words{Key: "team-a", Platform: "linux/arm64"}
	o.SlackWebhook, o.SlackPrefix = "https://hooks.example/T/B/x", "[prod]"
	o.MetricsAddr, o.ProbeAddr = "0", ":9000"
}

func TestParse(t *testing.T) {
	t.Parallel()
	flags := "-kubeconfig /k -controller-watch-namespace=shop --off-deployments --off-statefulsets=true -off-daemonsets --image-hash-cache-ttl-sec 30 -image-check-interval-sec=5 " +
		"-controller-watch-key team-a --image-default-platform linux/arm64 -slack-webhook https://hooks.example/T/B/x -slack-msg-prefix [prod] -metrics-addr 0 -probe-addr :9000"
	printed := "-kubeconfig= -off-deployments=false -off-statefulsets=false -off-daemonsets=false -off-cronjobs=false -use-cronjob-v1=false -image-hash-cache-ttl-sec=60 " +
		"-image-check-interval-sec=10 -controller-watch-key=kube-image-deployer -controller-watch-namespace= -image-default-platform=linux/amd64 -slack-webhook= -slack-msg-prefix="
	variables := map[string]string{
		"KUBECONFIG_PATH": "/k", "CONTROLLER_WATCH_NAMESPACE": "shop", "OFF_DEPLOYMENTS": "true", "OFF_STATEFULSETS": "1", "OFF_DAEMONSETS": "TRUE",
		"IMAGE_HASH_CACHE_TTL_SEC": "30", "IMAGE_CHECK_INTERVAL_SEC": "5", "CONTROLLER_WATCH_KEY": "team-a", "IMAGE_DEFAULT_PLATFORM": "linux/arm64",
		"SLACK_WEBHOOK": "https://hooks.example/T/B/x", "SLACK_MSG_PREFIX": "[prod]", "METRICS_ADDR": "0", "PROBE_ADDR": ":9000",
	}
	cases := map[string]struct {
		reason    string
		args      string
		variables map[string]string
		want      func(*kubeimagedeployer.Options)
		warnings  []string
	}{
		"Nothing":        {reason: "the defaults", want: func(*kubeimagedeployer.Options) {}},
		"Flags":          {reason: "every flag, with one dash or two", args: flags, want: everything},
		"Variables":      {reason: "every variable", variables: variables, want: everything},
		"Printed":        {reason: "the list of the original's page, with the defaults that it prints", args: printed, want: func(*kubeimagedeployer.Options) {}},
		"VariableWins":   {reason: "as the original meant it", args: "-controller-watch-key flag", variables: map[string]string{"CONTROLLER_WATCH_KEY": "variable"}, want: func(o *kubeimagedeployer.Options) { o.Words.Key = "variable" }},
		"EmptyVariable":  {reason: "an empty one says nothing", args: "-controller-watch-key flag", variables: map[string]string{"CONTROLLER_WATCH_KEY": ""}, want: func(o *kubeimagedeployer.Options) { o.Words.Key = "flag" }},
		"CronJobs":       {reason: "the fourth kind", variables: map[string]string{"OFF_CRONJOBS": "true"}, want: func(o *kubeimagedeployer.Options) { o.OffCronJobs = true }},
		"OffFalse":       {reason: "false is false", variables: map[string]string{"OFF_DEPLOYMENTS": "false"}, want: func(*kubeimagedeployer.Options) {}},
		"OffYes":         {reason: "any other text is true", variables: map[string]string{"OFF_DEPLOYMENTS": "yes"}, want: func(o *kubeimagedeployer.Options) { o.OffDeployments = true }, warnings: []string{"OFF_DEPLOYMENTS=yes is neither true nor false, and counts as true"}},
		"BadNumber":      {reason: "ignored, not in silence", variables: map[string]string{"IMAGE_CHECK_INTERVAL_SEC": "10s"}, want: func(*kubeimagedeployer.Options) {}, warnings: []string{"IMAGE_CHECK_INTERVAL_SEC=10s isn't a number of seconds, and has no effect"}},
		"NoTTL":          {reason: "no cache", args: "-image-hash-cache-ttl-sec 0", want: func(o *kubeimagedeployer.Options) { o.TTL = 0 }},
		"NoInterval":     {reason: "no busy loop", args: "-image-check-interval-sec 0", want: func(o *kubeimagedeployer.Options) { o.Interval = time.Second }, warnings: []string{"image-check-interval-sec 0 counts as 1, so registries aren't queried without a pause"}},
		"CronJobV1":      {reason: "of an earlier release", args: "-use-cronjob-v1", want: func(*kubeimagedeployer.Options) {}, warnings: []string{"use-cronjob-v1 has no effect: CronJobs are always read as batch/v1"}},
		"CronJobV1Set":   {reason: "its variable too", variables: map[string]string{"USE_CRONJOB_V1": "true"}, want: func(*kubeimagedeployer.Options) {}, warnings: []string{"use-cronjob-v1 has no effect: CronJobs are always read as batch/v1"}},
		"Index":          {reason: "the image of every platform", args: "-image-default-platform index", want: func(o *kubeimagedeployer.Options) { o.Words.Platform = "" }},
		"Variant":        {reason: "a platform with its variant", args: "-image-default-platform linux/arm/v7", want: func(o *kubeimagedeployer.Options) { o.Words.Platform = "linux/arm/v7" }},
		"Klog":           {reason: "the flags of klog", args: "-v=2 -logtostderr -vmodule x=3", want: func(o *kubeimagedeployer.Options) { o.Verbose = 2 }, warnings: []string{"-logtostderr has no effect: logs are lines on standard error", "-vmodule has no effect: logs are lines on standard error"}},
		"NamespaceBlank": {reason: "a Secret or a ConfigMap often ends with a line break", variables: map[string]string{"CONTROLLER_WATCH_NAMESPACE": "shop\n"}, want: func(o *kubeimagedeployer.Options) { o.Namespace = "shop" }},
		"SlackBlank":     {reason: "a webhook too", variables: map[string]string{"SLACK_WEBHOOK": "https://hooks.example/T/B/x\n"}, want: func(o *kubeimagedeployer.Options) { o.SlackWebhook = "https://hooks.example/T/B/x" }},
		"SlackScheme":    {reason: "the original went on; the warning doesn't contain the secret", variables: map[string]string{"SLACK_WEBHOOK": "hooks.example/T/B/x"}, want: func(*kubeimagedeployer.Options) {}, warnings: []string{"slack-webhook has no effect: want a URL that begins with https://"}},
		"AllOff": {
			reason: "the original went on", variables: map[string]string{"OFF_DEPLOYMENTS": "true", "OFF_STATEFULSETS": "true", "OFF_DAEMONSETS": "true", "OFF_CRONJOBS": "true"},
			want: func(o *kubeimagedeployer.Options) {
				o.OffDeployments, o.OffStatefulSets, o.OffDaemonSets, o.OffCronJobs = true, true, true, true
			},
			warnings: []string{"every kind of workload is off: there is nothing left to watch"},
		},
		"KubeconfigElse": {reason: "KUBECONFIG was not read", variables: map[string]string{"KUBECONFIG": "/k"}, want: func(*kubeimagedeployer.Options) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := kubeimagedeployer.Parse(strings.Fields(tc.args), lookup(tc.variables), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			tc.want(&want)
			want.Warnings = tc.warnings
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-controller-watch-key a/b":       `controller-watch-key "a/b": want the name of a label without a slash`,
		"-controller-watch-key a_b!":      `controller-watch-key "a_b!"`,
		"-controller-watch-namespace a,b": `controller-watch-namespace "a,b": want the name of one namespace`,
		"-image-default-platform amd64":   `image-default-platform: platform "amd64": want os/architecture`,
		"-image-check-interval-sec soon":  "invalid value",
		"-unknown":                        "flag provided but not defined",
	} {
		_, err := kubeimagedeployer.Parse(strings.Fields(args), lookup(nil), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	// strings.Fields would drop the line break.
	if _, err := kubeimagedeployer.Parse(nil, lookup(map[string]string{"CONTROLLER_WATCH_NAMESPACE": "\n"}), io.Discard); err == nil {
		t.Error("a namespace of blanks stands for all namespaces")
	}
	var usage kubeimagedeployer.UsageError
	if _, err := kubeimagedeployer.Parse([]string{"-h"}, lookup(nil), io.Discard); !errors.As(err, &usage) || !usage.IsHelp() {
		t.Errorf("-h is %v, want only help", err)
	}
}

func TestParseCommand(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, args, image, platform, wrong string
	}{
		"Default":  {reason: "the platform of the original", args: "-image busybox -tag 1.34.*", image: "busybox:1.34.*", platform: "linux/amd64"},
		"Dashes":   {reason: "two dashes", args: "--image=localhost:5000/a --tag=v1 --platform linux/arm64", image: "localhost:5000/a:v1", platform: "linux/arm64"},
		"Index":    {reason: "no platform", args: "-image a -tag 1 -platform index", image: "a:1"},
		"NoTag":    {reason: "a tag is needed", args: "-image a", wrong: "image or tag is missing"},
		"NoImage":  {reason: "an image is needed", args: "-tag a", wrong: "image or tag is missing"},
		"Platform": {reason: "a platform that is none", args: "-image a -tag 1 -platform x", wrong: `-platform: platform "x"`},
		"Digest":   {reason: "nothing to find", args: "-image a@sha256:1 -tag 1", wrong: "names a digest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := kubeimagedeployer.ParseCommand(strings.Fields(tc.args), io.Discard)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v, want %s", tc.reason, err, tc.wrong)
				}
				return
			}
			if err != nil || c.Image.String() != tc.image || c.Platform != tc.platform {
				t.Errorf("%s: %s for %q, %v", tc.reason, c.Image, c.Platform, err)
			}
		})
	}
}

func TestDockerConfigs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		variables map[string]string
		want      []string
	}{
		"Folder": {map[string]string{"DOCKER_CONFIG": "/d", "HOME": "/h"}, []string{"/d/config.json"}},
		"Home":   {map[string]string{"HOME": "/h"}, []string{"/h/.docker/config.json", "/root/.docker/config.json"}},
		"Root":   {map[string]string{"HOME": "/root"}, []string{"/root/.docker/config.json"}},
	} {
		if diff := cmp.Diff(tc.want, kubeimagedeployer.DockerConfigs(lookup(tc.variables))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestThePageHasARowForEverything: each flag and each variable is in the migration page.
func TestThePageHasARowForEverything(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/migrate/kube-image-deployer.md")
	if err != nil {
		t.Fatal(err)
	}
	var help strings.Builder
	_, _ = kubeimagedeployer.Parse([]string{"-h"}, lookup(nil), &help)
	flags := regexp.MustCompile(`(?m)^  -([a-z0-9-]+).*\n(.*)`).FindAllStringSubmatch(help.String(), -1)
	if len(flags) < 15 {
		t.Fatalf("the usage has only %d flags:\n%s", len(flags), help.String())
	}
	for _, f := range flags {
		if strings.HasSuffix(f[2], "of klog") {
			continue
		}
		if !strings.Contains(string(page), "`-"+f[1]+"`") {
			t.Errorf("the page has no row for -%s", f[1])
		}
		if variable := kubeimagedeployer.Variable(f[1]); !strings.Contains(string(page), "`"+variable+"`") && !strings.HasPrefix(variable, "OFF_") {
			t.Errorf("the page has no row for %s", variable)
		}
	}
}
