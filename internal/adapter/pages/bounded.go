package pages

import (
	"errors"
	"net/http"
	"strconv"
)

// maxBytes bounds the answer to a list that asks for more than First objects. Its size isn't
// known before: after small objects, a page may be full of large ones.
const maxBytes = 2 * pageBytes

// Bounded stops reading the answers to lists that are too large for a page.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if limit, _ := strconv.Atoi(request.URL.Query().Get("limit")); err == nil && limit > First {
		response.Body = http.MaxBytesReader(nil, response.Body, maxBytes)
	}
	return response, err
}

// WrappedRoundTripper lets the library find the transport.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

func isTooLarge(err error) bool {
	var beyond *http.MaxBytesError
	return errors.As(err, &beyond)
}
