package registry

import (
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
)

// fallback uses TLS until a registry responds in plain HTTP, and plain HTTP from then on.
type fallback struct {
	host  string
	next  http.RoundTripper
	plain atomic.Bool
}

// RoundTrip implements [http.RoundTripper]. The first request to a registry has neither a body
// nor credentials, so it can be sent twice. Other hosts, of tokens and redirects, are contacted
// with the scheme they are named with.
func (f *fallback) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != f.host {
		return f.next.RoundTrip(r)
	}
	if !f.plain.Load() {
		response, err := f.next.RoundTrip(r)
		if e, ok := errors.AsType[tls.RecordHeaderError](err); !ok || string(e.RecordHeader[:]) != "HTTP/" {
			return response, err
		}
		f.plain.Store(true)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return f.next.RoundTrip(r)
}
