package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
)

// fallback uses TLS, and plain HTTP for a registry that answers only in plain HTTP: there TLS fails
// and plain HTTP works. A registry that has answered over TLS is never queried in plain HTTP, where
// others could read the credentials.
type fallback struct {
	host          string
	next          http.RoundTripper
	secure, plain atomic.Bool
}

// RoundTrip implements [http.RoundTripper]. A request without a body can be sent again. Other hosts,
// of tokens and redirects, are contacted with the scheme they are named with.
func (f *fallback) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != f.host {
		return f.next.RoundTrip(r)
	}
	if !f.plain.Load() {
		response, err := f.next.RoundTrip(r)
		if err == nil {
			f.secure.Store(true)
		}
		if f.secure.Load() || r.ContentLength > 0 || speaksTLS(err) || !f.answersInPlain(r.Context()) {
			return response, err
		}
		f.plain.Store(true)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	response, err := f.next.RoundTrip(r)
	// A server with TLS answers plain HTTP with 400: the next request tries TLS again.
	f.plain.Store(err == nil && response.StatusCode != http.StatusBadRequest)
	return response, err
}

// speaksTLS reports whether a failed handshake shows a certificate. Anything else may come from a
// registry without TLS: it responds with something else, closes the connection, or doesn't listen
// on the port of HTTPS.
func speaksTLS(err error) bool {
	_, certified := errors.AsType[*tls.CertificateVerificationError](err)
	return certified
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
