package kubeimagedeployer_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gate stands between the program and the API server, and notes every request.
type gate struct {
	// kubeconfig leads through the gate.
	kubeconfig string

	mu    sync.Mutex
	calls []call
}

// call is one request and the status of its answer.
type call struct {
	method, path string
	status       int
}

func newGate(t *testing.T, kubeconfig string) *gate {
	t.Helper()
	server, token, ca := loadToken(t, kubeconfig)
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	g := &gate{}
	near := httptest.NewServer(&httputil.ReverseProxy{
		// A kubeconfig sends no token without TLS.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			g.note(call{r.Request.Method, r.Request.URL.Path, r.StatusCode})
			return nil
		},
		// A client that goes away while it watches is nothing to write about.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(near.Close)
	t.Cleanup(near.CloseClientConnections)
	g.kubeconfig = fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, near.URL)
	return g
}

func (g *gate) note(c call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
}

func (g *gate) all() []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]call{}, g.calls...)
}

// patches is how often an object was patched, by the end of its path.
func (g *gate) patches(object string) int {
	n := 0
	for _, c := range g.all() {
		if c.method == http.MethodPatch && c.status == http.StatusOK && strings.HasSuffix(c.path, "/"+object) {
			n++
		}
	}
	return n
}
