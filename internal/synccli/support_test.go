package synccli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = 30 * time.Second

// cluster is the API server of this test with a namespace of its own.
type cluster struct {
	t         *testing.T
	lab       *labtest.Cluster
	namespace string
	client    *http.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return clusterOn(t, labtest.Shared(t))
}

func clusterOn(t *testing.T, lab *labtest.Cluster) *cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, lab: lab, namespace: labtest.Namespace(t, lab), client: client}
}

func (c *cluster) do(method, path, contentType string, body any) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.lab.Server()+path, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	answer, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode > 299 {
		c.t.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, text)
	}
}

// object is a ConfigMap or a Secret to apply.
type object struct {
	kind, name string
	labels     map[string]string
	notes      map[string]string
	data       map[string]string
	binary     map[string][]byte
}

func (c *cluster) path(kind, name string) string {
	return "/api/v1/namespaces/" + c.namespace + "/" + strings.ToLower(kind) + "s/" + name
}

// apply writes the object whole: keys that are not named are removed.
func (c *cluster) apply(o object) {
	c.t.Helper()
	text := "data"
	if o.kind == "Secret" {
		text = "stringData"
	}
	manifest := map[string]any{
		"apiVersion": "v1", "kind": o.kind, text: o.data,
		"metadata": map[string]any{"name": o.name, "labels": o.labels, "annotations": o.notes},
	}
	if len(o.binary) > 0 {
		manifest["binaryData"] = o.binary
	}
	c.do(http.MethodPatch, c.path(o.kind, o.name)+"?fieldManager=test&force=true", "application/apply-patch+yaml", manifest)
}

func (c *cluster) configMap(name string, data map[string]string) {
	c.t.Helper()
	c.apply(object{kind: "ConfigMap", name: name, data: data})
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	c.do(http.MethodDelete, c.path("ConfigMap", name), "application/json", nil)
}

// agent is the real program.
type agent struct {
	*labtest.Running

	t    *testing.T
	root string
	addr string
}

func binary(t *testing.T) string {
	t.Helper()
	return labtest.Binary(t, "./cmd/lockstep-sync")
}

// start runs the program with a fresh root and health address.
func start(t *testing.T, args ...string) *agent {
	t.Helper()
	return startIn(t, filepath.Join(t.TempDir(), "config"), args...)
}

func startIn(t *testing.T, root string, args ...string) *agent {
	t.Helper()
	a := &agent{t: t, root: root, addr: freeAddr(t)}
	all := append([]string{"--root=" + root, "--health-addr=" + a.addr, "--quiet=0"}, args...)
	a.Running = labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: all})
	return a
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// wantFiles waits until exactly these files are visible.
func (a *agent) wantFiles(want map[string]string) {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		got := files(a.root)
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("files are %v, want %v\n%s", got, want, a.Stderr())
	})
}

func files(root string) map[string]string {
	got := map[string]string{}
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		walk(root, e.Name(), got)
	}
	return got
}

func walk(root, name string, got map[string]string) {
	full := filepath.Join(root, name)
	info, err := os.Stat(full)
	if err != nil {
		got[name] = "ERROR " + err.Error()
		return
	}
	if !info.IsDir() {
		content, _ := os.ReadFile(full)
		got[name] = string(content)
		return
	}
	entries, _ := os.ReadDir(full)
	for _, e := range entries {
		walk(root, filepath.Join(name, e.Name()), got)
	}
}

// probe asks the agent's health server.
func (a *agent) probe(path string) (int, string) {
	a.t.Helper()
	answer, err := http.Get("http://" + a.addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

func (a *agent) wantProbe(path string, code int) string {
	a.t.Helper()
	var body string
	labtest.Eventually(a.t, patience, func() (bool, string) {
		var got int
		got, body = a.probe(path)
		return got == code, fmt.Sprintf("%s answers %d %s, want %d\n%s", path, got, body, code, a.Stderr())
	})
	return body
}

// metric finds one sample.
func (a *agent) metric(sample string) string {
	a.t.Helper()
	_, body := a.probe("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (a *agent) wantMetric(sample, want string) {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		got := a.metric(sample)
		return got == want, fmt.Sprintf("%s is %q, want %q\n%s", sample, got, want, a.Stderr())
	})
}

func (a *agent) status() podsync.Status {
	a.t.Helper()
	var s podsync.Status
	raw, err := os.ReadFile(filepath.Join(a.root, "..lockstep", "status.json"))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// need returns the path of a program of Debian, which may be a pattern because some
// are under a name with their version. Missing ones are installed, those of all tests
// at once.
func need(t *testing.T, program, pkg string) string {
	t.Helper()
	all := []string{"apache2", "haproxy", "nginx", "postgresql", "prometheus", "strace", "unbound"}
	if !slices.Contains(all, pkg) {
		t.Fatalf("%s is not in the list of packages", pkg)
	}
	return labtest.Need(t, program, all...)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	// In one step: an agent without a quiet period would take the empty file between
	// the two steps of a plain write for a version of its own.
	whole := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(whole, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, name); err != nil {
		t.Fatal(err)
	}
}
