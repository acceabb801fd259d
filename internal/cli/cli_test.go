package cli

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// variables is an environment of given variables.
func variables(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		return value, ok
	}
}

func TestSetFromEnvironment(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   time.Duration
		says   string // of the error, empty when there must be none
	}{
		"Default":  {"neither flag nor variable", nil, nil, time.Minute, ""},
		"Variable": {"the variable of the flag", nil, map[string]string{"LOCKSTEP_MAX_DELAY": "5s"}, 5 * time.Second, ""},
		"FlagWins": {"who types a flag means it", []string{"--max-delay=7s"}, map[string]string{"LOCKSTEP_MAX_DELAY": "5s"}, 7 * time.Second, ""},
		"Bad":      {"the variable and its value are named", nil, map[string]string{"LOCKSTEP_MAX_DELAY": "soon"}, 0, `LOCKSTEP_MAX_DELAY="soon"`},
		"Others":   {"variables of others mean nothing", nil, map[string]string{"MAX_DELAY": "5s", "LOCKSTEP_PORT": "tcp://10.0.0.1:80"}, time.Minute, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			got := fs.Duration("max-delay", time.Minute, "")
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := setFromEnvironment(controllerName, fs, Environment{Lookup: variables(tc.env), Stderr: io.Discard})
			_, usage := errors.AsType[usageError](err)
			if usage != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if err == nil && *got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, *got, tc.want)
			}
		})
	}
}

func TestRunSaysHowToFindACluster(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	code := Run(t.Context(), []string{"controller", "--kubeconfig", missing}, Environment{Stdout: &stdout, Stderr: &stderr, Lookup: variables(nil)})
	if code != exitUsage || !strings.Contains(stderr.String(), missing) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d and %q, want 2 and one line that names the file", code, stderr.String())
	}
}

// Who sets KUBECONFIG means no other cluster.
func TestKubeconfigVariableWithoutFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", missing)
	var stderr bytes.Buffer
	code := Run(t.Context(), []string{"controller"}, Environment{Stdout: io.Discard, Stderr: &stderr, Lookup: variables(nil)})
	if code != exitUsage || !strings.Contains(stderr.String(), "KUBECONFIG="+missing+": no such file") {
		t.Errorf("exit code %d and %q", code, stderr.String())
	}
}

func TestOwnNamespace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, flag string
		env          map[string]string
		want         string
	}{
		"Flag":     {"the flag wins", "a", map[string]string{"POD_NAMESPACE": "b"}, "a"},
		"Variable": {"then the pod's own", "", map[string]string{"POD_NAMESPACE": "b"}, "b"},
		"Default":  {"outside of a pod there is a default", "", map[string]string{"POD_NAMESPACE": ""}, "lockstep-system"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ownNamespace(tc.flag, variables(tc.env)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBuiltInKinds: each kind can be switched off by itself, and one has to be left.
func TestBuiltInKinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		builtIn, further []string
		want             string // the followed kinds, or what the error says
	}{
		"All":      {builtInNames(), nil, "deployment statefulset daemonset cronjob rollout"},
		"Two":      {[]string{"cronjob", " Deployments"}, nil, "deployment cronjob"},
		"Short":    {[]string{"sts", "ro"}, nil, "statefulset rollout"},
		"Further":  {[]string{"cronjob"}, []string{"example.com/v1/Worker=spec.template"}, "cronjob worker.example.com"},
		"Only":     {nil, []string{"example.com/v1/Worker=spec.template"}, "worker.example.com"},
		"None":     {nil, nil, "no kind of workload remains to follow"},
		"Unknown":  {[]string{"deployment", "pod"}, nil, `"pod": want some of deployment, statefulset, daemonset, cronjob, rollout`},
		"OffTwice": {[]string{"cronjob"}, []string{"apps/v1/Deployment=spec.template"}, "known already"},
	} {
		kinds, err := scopeFlags{builtIn: tc.builtIn, kinds: tc.further}.followed()
		var got []string
		for _, kind := range kinds {
			got = append(got, kind.Name())
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if text := strings.Join(got, " "); err == nil && text != tc.want || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s, want %s", name, text, tc.want)
		}
	}
}

func TestAllKinds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		flags  []string
		says   string // empty when it is accepted
	}{
		"None":         {"the kinds that are followed anyway", nil, ""},
		"Further":      {"one more, and another", []string{"example.com/v1/Worker=spec.template", "example.com/v1/Widget=spec.template"}, ""},
		"SameName":     {"another group's kind is another kind", []string{"example.com/v1/Deployment=spec.template"}, ""},
		"BuiltIn":      {"it would be watched twice", []string{"apps/v1/Deployment=spec.template"}, "known already, as apps/v1/Deployment=spec.template"},
		"OtherVersion": {"another version is the same object", []string{"apps/v1beta1/Deployment=spec.template"}, "known already"},
		"Twice":        {"two paths of one kind", []string{"example.com/v1/Worker=spec.a", "example.com/v1/Worker=spec.b"}, "as example.com/v1/Worker=spec.a"},
		"Garbled":      {"not a kind", []string{"Worker"}, "--kind: parse kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds, err := allKinds(tc.flags)
			if tc.says == "" {
				if err != nil || len(kinds) != len(kube.Kinds())+len(tc.flags) {
					t.Errorf("%s: %v, %v", tc.reason, kinds, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v, want one that says %q", tc.reason, err, tc.says)
			}
		})
	}
}
