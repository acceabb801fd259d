package registry

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// mostScopes limits the repositories of one token: they are in its URL.
	mostScopes = 25
	// gather is how long a token request waits for other callers that need it: at start-up many
	// repositories are queried within moments.
	gather = 10 * time.Millisecond
	// defaultLife is the lifetime of a token that doesn't specify one.
	defaultLife = time.Minute
)

// token is valid for some repositories of a registry.
type token struct {
	value  string
	scopes []string
	renew  time.Time // a little before it expires
}

// tokens are those of one credential at one registry. One token covers all recently queried
// repositories, so a registry with twenty of them gets one token request instead of twenty.
type tokens struct {
	// keep is how long a repository that isn't queried any more stays in the tokens.
	keep time.Duration
	// requests runs one token request at a time.
	requests singleflight.Group

	mu     sync.Mutex
	all    []token
	wanted map[string]time.Time // scope: last queried
	pruned time.Time
	// alone are scopes that a token for several scopes did not cover.
	alone map[string]bool
}

// fetch requests a token from the registry's token server. It contains the credential, and isn't
// kept.
type fetch func(ctx context.Context, scopes []string) (value string, life time.Duration, err error)

// want records that a scope will be needed.
func (t *tokens) want(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.pruned) > t.keep {
		t.prune(now)
	}
	t.wanted[scope] = now
}

// prune forgets the scopes that are not queried any more.
func (t *tokens) prune(now time.Time) {
	t.pruned = now
	for scope, last := range t.wanted {
		if now.Sub(last) > t.keep {
			delete(t.wanted, scope)
			delete(t.alone, scope)
		}
	}
}

// get returns a token for a scope, and whether it was requested just now.
func (t *tokens) get(ctx context.Context, scope string, ask fetch) (found token, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		now := time.Now()
		t.wanted[scope] = now
		t.all = slices.DeleteFunc(t.all, func(k token) bool { return !now.Before(k.renew) })
		if i := slices.IndexFunc(t.all, func(k token) bool { return slices.Contains(k.scopes, scope) }); i >= 0 {
			return t.all[i], fresh, nil
		}
		requested := t.requests.DoChan("", func() (any, error) { return t.request(context.WithoutCancel(ctx), scope, ask) })
		t.mu.Unlock()
		var result singleflight.Result
		select {
		case result = <-requested:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if err := context.Cause(ctx); err != nil {
			return token{}, false, err
		}
		if scopes, _ := result.Val.([]string); result.Err != nil && slices.Contains(scopes, scope) {
			return token{}, false, result.Err
		}
		fresh = true
	}
}

// request fetches a token for a scope, and returns the scopes it was requested for.
func (t *tokens) request(ctx context.Context, scope string, ask fetch) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	time.Sleep(gather)
	t.mu.Lock()
	scopes := t.together(scope, time.Now())
	t.mu.Unlock()
	value, life, err := ask(ctx, scopes)
	if err != nil && len(scopes) > 1 && KindOf(err) != Limited {
		// Some servers refuse the whole request because of one unknown repository.
		scopes = []string{scope}
		value, life, err = ask(ctx, scopes)
		if err == nil {
			t.separate(scope)
		}
	}
	if err != nil {
		return scopes, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, token{value, scopes, renewal(time.Now(), life)})
	return scopes, nil
}

// together lists a scope, followed by the other wanted scopes: first those without a token, then
// those whose token will need renewal.
func (t *tokens) together(scope string, now time.Time) []string {
	if t.alone[scope] {
		return []string{scope}
	}
	t.prune(now)
	var closed, opened []string
	for other := range t.wanted {
		switch {
		case other == scope || t.alone[other]:
		case t.opened(other):
			opened = append(opened, other)
		default:
			closed = append(closed, other)
		}
	}
	slices.Sort(closed)
	slices.Sort(opened)
	all := slices.Concat([]string{scope}, closed, opened)
	return all[:min(len(all), mostScopes)]
}

func (t *tokens) opened(scope string) bool {
	return slices.ContainsFunc(t.all, func(k token) bool { return slices.Contains(k.scopes, scope) })
}

// drop removes a token that was refused for a scope. An older token was revoked. A new token for
// several repositories doesn't cover this scope, which then gets a token of its own.
func (t *tokens) drop(bad token, scope string, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !fresh {
		t.all = slices.DeleteFunc(t.all, func(k token) bool { return k.value == bad.value })
		return
	}
	t.alone[scope] = true
	for i, k := range t.all {
		if k.value == bad.value {
			t.all[i].scopes = slices.DeleteFunc(slices.Clone(k.scopes), func(s string) bool { return s == scope })
		}
	}
}

// size is how many bytes the tokens have.
func (t *tokens) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0
	for _, k := range t.all {
		sum += len(k.value)
	}
	return sum
}

// clear drops all tokens.
func (t *tokens) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = nil
}

func (t *tokens) separate(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone[scope] = true
}

// renewal is when a token that lives from now on is replaced: a quarter of its life, at most
// half a minute, before it expires.
func renewal(now time.Time, life time.Duration) time.Time {
	if life <= 0 {
		life = defaultLife
	}
	return now.Add(life - min(life/4, 30*time.Second))
}
