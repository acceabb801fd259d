package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/lru"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Client sends requests to registries. It keeps tokens, but not credentials.
type Client struct {
	options Options
	// large is the room for large bodies.
	large *semaphore.Weighted
	// accepted has the fingerprint of the credential that a repository accepted last, and orders
	// the order of its tags.
	accepted, orders *lru.Cache

	mu    sync.Mutex
	hosts map[string]*host
}

// NewClient makes a client that has not contacted a registry yet.
func NewClient(o Options) *Client {
	return &Client{
		options: o.withDefaults(), hosts: map[string]*host{}, large: semaphore.NewWeighted(maxInFlight),
		accepted: lru.New(maxRepositories), orders: lru.New(maxRepositories),
	}
}

// host returns the state of a registry. A new one takes the place of those that aren't queried any
// more. If all are in use, it isn't queried: to forget one would forget its pauses.
func (c *Client) host(name, what string) (*host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if h := c.hosts[name]; h != nil {
		h.used = now
		return h, nil
	}
	for other, h := range c.hosts {
		if now.Sub(h.used) > c.options.idle() && len(h.slots) == 0 {
			delete(c.hosts, other)
			c.options.Forgotten(other)
		}
	}
	if len(c.hosts) >= maxHosts {
		return nil, c.exceeded(Hosts, what, "%s is not queried: the limit of %d registries is reached", name, maxHosts)
	}
	h, err := newHost(name, c.options)
	if err != nil {
		return nil, &Error{Kind: Unreachable, What: what, Answer: "cannot be queried", Cause: err}
	}
	h.used = now
	c.hosts[name] = h
	return h, nil
}

// MayBeDown reports whether the next request shows if a registry that has failed several times works
// again.
func (c *Client) MayBeDown(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[name]
	return h != nil && h.outages.tries(time.Now(), patience)
}

// call is one request to a registry.
type call struct {
	what       string
	kind       RequestKind
	method     string
	repository tagspec.Repository
	path       string // after the repository: "manifests/1.4"
	query      url.Values
	accept     []string
	// most limits the body, after decompression.
	most int64
}

func (r call) scope() string { return "repository:" + r.repository.Path + ":pull" }

// do sends a call with a credential. The caller closes the reply. Any status other than 200 is an
// error.
func (c *Client) do(ctx context.Context, as keychain.Credential, r call) (*reply, error) {
	h, err := c.host(r.repository.Host, r.what)
	if err != nil {
		return nil, err
	}
	s := h.session(as.Fingerprint())
	// Before waiting for a slot, so one token covers all waiting requests.
	s.tokens.want(r.scope())
	leave, err := s.enter(ctx, r.what, r.kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.options.Timeout, requestTimeout))
	response, err := c.answer(ctx, s, as, r) //nolint:bodyclose // The reply closes it.
	if err != nil {
		cancel()
		leave()
		return nil, err
	}
	return &reply{
		client: c, call: r, header: response.Header, body: http.MaxBytesReader(nil, response.Body, r.most), size: response.ContentLength, ctx: ctx,
		release: func() {
			closeBody(response)
			cancel()
			leave()
		},
	}, nil
}

// answer authorizes and sends a call.
func (c *Client) answer(ctx context.Context, s *session, as keychain.Credential, r call) (*http.Response, error) {
	h := s.host
	if err := c.meet(ctx, h, r.what); err != nil {
		return nil, err
	}
	// A second try is for a revoked token, a third one for a server whose tokens cover only one
	// repository.
	const tries = 3
	for try := 1; ; try++ {
		pass, err := c.authorize(ctx, s, as, r)
		if err != nil {
			return nil, err
		}
		response, err := c.send(ctx, s, r, pass.header)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			return response, nil
		}
		if again := try < tries && c.reconsider(h, response, pass); again {
			closeBody(response)
			continue
		}
		e := s.refusal(r.what, h.name, response)
		closeBody(response)
		return nil, e
	}
}

// send makes one request.
func (c *Client) send(ctx context.Context, s *session, r call, authorization string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, s.host.url(r.repository.Path+"/"+r.path, r.query), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what, err)
	}
	request.Header["Accept"] = r.accept
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return c.roundTrip(s, request, r.what, r.kind)
}

func (c *Client) roundTrip(s *session, request *http.Request, what string, kind RequestKind) (*http.Response, error) {
	h := s.host
	request.Header.Set("User-Agent", c.options.UserAgent)
	response, err := h.http.Do(request)
	if err != nil {
		c.options.Observe(Request{Host: h.name, Kind: kind})
		if !errors.Is(context.Cause(request.Context()), context.Canceled) {
			s.blame(kind, isOutage(err)).failed(time.Now(), patience)
		}
		return nil, NoAnswer(what, h.name, withoutURL(err))
	}
	c.options.Observe(Request{Host: h.name, Kind: kind, Status: response.StatusCode})
	s.note(response, kind)
	return response, nil
}

// withoutURL drops the URL, which may contain a token of a redirect.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// closeBody reads a little of the remaining body, so the connection can be reused.
func closeBody(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	_ = response.Body.Close()
}
