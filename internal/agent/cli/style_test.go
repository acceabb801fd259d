package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// runWith runs the command line in this process, with an environment.
func runWith(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	variables := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		variables[name] = value
	}
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: append([]string{"lockstep-sync"}, args...), Lookup: func(name string) (string, bool) { value, ok := variables[name]; return value, ok },
		Environ: func() []string { return environ }, Stdout: &out, Stderr: &errs, Now: time.Now, Version: "1.2.3",
	})
	return out.String(), errs.String(), code
}

// The command and the flag say the same, in the form of lockstep.
func TestVersion(t *testing.T) {
	command, _, code := runWith(t, nil, "version")
	flag, _, _ := runWith(t, nil, "--version")
	if code != 0 || command != flag || !strings.HasPrefix(command, "lockstep-sync 1.2.3 (go") {
		t.Errorf("code %d, version says %q, --version %q", code, command, flag)
	}
}

// The cluster and the namespace are found as lockstep and kubectl find them.
func TestKubeconfigLookup(t *testing.T) {
	home := t.TempDir()
	usual, other := filepath.Join(home, ".kube", "config"), filepath.Join(home, "other")
	for file, namespace := range map[string]string{usual: "shop", other: "blog"} {
		agentkit.Write(t, file, "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}],"+
			"contexts: [{name: a, context: {cluster: c, namespace: "+namespace+"}}, {name: b, context: {cluster: c, namespace: own}}]}")
	}
	missing := filepath.Join(home, "missing")
	for name, c := range map[string]struct {
		environ, flags []string
		want           []string
	}{
		"usual place": {[]string{"HOME=" + home}, nil, []string{"configmap/shop/app", "with the kubeconfig " + usual}},
		"variable":    {[]string{"HOME=" + home, "KUBECONFIG=" + other}, nil, []string{"configmap/blog/app", "with the kubeconfig " + other}},
		"flag":        {[]string{"KUBECONFIG=" + missing}, []string{"--kubeconfig=" + other}, []string{"configmap/blog/app"}},
		"context":     {[]string{"HOME=" + home}, []string{"--context=b"}, []string{"configmap/own/app", "in the context b"}},
		"namespace":   {[]string{"HOME=" + home}, []string{"--namespace=mine"}, []string{"configmap/mine/app"}},
		"no file":     {[]string{"HOME=" + home, "KUBECONFIG=" + missing}, nil, []string{"KUBECONFIG=" + missing + ": no such file"}},
		"no home":     {[]string{"POD_NAMESPACE=pod"}, nil, []string{"configmap/pod/app"}},
	} {
		stdout, stderr, _ := runWith(t, c.environ, append(c.flags, "explain", "--configmap=app", "--root="+filepath.Join(home, "root"))...)
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: %q is not in\n%s%s", name, want, stdout, stderr)
			}
		}
	}
}

// Kinds are called as kubectl calls them.
func TestSelectorKinds(t *testing.T) {
	stdout, stderr, code := runWith(t, nil, "explain", "--selector=a=b", "--selector-kinds=cm,Secrets", "--namespace=shop", "--root="+filepath.Join(t.TempDir(), "root"))
	if code != 0 || !strings.Contains(stdout, "configmap/shop") || !strings.Contains(stdout, "secret/shop") {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
}

// A variable that would set a flag of lockstep's is told, by name, and is no error.
func TestVariablesAreNotRead(t *testing.T) {
	_, stderr, code := runWith(t, []string{"LOCKSTEP_ROOT=hunter2", "LOCKSTEP_INPUTS=x", "LOCKSTEP_SERVICE_HOST=10.0.0.1", "LOCKSTEP_IMAGES=true"},
		"--directory="+t.TempDir(), "--root="+filepath.Join(t.TempDir(), "root"), "--once", "--log-level=error")
	if want := "Warning: environment variable LOCKSTEP_ROOT is not read: use --root\n"; code != 0 || stderr != want {
		t.Errorf("code %d, said %q, want %q", code, stderr, want)
	}
}

// What is below the level is not logged.
func TestLogLevel(t *testing.T) {
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	for level, want := range map[string]bool{"debug": true, "info": true, "warn": false, "error": false} {
		root := filepath.Join(t.TempDir(), "root")
		_, stderr, code := runWith(t, nil, "--directory="+source, "--root="+root, "--once", "--log-level="+level)
		if code != 0 || strings.Contains(stderr, "level=INFO") != want {
			t.Errorf("%s: code %d, logged\n%s", level, code, stderr)
		}
		if _, err := os.Stat(filepath.Join(root, "a")); err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
}
