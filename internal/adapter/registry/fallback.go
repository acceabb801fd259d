package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// plainFor is how long a registry is queried in plain HTTP before TLS is tried again.
const plainFor = time.Minute

// fallback uses TLS, and plain HTTP for a registry that answers only in plain HTTP: there TLS fails
// and plain HTTP works. A registry that has shown a certificate is never queried in plain HTTP, where
// others could read the credentials.
type fallback struct {
	host   string
	next   http.RoundTripper
	now    func() time.Time
	secure atomic.Bool
	until  atomic.Int64 // when TLS is tried again, in nanoseconds
}

// RoundTrip implements [http.RoundTripper]. A request without a body can be sent again. Other hosts,
// of tokens and redirects, are contacted with the scheme they are named with, and so is this one
// where a token server or a redirect names it.
func (f *fallback) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != f.host || r.URL.Scheme != "https" {
		return f.next.RoundTrip(r)
	}
	if f.now().UnixNano() >= f.until.Load() {
		response, err := f.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{TLSHandshakeDone: f.shaken})))
		if err == nil {
			f.secure.Store(true)
		}
		if f.secure.Load() || r.ContentLength > 0 || !f.answersInPlain(r.Context()) {
			return response, err
		}
		f.until.Store(f.now().Add(plainFor).UnixNano())
	}
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	response, err := f.next.RoundTrip(r)
	// A server with TLS answers plain HTTP with 400: the next request tries TLS again.
	if err != nil || response.StatusCode == http.StatusBadRequest {
		f.until.Store(0)
	}
	return response, err
}

// shaken notices a certificate, trusted or not. Whatever else ends a handshake may come from a
// registry without TLS: it responds with something else, closes the connection, or doesn't listen
// on the port of HTTPS.
func (f *fallback) shaken(state tls.ConnectionState, err error) {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted || len(state.PeerCertificates) > 0 {
		f.secure.Store(true)
	}
}

// answersInPlain reports whether a registry responds to plain HTTP, to a request without
// credentials.
func (f *fallback) answersInPlain(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.host+"/v2/", http.NoBody)
	if err != nil {
		return false
	}
	response, err := f.next.RoundTrip(request)
	if err != nil {
		return false
	}
	defer closeBody(response)
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized
}
