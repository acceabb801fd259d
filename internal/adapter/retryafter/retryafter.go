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
