package registry

import (
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// DefaultInterval is how often a question is asked.
	DefaultInterval = time.Minute

	// requestTimeout bounds one request, listTimeout all pages of a list, checkTimeout a
	// question with the time that it waits for its turn.
	requestTimeout = 30 * time.Second
	listTimeout    = 5 * time.Minute
	checkTimeout   = 10 * time.Minute

	// sideBySide is how many requests a registry gets at a time.
	sideBySide = 8
)

// Options of a [Resolver].
type Options struct {
	// Interval is how often each question is asked.
	Interval time.Duration
	// TTL is how old an answer may be that is used for a question; usually the interval.
	TTL time.Duration
	// Hosts are the registries that are not reached over HTTPS with a certificate that the
	// system trusts, by host and port.
	Hosts map[string]Host
	// Local names registries that may do without TLS: those that answer in plain HTTP are
	// asked in it. Nil names none.
	Local func(host string) bool
	// Jitter makes a pause a little longer, so that not all askers come at once.
	Jitter func(time.Duration) time.Duration
	// Transport carries all requests; nil makes one for each registry.
	Transport http.RoundTripper
	// UserAgent is what registries know this program by.
	UserAgent string
	// Observe is told of each request; nil tells no one. It must return quickly.
	Observe func(Request)
	// Checked is told of each check of a watched question that has ended: of which
	// registry, and why it failed; nil tells no one. It must return quickly.
	Checked func(host string, err error)
	// Listed is told of each page of a list of tags and how many tags there are so far.
	Listed func(repository string, tags int)
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
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.TTL <= 0 {
		o.TTL = o.Interval
	}
	if o.Jitter == nil {
		o.Jitter = upToATenth
	}
	if o.Observe == nil {
		o.Observe = func(Request) {}
	}
	if o.Checked == nil {
		o.Checked = func(string, error) {}
	}
	if o.Listed == nil {
		o.Listed = func(string, int) {}
	}
	if o.UserAgent == "" {
		o.UserAgent = "lockstep"
	}
	return o
}

// upToATenth adds up to a tenth.
func upToATenth(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // It spreads requests and protects nothing.
}
