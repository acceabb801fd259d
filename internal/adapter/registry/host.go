package registry

import (
	"cmp"
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
	// idleConnections limits the connections that are kept open.
	idleConnections = 2
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
	used  time.Time // guarded by the client's lock

	meeting *semaphore.Weighted // held while querying the challenge
	asked   atomic.Bool         // whether the challenge is known
	// outages are the pauses after failures of the registry itself.
	outages pauses
	// keep is how long an unused credential's session is remembered.
	keep time.Duration

	mu        sync.Mutex
	challenge challenge
	pageSize  int
	sessions  map[keychain.Fingerprint]*session
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
		transport = &fallback{host: base.Host, next: transport, now: time.Now}
	}
	return &host{
		name: name, base: base, slots: make(chan struct{}, sideBySide), meeting: semaphore.NewWeighted(1), pageSize: pageSize,
		http:     &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		sessions: map[keychain.Fingerprint]*session{}, keep: o.idle(),
	}, nil
}

func newTransport(settings Host) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: checkAddress}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 90 * time.Second,
		MaxIdleConnsPerHost: idleConnections, MaxResponseHeaderBytes: 64 << 10,
		// By default a registry could fill 4 MiB of buffers for each request before anything is read.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: smallBody, MaxReceiveBufferPerConnection: 4 * smallBody},
	}
	if len(settings.CA) == 0 {
		return t, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(settings.CA) {
		return nil, errors.New("its CA does not contain a certificate in PEM form")
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
	// The last request, as it was really sent: a local registry may be queried in plain HTTP.
	if request.Response.Request.URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("a redirect from https to %s", printable(request.URL.Scheme))
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

// session returns the state of a credential.
func (h *host) session(who keychain.Fingerprint) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	s := h.sessions[who]
	if s == nil {
		s = &session{host: h, tokens: tokens{keep: h.keep, wanted: map[string]time.Time{}, alone: map[string]bool{}}}
		if h.forgetSessions(now) {
			h.sessions[who] = s
		}
	}
	s.used = now
	return s
}

// forgetSessions drops unused sessions, because credentials that are replaced every hour would pile
// up, and one more if there are too many. It reports whether there is room for another one. A session
// that has to wait is never dropped: the registry would be queried although it asked not to. While
// all of them wait, further credentials are used without being remembered.
func (h *host) forgetSessions(now time.Time) bool {
	var (
		oldest keychain.Fingerprint
		first  *session
	)
	for who, s := range h.sessions {
		switch {
		case s.limits.until(ManifestRequest).After(now):
		case now.Sub(s.used) > h.keep:
			delete(h.sessions, who)
		case first == nil || s.used.Before(first.used):
			oldest, first = who, s
		}
	}
	if len(h.sessions) >= maxSessions && first != nil {
		delete(h.sessions, oldest)
	}
	return len(h.sessions) < maxSessions
}

// trimTokens drops the tokens of the credential that has the most, when there are too many.
func (h *host) trimTokens() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var (
		sum, most int
		largest   *session
	)
	for _, s := range h.sessions {
		size := s.tokens.size()
		sum += size
		if size > most {
			most, largest = size, s
		}
	}
	if sum > maxTokenBytes {
		largest.tokens.clear()
	}
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
