package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

// meet queries a registry once for its authentication challenge. Other callers wait meanwhile,
// and the next one retries after a failure.
func (c *Client) meet(ctx context.Context, h *host, what string) error {
	if h.asked.Load() {
		return nil
	}
	if err := h.meeting.Acquire(ctx, 1); err != nil {
		return NoAnswer(what, h.name, context.Cause(ctx))
	}
	defer h.meeting.Release(1)
	if h.asked.Load() {
		return nil
	}
	found, err := c.ping(ctx, h.session(keychain.Fingerprint{}), what)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.challenge = found
	h.asked.Store(true)
	return nil
}

// ping is sent without a credential, so a limit that it meets is that of anonymous requests.
func (c *Client) ping(ctx context.Context, s *session, what string) (challenge, error) {
	if err := s.paused(what, PingRequest); err != nil {
		return challenge{}, err
	}
	h := s.host
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url("", nil), http.NoBody)
	if err != nil {
		return challenge{}, fmt.Errorf("%s: %w", what, err)
	}
	response, err := c.roundTrip(s, request, what, PingRequest)
	if err != nil {
		return challenge{}, err
	}
	defer closeBody(response)
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		found, err := readChallenge(response)
		if err != nil {
			return challenge{}, untrue(what, "%s sent an unusable authentication challenge: %v", h.name, err)
		}
		return found, nil
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return challenge{}, s.refusal(what, h.name, response)
	default: // It doesn't require authentication, or only where it matters.
		return challenge{}, nil
	}
}

// pass is the authorization that a request is sent with.
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

func (c *Client) authorize(ctx context.Context, s *session, as keychain.Credential, r call) (pass, error) {
	h := s.host
	h.mu.Lock()
	found := h.challenge
	h.mu.Unlock()
	switch {
	case found.scheme == bearerScheme && as.RegistryToken != "":
		return pass{header: "Bearer " + as.RegistryToken}, nil
	case found.scheme == bearerScheme:
		token, fresh, err := s.tokens.get(ctx, r.scope(), func(ctx context.Context, scopes []string) (string, time.Duration, error) {
			return c.fetchToken(ctx, s, found, as, tokenCall{r.what, scopes})
		})
		if err != nil {
			return pass{}, asError(r.what, h.name, err)
		}
		if fresh {
			h.trimTokens()
		}
		return pass{header: "Bearer " + token.value, bearer: &bearer{&s.tokens, token, r.scope(), fresh}}, nil
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
	return NoAnswer(what, host, err)
}

// reconsider reports whether another token may lead to another response.
func (c *Client) reconsider(h *host, response *http.Response, p pass) bool {
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

// relearn adopts the challenge of a registry that did not require credentials before.
func (h *host) relearn(response *http.Response) bool {
	found, err := readChallenge(response)
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

// fetchToken requests a token from the token server: with an identity token by OAuth 2,
// otherwise with the user's name and password, or anonymously.
func (c *Client) fetchToken(ctx context.Context, s *session, from challenge, as keychain.Credential, r tokenCall) (string, time.Duration, error) {
	request, err := tokenRequest(ctx, from, as, r.scopes)
	if err != nil {
		return "", 0, err
	}
	h := s.host
	response, err := c.roundTrip(s, request, r.what, TokenRequest)
	if err != nil {
		return "", 0, err
	}
	defer closeBody(response)
	if response.StatusCode != http.StatusOK {
		e := s.refusal(r.what, "the token server of "+h.name, &http.Response{StatusCode: response.StatusCode, Body: http.NoBody})
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
	// Errors don't quote the body: it may be a token.
	if json.NewDecoder(io.LimitReader(response.Body, smallBody)).Decode(&answer) != nil || answer.Token+answer.AccessToken == "" {
		return "", 0, untrue(r.what, "the token server of %s answered without a token", h.name)
	}
	value := answer.Token
	if value == "" {
		value = answer.AccessToken
	}
	if strings.ContainsAny(value, "\r\n") || len(value) > maxToken {
		return "", 0, untrue(r.what, "the token server of %s answered with a token of several lines, or longer than %d bytes", h.name, maxToken)
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
