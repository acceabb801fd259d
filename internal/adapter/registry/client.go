package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const maxTokenBody = 64 << 10

// Client sends requests to registries. It keeps tokens, but not credentials.
type Client struct {
	options Options

	mu     sync.Mutex
	hosts  map[string]*host
	tokens map[tokenKey]*tokens
}

type tokenKey struct {
	host string
	who  keychain.Fingerprint
}

// NewClient makes a client that has not contacted a registry yet.
func NewClient(o Options) *Client {
	return &Client{options: o.withDefaults(), hosts: map[string]*host{}, tokens: map[tokenKey]*tokens{}}
}

func (c *Client) host(name string) (*host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[name]; h != nil {
		return h, nil
	}
	h, err := newHost(name, c.options)
	if err == nil {
		c.hosts[name] = h
	}
	return h, err
}

// tokensOf returns the tokens of a credential.
func (c *Client) tokensOf(h *host, who keychain.Fingerprint) *tokens {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := tokenKey{h.name, who}
	t := c.tokens[key]
	if t == nil {
		// Credentials that are replaced every hour would pile up.
		maps.DeleteFunc(c.tokens, func(_ tokenKey, t *tokens) bool { return t.idle() })
		t = &tokens{keep: 2*c.options.Interval + 5*time.Minute, wanted: map[string]time.Time{}, alone: map[string]bool{}}
		c.tokens[key] = t
	}
	return t
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
}

func (r call) scope() string { return "repository:" + r.repository.Path + ":pull" }

// do sends a call with a credential. The caller closes the body. Any status other than 200 is an
// error.
func (c *Client) do(ctx context.Context, as keychain.Credential, r call) (*http.Response, error) {
	h, err := c.host(r.repository.Host)
	if err != nil {
		return nil, &Error{Kind: Unreachable, What: r.what, Answer: "cannot be asked", Cause: err}
	}
	// Before waiting for a slot, so one token covers all waiting requests.
	c.tokensOf(h, as.Fingerprint()).want(r.scope())
	leave, err := h.enter(ctx, r.what, r.kind)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	response, err := c.answer(ctx, h, as, r)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = bounded{response.Body, cancel}
	return response, nil
}

// bounded is a body that has to be read in time.
type bounded struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the request.
func (b bounded) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// answer authorizes and sends a call.
func (c *Client) answer(ctx context.Context, h *host, as keychain.Credential, r call) (*http.Response, error) {
	if err := c.meet(ctx, h, r.what); err != nil {
		return nil, err
	}
	// A second try is for a revoked token, a third one for a server whose tokens cover only one
	// repository.
	const tries = 3
	for try := 1; ; try++ {
		pass, err := c.authorize(ctx, h, as, r)
		if err != nil {
			return nil, err
		}
		response, err := c.send(ctx, h, r, pass.header)
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
		e := h.refusal(r.what, h.name, response)
		closeBody(response)
		return nil, e
	}
}

// send makes one request.
func (c *Client) send(ctx context.Context, h *host, r call, authorization string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, h.url(r.repository.Path+"/"+r.path, r.query), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what, err)
	}
	request.Header["Accept"] = r.accept
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return c.roundTrip(h, request, r.what, r.kind)
}

func (c *Client) roundTrip(h *host, request *http.Request, what string, kind RequestKind) (*http.Response, error) {
	request.Header.Set("User-Agent", c.options.UserAgent)
	response, err := h.http.Do(request)
	if err != nil {
		c.options.Observe(Request{Host: h.name, Kind: kind})
		if !errors.Is(context.Cause(request.Context()), context.Canceled) {
			h.noteFailure()
		}
		return nil, NoAnswer(what, h.name, withoutURL(err))
	}
	c.options.Observe(Request{Host: h.name, Kind: kind, Status: response.StatusCode})
	h.note(response)
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
