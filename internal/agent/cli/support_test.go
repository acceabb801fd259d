package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

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

// kube are the flags that lead to the test's API server.
func (c *cluster) kube(args ...string) []string {
	return append([]string{"--kubeconfig=" + c.lab.Kubeconfig(), "--namespace=" + c.namespace}, args...)
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	c.do(http.MethodDelete, c.path("ConfigMap", name), "application/json", nil)
}
