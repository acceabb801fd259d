package reloader_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// interrupt makes an edit just before the first matching request of the program reaches the API
// server.
func (s *site) interrupt(t *testing.T, matches func(*http.Request) bool, edit func()) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
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
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		// A client that goes away while it watches isn't a problem.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	var once sync.Once
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if matches(r) {
			once.Do(edit)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(near.Close)
	through := api.NewConfig()
	through.Clusters["gate"] = &api.Cluster{Server: near.URL}
	through.Contexts["gate"] = &api.Context{Cluster: "gate"}
	through.CurrentContext = "gate"
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*through, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
}
