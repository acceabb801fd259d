package registry

import (
	"net/http"
	"time"
)

const (
	// requestTimeout limits one request, listTimeout all pages of a list.
	requestTimeout = 30 * time.Second
	listTimeout    = 5 * time.Minute

	// sideBySide is the maximum number of concurrent requests per registry.
	sideBySide = 8
)

// Options of a [Client].
type Options struct {
	// Hosts are the registries that don't use HTTPS with a certificate that the system trusts,
	// by host and port.
	Hosts map[string]Host
	// Local names registries that may use plain HTTP: those that respond in plain HTTP are
	// queried in it. Nil means none.
	Local func(host string) bool
	// Transport carries all requests; nil makes one for each registry.
	Transport http.RoundTripper
	// UserAgent identifies this program to registries.
	UserAgent string
	// Observe, if set, is called with each request. It must return quickly.
	Observe func(Request)
	// Exceeded, if set, is called when a registry reaches a bound. It must return quickly.
	Exceeded func(Bound)
	// Forgotten, if set, is called with a registry that isn't queried any more.
	Forgotten func(host string)
	// Listed is called after each page of a list of tags, with the number of tags so far.
	Listed func(repository string, tags int)
	// Interval is how often the same repository is queried, zero for once. Tokens cover the
	// recently queried repositories.
	Interval time.Duration
	// Timeout limits a request with its response, by default requestTimeout.
	Timeout time.Duration
}

// Host configures the connection to one registry.
type Host struct {
	// PlainHTTP disables TLS.
	PlainHTTP bool
	// CA are certificates to trust besides the system's (PEM).
	CA []byte
}

// Request is a request that was sent.
type Request struct {
	// Host is the registry, as in image names.
	Host string
	// Kind is the request's purpose.
	Kind RequestKind
	// Status is that of the response, or 0 without one.
	Status int
}

// RequestKind is the purpose of a request.
type RequestKind string

// The kinds of requests.
const (
	PingRequest     RequestKind = "ping"
	TokenRequest    RequestKind = "token"
	HeadRequest     RequestKind = "head"
	ManifestRequest RequestKind = "manifest"
	BlobRequest     RequestKind = "blob"
	TagsRequest     RequestKind = "tags"
)

func (o Options) withDefaults() Options {
	if o.Observe == nil {
		o.Observe = func(Request) {}
	}
	if o.Exceeded == nil {
		o.Exceeded = func(Bound) {}
	}
	if o.Forgotten == nil {
		o.Forgotten = func(string) {}
	}
	if o.Listed == nil {
		o.Listed = func(string, int) {}
	}
	if o.UserAgent == "" {
		o.UserAgent = "lockstep"
	}
	return o
}
