package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// session is the state of one credential at one registry.
type session struct {
	host   *host
	tokens tokens
	// limits are the pauses that the registry requests from this credential. Others are not
	// affected.
	limits pauses
	used   time.Time // guarded by the host's lock
}

// pauses are when requests may be sent again.
type pauses struct {
	mu sync.Mutex
	// all is for every request, reads for those that read a manifest.
	all, reads time.Time
	failures   int
}

func (p *pauses) until(kind RequestKind) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == ManifestRequest {
		return later(p.all, p.reads)
	}
	return p.all
}

func (p *pauses) pause(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = until
}

func (p *pauses) pauseReads(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads = until
}

// failed starts a pause after this many consecutive failures. It doubles with each further one.
func (p *pauses) failed(now time.Time, patience int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	if times := p.failures - patience; times >= 0 {
		p.all = now.Add(min(firstPause<<min(times, 16), lastPause))
	}
}

// tries reports whether no pause is left, and none of the last requests worked.
func (p *pauses) tries(now time.Time, patience int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures >= patience && !p.all.After(now)
}

func (p *pauses) worked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// until is when a request of this kind may be sent.
func (s *session) until(kind RequestKind) time.Time {
	return later(s.host.outages.until(kind), s.limits.until(kind))
}

// enter waits for a free slot, and refuses during a pause.
func (s *session) enter(ctx context.Context, what string, kind RequestKind) (leave func(), err error) {
	select {
	case s.host.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, NoAnswer(what, s.host.name, context.Cause(ctx))
	}
	leave = func() { <-s.host.slots }
	if err := s.paused(what, kind); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (s *session) paused(what string, kind RequestKind) error {
	until := s.until(kind)
	if !until.After(time.Now()) {
		return nil
	}
	return &Error{
		Kind: Limited, What: what, Until: until, Answer: s.host.name + " is not queried until " + until.UTC().Format(time.RFC3339),
		Advice: "it requested a pause, or did not answer several times",
	}
}

// blame returns the pauses that a failure counts for: those of the registry, for everyone, or those of
// this credential. A token request depends on the credential most, and an error that isn't the
// network's may be a refusal of this program to send it: a tenant can't stop a registry for others
// with a credential of their own.
func (s *session) blame(kind RequestKind, outage bool) *pauses {
	if kind == TokenRequest || !outage {
		return &s.limits
	}
	return &s.host.outages
}

// isOutage reports whether an error comes from the network.
func isOutage(err error) bool {
	err = withoutURL(err) // A [url.Error] is a [net.Error], whatever it contains.
	_, network := errors.AsType[net.Error](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return network || plain || untrusted || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// note reads from a response when the registry may be queried again: a credential that is told to
// wait, or has sent too many requests, waits alone, and so does one whose token requests fail. Everyone
// waits for a registry that fails several times in a row.
func (s *session) note(response *http.Response, kind RequestKind) {
	now, status := time.Now(), response.StatusCode
	switch wait, told := retryafter.Of(response.Header, now, longestPause); {
	case told && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable):
		s.limits.pause(now.Add(wait))
	case status == http.StatusTooManyRequests:
		s.limits.failed(now, 1)
	case status >= http.StatusInternalServerError:
		s.blame(kind, true).failed(now, patience)
	default:
		if kind != TokenRequest { // A token server may work while its registry is down.
			s.host.outages.worked()
		}
		s.limits.worked()
		s.noteLimit(response.Header, now)
	}
}

// noteLimit starts a pause when no request is left.
func (s *session) noteLimit(header http.Header, now time.Time) {
	remaining, reset, window := rateLimit(header, now)
	switch {
	case remaining != 0:
	case reset > 0:
		s.limits.pause(now.Add(reset))
	case window > 0: // Docker Hub counts only manifest reads.
		s.limits.pauseReads(now.Add(window))
	}
}
