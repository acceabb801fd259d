package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestUserFlags: a command acts as whom its flags name, and its own credentials don't win over a
// token.
func TestUserFlags(t *testing.T) {
	t.Parallel()
	config := &rest.Config{
		Username: "old", Password: "old", BearerTokenFile: "old",
		TLSClientConfig: rest.TLSClientConfig{CertData: []byte("old"), KeyData: []byte("old"), CAData: []byte("ca")},
	}
	o := userOptions{as: "jane", groups: []string{"a", "b"}, token: "secret-token", requestTimeout: time.Minute}
	if err := o.apply(config); err != nil {
		t.Fatal(err)
	}
	if config.Impersonate.UserName != "jane" || len(config.Impersonate.Groups) != 2 || config.BearerToken != "secret-token" || config.Timeout != time.Minute {
		t.Errorf("the flags do not count: %v", config)
	}
	if config.Username+config.Password+config.BearerTokenFile+string(config.CertData)+string(config.KeyData) != "" || string(config.CAData) != "ca" {
		t.Errorf("credentials are left beside the token, or the CA is lost: %v", config)
	}
	for want, wrong := range map[string]userOptions{
		"--as-group needs --as":                       {groups: []string{"a"}},
		"--request-timeout -1s: must not be negative": {requestTimeout: -time.Second},
	} {
		if err := wrong.apply(&rest.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestTokenIsNotPrinted: commands for users contain the user to act as, and never the token, which
// commands of the pages get nevertheless.
func TestTokenIsNotPrinted(t *testing.T) {
	t.Parallel()
	cmd := newUI(Environment{})
	if err := cmd.ParseFlags([]string{"--as", "jane", "--as-group", "a,b", "--as-group", "c", "--token", "secret-token", "--request-timeout", "5s"}); err != nil {
		t.Fatal(err)
	}
	for _, printed := range [][]string{commandFlags(cmd), otherFlags(cmd.Flags(), "port")} {
		if got := strings.Join(printed, " "); strings.Contains(got, "secret-token") || !strings.Contains(got, "jane") {
			t.Errorf("printed is %q", got)
		}
	}
	if got := strings.Join(commandFlags(cmd), " "); got != "--as jane --as-group a,b --as-group c" {
		t.Errorf("the flags are %q", got)
	}
	if got := strings.Join(privateFlags(cmd), " "); got != "--token secret-token --request-timeout 5s" {
		t.Errorf("the private flags are %q", got)
	}
}

// TestActAsAnother on a real API server, whose errors name the user that it saw. No error names the
// token, even a wrong one.
func TestActAsAnother(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	run := func(kubeconfig string, args ...string) (string, int) {
		var out strings.Builder
		code := Run(t.Context(), append([]string{"history", "deploy/web", "-n", w.Namespace, "--kubeconfig", kubeconfig}, args...),
			Environment{Stdout: &out, Stderr: &out, Lookup: variables(nil), Now: time.Now})
		return out.String(), code
	}
	admin, account := w.Cluster.Kubeconfig(), labtest.NewAccount(t, w.Cluster, w.Namespace)
	if said, code := run(admin, "--as", "jane"); code != 1 || !strings.Contains(said, `User "jane" cannot get`) {
		t.Errorf("as jane: exit code %d, said %s", code, said)
	}
	if said, code := run(admin, "--as", "jane", "--as-group", "system:masters"); code != 0 {
		t.Errorf("as an administrator: exit code %d, said %s", code, said)
	}
	o := kubeOptions{kubeconfig: account.Kubeconfig}
	config, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	if said, code := run(admin, "--token", config.BearerToken); code != 1 || !strings.Contains(said, `User "system:serviceaccount:`+w.Namespace) || strings.Contains(said, config.BearerToken) {
		t.Errorf("with the token of an account: exit code %d, said %s", code, said)
	}
	if said, code := run(admin, "--token", "not-a-token"); code != 1 || !strings.Contains(said, "provide credentials") || strings.Contains(said, "not-a-token") {
		t.Errorf("with a wrong token: exit code %d, said %s", code, said)
	}
}

// TestRequestTimeout: an API server that doesn't answer ends a command.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	done, stop := context.WithCancel(t.Context())
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done.Done():
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { stop(); silent.Close() })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}", silent.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	code := Run(t.Context(), []string{"history", "deploy/web", "-n", "shop", "--request-timeout", "50ms", "--kubeconfig", file},
		Environment{Stdout: &out, Stderr: &out, Lookup: variables(nil), Now: time.Now})
	if code != 1 && code != 2 || !strings.Contains(out.String(), "Client.Timeout") && !strings.Contains(out.String(), "deadline exceeded") {
		t.Errorf("exit code %d, said %s", code, out.String())
	}
}

// TestCommandsReadDates: a proxy before the API server says by a date when the next request may come, and every client of a
// command is made of this configuration.
func TestCommandsReadDates(t *testing.T) {
	t.Parallel()
	requests := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if requests++; requests == 1 {
			w.Header().Set("Retry-After", time.Now().UTC().Format(http.TimeFormat)) // at once
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	}))
	defer proxy.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}", proxy.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := (&kubeOptions{kubeconfig: file}).config()
	if err != nil {
		t.Fatal(err)
	}
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := asking.RESTClient().Get().AbsPath("/api").Do(t.Context()).Error(); err != nil || requests != 2 {
		t.Errorf("%d requests, error %v", requests, err)
	}
}
