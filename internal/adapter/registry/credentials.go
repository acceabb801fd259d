package registry

import (
	"context"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Try sends the query with each credential until one is accepted, starting with the one that was
// accepted last. Without credentials it queries anonymously.
func Try[T any](ctx context.Context, c *Client, repository tagspec.Repository, credentials []keychain.Credential, ask func(ctx context.Context, as keychain.Credential) (T, error)) (T, error) {
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
