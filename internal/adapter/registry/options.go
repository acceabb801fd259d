package registry

import (
	"net/http"
	"time"
)

const (
	// requestTimeout bounds one request, listTimeout all pages of a list.
	requestTimeout = 30 * time.Second
	listTimeout    = 5 * time.Minute

	// sideBySide is how many requests a registry gets at a time.
	sideBySide = 8
)

// Options of a [Client].
type Options struct {
	// Hosts are the registries that are not reached over HTTPS with a certificate that the
	// system trusts, by host and port.
	Hosts map[string]Host
	// Local names registries that may do without TLS: those that answer in plain HTTP are
	// asked in it. Nil names none.
	Local func(host string) bool
	// Transport carries all requests; nil makes one for each registry.
	Transport http.RoundTripper
	// UserAgent is what registries know this program by.
	UserAgent string
	// Observe is told of each request; nil tells no one. It must return quickly.
	Observe func(Request)
	// Listed is told of each page of a list of tags and how many tags there are so far.
	Listed func(repository string, tags int)
	// Interval is how often the same repository is asked for, zero for once. Tokens are for
	// the repositories that were asked for lately.
	Interval time.Duration
}

// Host is how one registry is reached.
type Host struct {
	// PlainHTTP does without TLS.
	PlainHTTP bool
	// CA has certificates that are trusted besides those of the system (PEM).
	CA []byte
}

// Request is one request that was made.
type Request struct {
	// Host is the registry, as images name it.
	Host string
	// Kind says what was asked for.
	Kind RequestKind
	// Status is that of the answer, or 0 if there was none.
	Status int
}

// RequestKind says what a request asked for.
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
	if o.Listed == nil {
		o.Listed = func(string, int) {}
	}
	if o.UserAgent == "" {
		o.UserAgent = "lockstep"
	}
	return o
}
