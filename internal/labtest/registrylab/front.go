package registrylab

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// Front is the proxy in front of the registry.
type Front struct {
	// Address is host and port that clients use.
	Address string

	proxy  *httputil.ReverseProxy
	tokens http.Handler

	mu     sync.Mutex
	counts map[string]int
	spoil  func(w http.ResponseWriter, r *http.Request) bool
	ended  chan struct{}
	once   sync.Once
}

func newFront(address string, behind *url.URL, identity *identity, tokens http.Handler) *Front {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(identity.pem)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.Host = r.In.Host // Locations in the registry's answers have to lead here, too.
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16},
		ErrorLog:  quiet(),
	}
	return &Front{Address: address, proxy: proxy, tokens: tokens, counts: map[string]int{}, ended: make(chan struct{})}
}

// ServeHTTP counts a request and passes it on, unless a test answers it.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.counts[KindOf(r)]++
	spoil := f.spoil
	f.mu.Unlock()
	switch {
	case spoil != nil && spoil(w, r):
	case r.URL.Path == "/token":
		f.tokens.ServeHTTP(w, r)
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

// KindOf is the kind of a request: ping, token, head, manifest, blob, tags.
func KindOf(r *http.Request) string {
	switch path := r.URL.Path; {
	case path == "/token":
		return "token"
	case path == "/v2/":
		return "ping"
	case strings.HasSuffix(path, "/tags/list"):
		return "tags"
	case strings.Contains(path, "/manifests/") && r.Method == http.MethodHead:
		return "head"
	case strings.Contains(path, "/manifests/"):
		return "manifest"
	default:
		return "blob"
	}
}

// Spoil passes each request to a function first, which returns true if it has answered. Nil
// ends that.
func (f *Front) Spoil(with func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoil = with
}

// Hang doesn't answer until the client leaves or the registry ends.
func (f *Front) Hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.ended:
	}
}

func (f *Front) release() { f.once.Do(func() { close(f.ended) }) }

// Counts are the requests since the last call, by kind.
func (f *Front) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := maps.Clone(f.counts)
	clear(f.counts)
	return counts
}
