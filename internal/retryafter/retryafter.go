// Package retryafter knows how a server says when a client may send the next request.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Of reads from the header Retry-After how long to wait: a number of seconds, or the time until a date. It isn't longer
// than the limit, and is 0 for a date in the past. It is false if the response has no such advice.
func Of(header http.Header, now time.Time, limit time.Duration) (wait time.Duration, advised bool) {
	text := header.Get("Retry-After")
	// 31 bits of seconds fit into a Duration.
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, limit), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), limit)), true
	}
	return 0, false
}

// longest is the longest time in seconds that InSeconds passes on.
const longest = time.Hour

// InSeconds makes a transport whose responses say it in seconds, which is all that the library of the API server's
// clients reads. A proxy before the API server may say a date.
func InSeconds(next http.RoundTripper) http.RoundTripper { return inSeconds{next} }

type inSeconds struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t inSeconds) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if wait, advised := Of(response.Header, time.Now(), longest); advised {
		response.Header.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	return response, nil
}

// WrappedRoundTripper is the transport below, for the library.
func (t inSeconds) WrappedRoundTripper() http.RoundTripper { return t.next }
