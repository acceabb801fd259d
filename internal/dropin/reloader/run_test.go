package reloader

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// started runs the drop-in where there is no cluster.
func started(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	env := inRelease()
	env["HOME"] = t.TempDir()
	var out, log bytes.Buffer
	code = Run(t.Context(), args, run.Environment{Stdout: &out, Stderr: &log, Lookup: lookup(env), Version: "v1.2.3", Now: time.Now})
	return code, out.String(), log.String()
}

// TestRunWithoutACluster: help needs none, and mistakes are reported before one is looked for.
func TestRunWithoutACluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason         string
		args           []string
		code           int
		stdout, stderr string
	}{
		"Help":     {"all flags", []string{"--help"}, 0, "--is-Argo-Rollouts string", ""},
		"Version":  {"that of the build", []string{"--version"}, 0, "v1.2.3\n", ""},
		"Unknown":  {"one line", []string{"--is-argo-rollouts=true"}, 2, "", "Error: unknown flag: --is-argo-rollouts; did you mean --is-Argo-Rollouts?\n"},
		"Strategy": {"an invalid value", []string{"--reload-strategy=x"}, 1, "", `level=error msg="reloader ends" err="--reload-strategy \"x\": want env-vars or annotations"`},
		"Start":    {"warnings come first", []string{"--reload-on-create=True"}, 1, "", `level=warning msg="--reload-on-create=True is off: write --reload-on-create=true to turn it on"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := started(t, tc.args...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) || (tc.stderr == "") != (stderr == "") {
				t.Errorf("%s: exit code %d, output %q, errors %q", tc.reason, code, stdout, stderr)
			}
		})
	}
}

// TestEveryLineIsJSON: also those of the start, and the last one.
func TestEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	_, _, stderr := started(t, "--log-format=json", "--sync-after-restart")
	var levels []string
	for line := range strings.Lines(stderr) {
		var parsed struct {
			Level, Msg string
			Time       time.Time
		}
		if err := json.Unmarshal([]byte(line), &parsed); err != nil || parsed.Msg == "" || parsed.Time.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
		levels = append(levels, parsed.Level)
	}
	if !slices.Equal(levels, []string{"warning", "error"}) {
		t.Errorf("levels %q", levels)
	}
}

// TestClusterConfig: one kubeconfig file that exists, else the pod's service account.
func TestClusterConfig(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(path, server string) string {
		text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: " + server + "}}]\n"
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(filepath.Join(home, ".kube", "config"), "https://home")
	file := write(filepath.Join(t.TempDir(), "kubeconfig"), "https://file")
	for name, tc := range map[string]struct {
		env     map[string]string
		outside bool
		want    string
	}{
		"File":        {map[string]string{"KUBECONFIG": file, "HOME": home}, false, "https://file"},
		"Home":        {map[string]string{"HOME": home}, false, "https://home"},
		"MissingFile": {map[string]string{"KUBECONFIG": file + "-gone", "HOME": home}, false, "https://pod"},
		"List":        {map[string]string{"KUBECONFIG": file + ":" + file, "HOME": home}, false, "https://pod"},
		"Pod":         {map[string]string{"HOME": "/nonexistent"}, false, "https://pod"},
		"Nowhere":     {map[string]string{"HOME": "/nonexistent"}, true, ""},
	} {
		pod := func() (*rest.Config, error) {
			if tc.outside {
				return nil, errors.New("not in a pod")
			}
			return &rest.Config{Host: "https://pod", BearerTokenFile: "token"}, nil
		}
		config, err := clusterConfig(lookup(tc.env), pod)
		if tc.want == "" {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if err != nil || config.Host != tc.want || config.QPS >= 0 {
			t.Errorf("%s: %v, error %v", name, config, err)
		}
	}
}

// TestServer: the lease is the original's, and profiles are served only on demand.
func TestServer(t *testing.T) {
	t.Parallel()
	env := inRelease()
	env["POD_NAME"], env["POD_NAMESPACE"] = "reloader-7", "ops"
	o, err := Parse([]string{"--enable-ha"}, lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	got := (&parts{options: o}).server(nil)
	if !got.LeaderElection || got.LeaseName != "stakater-reloader-lock" || got.Namespace != "ops" || got.Identity != "reloader-7" || got.LeaseDuration != 15*time.Second {
		t.Errorf("the lease %s/%s of %q for %s", got.Namespace, got.LeaseName, got.Identity, got.LeaseDuration)
	}
	if got.MetricsAddr != (listener.Address{Value: ":9090", Setting: "--metrics-addr"}) || got.PprofAddr.Value != "" {
		t.Errorf("metrics at %q, profiles at %q", got.MetricsAddr, got.PprofAddr)
	}
	o.Process.Pprof = true
	if got := (&parts{options: o}).server(nil); got.PprofAddr != (listener.Address{Value: ":6060", Setting: "--pprof-addr"}) {
		t.Errorf("profiles at %q", got.PprofAddr)
	}
}

// TestMetaInfo: tools read these names.
func TestMetaInfo(t *testing.T) {
	t.Parallel()
	o, err := Parse([]string{
		"--webhook-url=https://user:pass@hooks.example:8443/services/secret?token=1", "--reload-on-create=true", "--namespaces-to-ignore=a,b", "--auto-annotation=example.com/auto",
	}, lookup(inRelease()))
	if err != nil {
		t.Fatal(err)
	}
	info := o.metaInfo("v1.2.3")
	if info.Namespace != "tools" || info.Name != "reloader-meta-info" || info.Labels["reloader.stakater.com/meta-info"] != "reloader" || len(info.Data) != 3 {
		t.Errorf("the ConfigMap is %s/%s with %v", info.Namespace, info.Name, info.Labels)
	}
	parsed := map[string]map[string]any{}
	for name, text := range info.Data {
		var values map[string]any
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		parsed[name] = values
	}
	if diff := cmp.Diff(map[string]any{"name": "reloader-reloader", "namespace": "tools"}, parsed["deploymentInfo"]); diff != "" {
		t.Errorf("deploymentInfo (-want +got):\n%s", diff)
	}
	build := parsed["buildInfo"]
	if build["releaseVersion"] != "v1.2.3" || build["edition"] != "oss" || build["commitTime"] != "0001-01-01T00:00:00Z" || !strings.HasPrefix(build["goVersion"].(string), "go") {
		t.Errorf("buildInfo is %v", build)
	}
	want := strings.Fields(`autoReloadAll configmapUpdateOnChangeAnnotation secretUpdateOnChangeAnnotation secretProviderClassUpdateOnChangeAnnotation
		reloaderAutoAnnotation ignoreResourceAnnotation configmapReloaderAutoAnnotation secretReloaderAutoAnnotation secretProviderClassReloaderAutoAnnotation
		configmapExcludeReloaderAnnotation secretExcludeReloaderAnnotation secretProviderClassExcludeReloaderAnnotation autoSearchAnnotation searchMatchAnnotation
		rolloutStrategyAnnotation pauseDeploymentAnnotation pauseDeploymentTimeAnnotation logFormat logLevel isArgoRollouts reloadStrategy reloadOnCreate
		reloadOnDelete syncAfterRestart enableHA enableCSIIntegration webhookUrl resourcesToIgnore workloadTypesToIgnore namespaceSelectors resourceSelectors
		namespacesToIgnore enablePProf pprofAddr`)
	slices.Sort(want)
	var names []string
	for name := range parsed["reloaderOptions"] {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names of options (-want +got):\n%s", diff)
	}
	for name, want := range map[string]any{
		"webhookUrl": "https://hooks.example:8443", "reloadOnCreate": true, "reloadOnDelete": false, "isArgoRollouts": false,
		"namespacesToIgnore": []any{"a", "b"}, "resourcesToIgnore": []any{}, "reloaderAutoAnnotation": "example.com/auto",
		"pauseDeploymentTimeAnnotation": "deployment.reloader.stakater.com/paused-at", "reloadStrategy": "env-vars", "logLevel": "info",
	} {
		if diff := cmp.Diff(want, parsed["reloaderOptions"][name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if strings.Contains(info.Data["reloaderOptions"], "pass") || strings.Contains(info.Data["reloaderOptions"], "secret?") {
		t.Error("the credentials of the webhook are shown")
	}
}
