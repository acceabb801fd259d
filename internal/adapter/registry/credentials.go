package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Try sends the query with each credential until one is accepted, starting with the one that was
// accepted last. It tries at most [keychain.MaxTried]. Without credentials it queries anonymously.
func Try[T any](ctx context.Context, c *Client, repository tagspec.Repository, credentials []keychain.Credential, ask func(ctx context.Context, as keychain.Credential) (T, error)) (T, error) {
	var none T
	if len(credentials) == 0 {
		credentials = []keychain.Credential{{}}
	}
	var said error
	ordered := c.order(repository, credentials)
	for _, as := range ordered[:min(len(ordered), keychain.MaxTried)] {
		answer, err := ask(ctx, as)
		if err == nil {
			c.accepted.Add(repository.String(), as.Fingerprint())
			return answer, nil
		}
		if said == nil || KindOf(said) == Denied {
			said = err
		}
		if kind := KindOf(err); kind != Denied && kind != Missing {
			return none, err
		}
	}
	if e, ok := errors.AsType[*Error](said); ok && len(ordered) > keychain.MaxTried {
		c.options.Exceeded(Credentials)
		with := *e // Other callers share it.
		with.Bound, with.Advice = Credentials, fmt.Sprintf("only the %d most specific credentials were tried; %s", keychain.MaxTried, e.Advice)
		said = &with
	}
	return none, said
}

func (c *Client) order(repository tagspec.Repository, credentials []keychain.Credential) []keychain.Credential {
	last, known := c.accepted.Get(repository.String())
	if !known {
		return credentials
	}
	ordered := slices.Clone(credentials)
	sorting.By(ordered, func(a, b keychain.Credential) int {
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
