package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

const (
	// longestPause limits the wait that a registry can request: even after "in a year" it is
	// queried again after this.
	longestPause = time.Hour
	// firstPause follows the third failure in a row; it doubles up to lastPause.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// patience is how many consecutive failures may still be caused by a single repository
	// rather than the registry.
	patience = 3
)

// host is one registry and its state.
type host struct {
	name  string // as in image names
	base  *url.URL
	http  *http.Client
	slots chan struct{}

	meeting *semaphore.Weighted // held while querying the challenge
	asked   atomic.Bool         // whether the challenge is known

	mu        sync.Mutex
	challenge challenge
	// until is when it may be queried again, readsUntil when manifests may be read again.
	until, readsUntil time.Time
	failures          int
	pageSize          int
	accepted          map[string]keychain.Fingerprint // by path of the repository
	orders            map[string]order                // by path of the repository
}

func newHost(name string, o Options) (*host, error) {
	settings := o.Hosts[name]
	base := &url.URL{Scheme: "https", Host: name}
	if name == "docker.io" {
		base.Host = "registry-1.docker.io"
	}
	if settings.PlainHTTP {
		base.Scheme = "http"
	}
	transport := o.Transport
	if transport == nil {
		made, err := newTransport(settings)
		if err != nil {
			return nil, fmt.Errorf("registry %s: %w", name, err)
		}
		transport = made
	}
	if o.Local != nil && o.Local(name) {
		transport = &fallback{host: base.Host, next: transport}
	}
	return &host{
		name: name, base: base, slots: make(chan struct{}, sideBySide), meeting: semaphore.NewWeighted(1), pageSize: pageSize,
		http:     &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		accepted: map[string]keychain.Fingerprint{}, orders: map[string]order{},
	}, nil
}

func newTransport(settings Host) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: checkAddress}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 90 * time.Second,
		MaxIdleConnsPerHost: sideBySide, MaxResponseHeaderBytes: 64 << 10,
	}
	if len(settings.CA) == 0 {
		return t, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(settings.CA) {
		return nil, errors.New("its CA has no certificate in PEM form")
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// checkAddress prevents a registry from directing requests to a cloud's metadata service, by a
// redirect or by a name that resolves to it.
func checkAddress(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && forbidden(to.Addr()) {
		return fmt.Errorf("%s is not the address of a registry", to.Addr())
	}
	return nil
}

// checkRedirect allows redirects, without the credentials and never from HTTPS to HTTP.
func checkRedirect(request *http.Request, via []*http.Request) error {
	const most = 5
	if len(via) > most {
		return fmt.Errorf("more than %d redirects", most)
	}
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("a redirect from https to %s", request.URL.Scheme)
	}
	if request.URL.Host != via[0].URL.Host {
		request.Header.Del("Authorization")
	}
	return nil
}

// url of a path under /v2/.
func (h *host) url(path string, query url.Values) string {
	u := *h.base
	u.Path = "/v2/" + path
	u.RawQuery = query.Encode()
	return u.String()
}

// enter waits for a free slot, and refuses while the registry's pause lasts.
func (h *host) enter(ctx context.Context, what string, kind RequestKind) (leave func(), err error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, NoAnswer(what, h.name, context.Cause(ctx))
	}
	leave = func() { <-h.slots }
	h.mu.Lock()
	until := h.until
	if kind == ManifestRequest && h.readsUntil.After(until) {
		until = h.readsUntil
	}
	h.mu.Unlock()
	if until.After(time.Now()) {
		leave()
		return nil, &Error{
			Kind: Limited, What: what, Until: until, Answer: h.name + " is left alone until " + until.UTC().Format(time.RFC3339),
			Advice: "it said so, or did not answer several times; it is asked again then",
		}
	}
	return leave, nil
}

// note reads from a response when the registry may be queried again.
func (h *host) note(response *http.Response) time.Time {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	status := response.StatusCode
	limited := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if wait, ok := retryAfter(response.Header, now); ok && limited {
		h.until = now.Add(wait)
		return h.until
	}
	if limited || status >= http.StatusInternalServerError {
		h.failed(now, status == http.StatusTooManyRequests)
		return h.until
	}
	h.failures = 0
	remaining, reset, window := rateLimit(response.Header, now)
	switch {
	case remaining != 0:
	case reset > 0:
		h.until = now.Add(reset)
	case window > 0: // Docker Hub counts only manifest reads.
		h.readsUntil = now.Add(window)
	}
	return time.Time{}
}

// noteFailure records a missing response.
func (h *host) noteFailure() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed(time.Now(), false)
}

// failed starts a pause: immediately if the registry reported too many requests, else after
// several consecutive failures.
func (h *host) failed(now time.Time, atOnce bool) {
	h.failures++
	times := h.failures - patience
	if atOnce {
		times = h.failures - 1
	}
	if times < 0 {
		return
	}
	h.until = now.Add(min(firstPause<<min(times, 16), lastPause))
}

// retryAfter reads how long to wait, in seconds or until a date.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longestPause), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), longestPause)), true
	}
	return 0, false
}

// rateLimit reads how many requests are left, and when there will be more: from the IETF draft
// (RateLimit-Reset), from the window as Docker Hub writes it (ratelimit-remaining: 76;w=21600),
// or from GitHub (X-RateLimit-Reset is a Unix time). It is negative if the registry does not
// report it.
func rateLimit(header http.Header, now time.Time) (remaining int, reset, window time.Duration) {
	text, parameters, _ := strings.Cut(cmp.Or(header.Get("RateLimit-Remaining"), header.Get("X-RateLimit-Remaining")), ";")
	remaining, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return -1, 0, 0
	}
	if seconds, err := strconv.ParseUint(strings.TrimPrefix(parameters, "w="), 10, 31); err == nil {
		window = min(time.Duration(seconds)*time.Second, longestPause)
	}
	if seconds, err := strconv.ParseUint(header.Get("RateLimit-Reset"), 10, 31); err == nil {
		reset = min(time.Duration(seconds)*time.Second, longestPause)
	}
	if at, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		reset = max(0, min(time.Unix(at, 0).Sub(now), longestPause))
	}
	return remaining, reset, window
}
