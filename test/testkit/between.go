package testkit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Between stands between a program and the API server. It calls a function before it passes on a
// patch of one object, so a test can write the object between a decision and its patch.
type Between struct {
	// Kubeconfig leads to it, with the permissions of the cluster's own kubeconfig.
	Kubeconfig string

	object string
	mu     sync.Mutex
	before func(patch int)
	passed int
}

// NewBetween stands before the patches of an object, by the end of its path: "deployments/web".
func NewBetween(t testing.TB, w *World, object string) *Between {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	b := &Between{object: object, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
		// A client that goes away while it watches is not worth a message.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+b.object) {
			b.pass()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, server.URL)
	if err := os.WriteFile(b.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Between) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed++
	if b.before != nil {
		b.before(b.passed)
	}
}

// Before sets what happens before each patch, which are counted from 1 again; nil is nothing.
func (b *Between) Before(f func(patch int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.passed = f, 0
}

// Passed is how many patches came since the last Before.
func (b *Between) Passed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.passed
}
