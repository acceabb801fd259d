package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const maxTokenBody = 64 << 10

// client speaks to registries. It keeps tokens, and no credential.
type client struct {
	options Options

	mu     sync.Mutex
	hosts  map[string]*host
	tokens map[tokenKey]*tokens
}

type tokenKey struct {
	host string
	who  keychain.Fingerprint
}

func newClient(o Options) *client {
	return &client{options: o, hosts: map[string]*host{}, tokens: map[tokenKey]*tokens{}}
}

func (c *client) host(name string) (*host, error) {
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

// tokensOf are the tokens of a credential.
func (c *client) tokensOf(h *host, who keychain.Fingerprint) *tokens {
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
	path       string // behind the repository: "manifests/1.4"
	query      url.Values
	accept     []string
}

func (r call) scope() string { return "repository:" + r.repository.Path + ":pull" }

// do sends a call with a credential. The caller closes the body. An answer that is not
// 200 is an error.
func (c *client) do(ctx context.Context, as keychain.Credential, r call) (*http.Response, error) {
	h, err := c.host(r.repository.Host)
	if err != nil {
		return nil, &Error{Kind: Unreachable, What: r.what, Answer: "cannot be asked", Cause: err}
	}
	// Before it waits for its turn, so that one token is for all who wait.
	c.tokensOf(h, as.Fingerprint()).want(r.scope())
	leave, err := h.enter(ctx, r.what, r.kind)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := c.meet(ctx, h, r.what); err != nil {
		return nil, err
	}
	// A second try is for a token that was revoked, a third one for a server whose tokens
	// open one repository only.
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
func (c *client) send(ctx context.Context, h *host, r call, authorization string) (*http.Response, error) {
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

func (c *client) roundTrip(h *host, request *http.Request, what string, kind RequestKind) (*http.Response, error) {
	request.Header.Set("User-Agent", c.options.UserAgent)
	response, err := h.http.Do(request)
	if err != nil {
		c.options.Observe(Request{Host: h.name, Kind: kind})
		if !errors.Is(context.Cause(request.Context()), context.Canceled) {
			h.noteFailure()
		}
		return nil, unreachable(what, h.name, withoutURL(err))
	}
	c.options.Observe(Request{Host: h.name, Kind: kind, Status: response.StatusCode})
	h.note(response)
	return response, nil
}

// withoutURL leaves out the URL, which may have a token of a redirect in it.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// meet asks a registry once how it wants to know who asks. Others wait meanwhile.
func (c *client) meet(ctx context.Context, h *host, what string) error {
	h.mu.Lock()
	for !h.asked && h.asking != nil {
		asking := h.asking
		h.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return unreachable(what, h.name, context.Cause(ctx))
		}
		h.mu.Lock()
	}
	if h.asked {
		h.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	h.asking = done
	h.mu.Unlock()
	found, err := c.ping(ctx, h, what)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.asked, h.challenge = true, found
	}
	h.asking = nil
	close(done)
	return err
}

func (c *client) ping(ctx context.Context, h *host, what string) (challenge, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url("", nil), http.NoBody)
	if err != nil {
		return challenge{}, fmt.Errorf("%s: %w", what, err)
	}
	response, err := c.roundTrip(h, request, what, PingRequest)
	if err != nil {
		return challenge{}, err
	}
	defer closeBody(response)
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		found, err := readChallenge(response.Header, h.base)
		if err != nil {
			return challenge{}, untrue(what, "%s cannot be answered: %v", h.name, err)
		}
		return found, nil
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return challenge{}, h.refusal(what, h.name, response)
	default: // It asks for nothing, or does so where it matters.
		return challenge{}, nil
	}
}

// pass is what a request is sent with.
type pass struct {
	header string
	bearer *bearer // nil if the header is the credential itself
}

type bearer struct {
	tokens *tokens
	token  token
	scope  string
	fresh  bool
}

func (c *client) authorize(ctx context.Context, h *host, as keychain.Credential, r call) (pass, error) {
	h.mu.Lock()
	found := h.challenge
	h.mu.Unlock()
	switch {
	case found.scheme == bearerScheme && as.RegistryToken != "":
		return pass{header: "Bearer " + as.RegistryToken}, nil
	case found.scheme == bearerScheme:
		all := c.tokensOf(h, as.Fingerprint())
		token, fresh, err := all.get(ctx, r.scope(), func(ctx context.Context, scopes []string) (string, time.Duration, error) {
			return c.fetchToken(ctx, h, found, as, tokenCall{r.what, scopes})
		})
		if err != nil {
			return pass{}, asError(r.what, h.name, err)
		}
		return pass{header: "Bearer " + token.value, bearer: &bearer{all, token, r.scope(), fresh}}, nil
	case found.scheme == basicScheme && as.Username != "":
		request := http.Request{Header: http.Header{}}
		request.SetBasicAuth(as.Username, as.Password)
		return pass{header: request.Header.Get("Authorization")}, nil
	default:
		return pass{}, nil
	}
}

func asError(what, host string, err error) error {
	if KindOf(err) != "" {
		return err
	}
	return unreachable(what, host, err)
}

// reconsider tells whether an answer may be another one with another token.
func (c *client) reconsider(h *host, response *http.Response, p pass) bool {
	status := response.StatusCode
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return false
	}
	if p.bearer == nil {
		return status == http.StatusUnauthorized && p.header == "" && h.relearn(response)
	}
	b := p.bearer
	if b.fresh && len(b.token.scopes) == 1 {
		return false
	}
	b.tokens.drop(b.token, b.scope, b.fresh)
	return true
}

// relearn takes the challenge of a registry that did not ask for credentials before.
func (h *host) relearn(response *http.Response) bool {
	found, err := readChallenge(response.Header, h.base)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || h.challenge.scheme != noScheme {
		return false
	}
	h.challenge = found
	return true
}

type tokenCall struct {
	what   string
	scopes []string
}

// fetchToken asks the token server: with an identity token by OAuth 2, otherwise with
// the user's name and password, or without.
func (c *client) fetchToken(ctx context.Context, h *host, from challenge, as keychain.Credential, r tokenCall) (string, time.Duration, error) {
	request, err := tokenRequest(ctx, from, as, r.scopes)
	if err != nil {
		return "", 0, err
	}
	response, err := c.roundTrip(h, request, r.what, TokenRequest)
	if err != nil {
		return "", 0, err
	}
	defer closeBody(response)
	if response.StatusCode != http.StatusOK {
		e := h.refusal(r.what, "the token server of "+h.name, &http.Response{Status: response.Status, StatusCode: response.StatusCode, Body: http.NoBody})
		if e.Kind == Missing {
			e.Kind = Broken
		}
		return "", 0, e
	}
	var answer struct {
		Token       string  `json:"token"`
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	// What it says is not repeated: it may be a token.
	if json.NewDecoder(io.LimitReader(response.Body, maxTokenBody)).Decode(&answer) != nil || answer.Token+answer.AccessToken == "" {
		return "", 0, untrue(r.what, "the token server of %s answered without a token", h.name)
	}
	value := answer.Token
	if value == "" {
		value = answer.AccessToken
	}
	if strings.ContainsAny(value, "\r\n") {
		return "", 0, untrue(r.what, "the token server of %s answered with a token of several lines", h.name)
	}
	life := time.Duration(min(max(answer.ExpiresIn, 0), 86400)) * time.Second
	return value, life, nil
}

func tokenRequest(ctx context.Context, from challenge, as keychain.Credential, scopes []string) (*http.Request, error) {
	values := url.Values{"service": {from.service}}
	if as.IdentityToken != "" {
		values.Set("scope", strings.Join(scopes, " "))
		values.Set("grant_type", "refresh_token")
		values.Set("refresh_token", as.IdentityToken)
		values.Set("client_id", "lockstep")
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, from.realm.String(), strings.NewReader(values.Encode()))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return request, nil
	}
	at := *from.realm
	query := at.Query()
	query.Set("service", from.service)
	query["scope"] = scopes
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if as.Username != "" {
		request.SetBasicAuth(as.Username, as.Password)
	}
	return request, nil
}

// closeBody reads a little of what is left, so that the connection can be used again.
func closeBody(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	_ = response.Body.Close()
}

// try asks with each credential until one is accepted, and begins with the one that was
// accepted last. Without any it asks anonymously.
func try[T any](ctx context.Context, c *client, repository tagspec.Repository, credentials []keychain.Credential, ask func(ctx context.Context, as keychain.Credential) (T, error)) (T, error) {
	var none T
	h, err := c.host(repository.Host)
	if err != nil {
		return none, &Error{Kind: Unreachable, What: repository.String(), Answer: "cannot be asked", Cause: err}
	}
	if len(credentials) == 0 {
		credentials = []keychain.Credential{{}}
	}
	var said error
	for _, as := range h.order(repository.Path, credentials) {
		answer, err := ask(ctx, as)
		if err == nil {
			h.accept(repository.Path, as)
			return answer, nil
		}
		if said == nil || KindOf(said) == Denied {
			said = err
		}
		if kind := KindOf(err); kind != Denied && kind != Missing {
			return none, err
		}
	}
	return none, said
}

func (h *host) order(path string, credentials []keychain.Credential) []keychain.Credential {
	h.mu.Lock()
	last, known := h.accepted[path]
	h.mu.Unlock()
	if !known {
		return credentials
	}
	ordered := slices.Clone(credentials)
	slices.SortStableFunc(ordered, func(a, b keychain.Credential) int {
		return boolToInt(b.Fingerprint() == last) - boolToInt(a.Fingerprint() == last)
	})
	return ordered
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (h *host) accept(path string, as keychain.Credential) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accepted[path] = as.Fingerprint()
}
