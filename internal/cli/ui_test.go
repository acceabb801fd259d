package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// TestPortInUse: the error names the flag and the next port that is free.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	cmd := newUI(Environment{})
	taken, err := listen(0, programName, cmd.Flags())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if host, _, _ := net.SplitHostPort(taken.Addr().String()); host != loopback {
		t.Errorf("it listens on %s, which others reach", host)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = listen(port, programName, cmd.Flags())
	if err == nil {
		t.Fatal("one port is used twice")
	}
	_, next, found := strings.Cut(err.Error(), "is free: lockstep ui --port ")
	free, _ := strconv.Atoi(next)
	if !found || free <= port || !strings.Contains(err.Error(), "--port "+strconv.Itoa(port)+": the port is in use") {
		t.Errorf("the error is %q", err)
	}

	// The command for it is about the same workloads of the same cluster, and no less careful.
	if err := cmd.ParseFlags([]string{
		"--port", "1", "-An", "shop", "-l", "team in (a, b)", "--read-only", "--no-open=false", "--context", "it's", "--kubeconfig", "",
		"--kind", "a.b/v1/C=x", "--kind", "a.b/v1/D=y",
	}); err != nil {
		t.Fatal(err)
	}
	_, err = listen(port, programName, cmd.Flags())
	want := ` --all-namespaces '--context=it'\''s' --kind=a.b/v1/C=x --kind=a.b/v1/D=y --kubeconfig= --namespace=shop --no-open=false --read-only '--selector=team in (a, b)'`
	if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), "--port") != 2 {
		t.Errorf("the error is %q, want the flags %s", err, want)
	}
}

// TestPortThatCannotBeUsed: whatever the cause is, the error names the flag.
func TestPortThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, err := listen(65536, programName, newUI(Environment{}).Flags())
	if err == nil || !strings.HasPrefix(err.Error(), "listen for the pages on 127.0.0.1:65536: ") || !strings.HasSuffix(err.Error(), "; change --port") {
		t.Errorf("the error is %v", err)
	}
}

// TestCarryOut: a page runs no other command than those that it shows.
func TestCarryOut(t *testing.T) {
	t.Parallel()
	env := Environment{Lookup: variables(nil), Now: time.Now, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
	for _, arguments := range [][]string{nil, {"stop", "--all", "x"}, {"controller"}, {"--context", "x", "hold"}} {
		if output, err := carryOut(t.Context(), nil, arguments, env); err == nil || output != "" {
			t.Errorf("%q: %q, %v", arguments, output, err)
		}
	}
	// Flags come first, so that arguments after "--" stay arguments.
	output, err := carryOut(t.Context(), []string{"--kubeconfig", "/no/such/file"}, []string{"hold", "-n", "shop", "--", "deployment/web", "--overwrite"}, env)
	if err == nil || !strings.Contains(output, "/no/such/file") || !strings.Contains(err.Error(), "exit code 2") {
		t.Errorf("the output is %q and the error %v", output, err)
	}
}

// TestShellWords: a shell reads the words that were meant.
func TestShellWords(t *testing.T) {
	t.Parallel()
	got := shellWords([]string{"kubectl lockstep", "--context", "a b", "--kubeconfig", "/it's/$HOME", "", "x=1"})
	if want := `kubectl lockstep --context 'a b' --kubeconfig '/it'\''s/$HOME' '' x=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCommandFlags: commands on the pages reach the same cluster.
func TestCommandFlags(t *testing.T) {
	t.Parallel()
	var o uiOptions
	cmd := &cobra.Command{}
	o.kube.bindUser(cmd.Flags())
	if got := commandFlags(cmd); len(got) > 0 {
		t.Errorf("flags out of nowhere: %q", got)
	}
	if err := cmd.ParseFlags([]string{"--context", "lab"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(commandFlags(cmd), " "); got != "--context lab" {
		t.Errorf("the flags are %q", got)
	}
}

// TestRegistryFlags: an action that resolves images reaches the registries as the command that serves the pages would. The
// others have no such flags.
func TestRegistryFlags(t *testing.T) {
	t.Parallel()
	served, roll := newUI(Environment{}), newRoll(Environment{})
	env := Environment{Lookup: variables(map[string]string{"LOCKSTEP_REGISTRY_CA": "r:443=/a b", "LOCKSTEP_CLOUD_IDENTITY": "false", "LOCKSTEP_CONTEXT": "lab"})}
	if err := served.ParseFlags([]string{"--plain-http-registry", "a:5000", "--plain-http-registry", "b:5000", "--docker-config", "/d"}); err != nil {
		t.Fatal(err)
	}
	if err := setFromEnvironment("ui", served.Flags(), env); err != nil {
		t.Fatal(err)
	}
	flags := actionFlags(served, []string{"roll", "deployment/web"})
	if err := roll.ParseFlags(append(flags, "deployment/web")); err != nil || !slices.Equal(roll.Flags().Args(), []string{"deployment/web"}) {
		t.Fatalf("%q: %v, with the arguments %q", flags, err, roll.Flags().Args())
	}
	for name, want := range map[string]string{
		"plain-http-registry": "[a:5000,b:5000]", "docker-config": "/d", "registry-ca": "[r:443=/a b]", "cloud-identity": "false", "context": "lab",
	} {
		if got := roll.Flag(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
	if got := strings.Join(actionFlags(served, []string{"hold", "deployment/web"}), " "); got != "--context lab" {
		t.Errorf("the flags of hold are %q", got)
	}
}

// TestTargetCommand: the command that ends a hold reaches the same cluster.
func TestTargetCommand(t *testing.T) {
	t.Parallel()
	cmd := newHold(Environment{})
	if err := cmd.ParseFlags([]string{"--context", "my lab"}); err != nil {
		t.Fatal(err)
	}
	one := target{ObjectKey: client.ObjectKey{Namespace: "shop", Name: "web"}, called: "deployment"}
	if got, want := one.command(cmd, "release"), "hold release deployment/web -n shop --context 'my lab'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	worker, err := kube.ParseKind("example.com/v1/Worker=spec.template")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags([]string{"--kind", "example.com/v1/Worker=spec.template", "--controller-namespace", "tools"}); err != nil {
		t.Fatal(err)
	}
	one = workloadTarget(worker, client.ObjectKey{Namespace: "shop", Name: "web"})
	if got, want := one.command(cmd, "release"), "hold release worker.example.com/web -n shop --kind example.com/v1/Worker=spec.template --controller-namespace tools --context 'my lab'"; got != want {
		t.Errorf("of another kind: got %s, want %s", got, want)
	}
}

// TestActionsStayInTheCluster: the pages and their actions are about the context that was current
// at the start, whatever the kubeconfig says later.
func TestActionsStayInTheCluster(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int64
	cluster := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if name == "b" {
				strayed.Add(1)
			}
			http.Error(w, "not in cluster "+name, http.StatusForbidden)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	clusters := fmt.Sprintf("{clusters: [{name: a, cluster: {server: %q}}, {name: b, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}], ",
		cluster("a"), cluster("b"))
	use := func(context string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(clusters+"current-context: "+context+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use("a")
	address, printed := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		defer printed.Close()
		ended <- Run(ctx, []string{"ui", "--no-open", "-n", "shop", "--kubeconfig", file}, Environment{Lookup: variables(nil), Now: time.Now, Stdout: printed, Stderr: io.Discard})
	}()
	t.Cleanup(func() { stop(); <-ended })
	line, err := bufio.NewReader(address).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	entrance, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	use("b")

	jar, _ := cookiejar.New(nil) // It never fails.
	browser := &http.Client{Jar: jar}
	send := func(method, address string, form url.Values) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "http://"+entrance.Host)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if page := send(http.MethodGet, entrance.String(), nil); !strings.Contains(page, "context a, namespace shop") {
		t.Errorf("the page doesn't say which cluster it shows: %.2000s", page)
	}
	page := send(http.MethodPost, "http://"+entrance.Host+"/do", url.Values{"verb": {"hold"}, "target": {"configmap/app"}, "namespace": {"shop"}, "reason": {"why not"}})
	if strayed.Load() > 0 || !strings.Contains(page, "<p>Error: read configmap/app in namespace shop: ") {
		t.Errorf("a hold sent %d requests to another cluster: %s", strayed.Load(), page)
	}
	if command := "<code>lockstep hold configmap/app &#39;why not&#39; -n shop --context a --kubeconfig "; !strings.Contains(page, command) {
		t.Errorf("the page doesn't show the command %s: %s", command, page)
	}
	clusters = strings.NewReplacer("{name: a, cluster", "{name: b, cluster", "{name: b, cluster", "{name: a, cluster").Replace(clusters)
	use("a")
	page = send(http.MethodPost, "http://"+entrance.Host+"/do", url.Values{"verb": {"hold"}, "target": {"configmap/app"}, "namespace": {"shop"}, "reason": {"why not"}})
	if strayed.Load() > 0 || !strings.Contains(page, "refers to another cluster") {
		t.Errorf("with the same name for another cluster, a hold sent %d requests there: %s", strayed.Load(), page)
	}
}
