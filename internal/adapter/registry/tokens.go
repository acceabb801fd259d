package registry

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// mostScopes bounds the repositories of one token: they are in its URL.
	mostScopes = 25
	// gather is how long a request for a token waits for others who need it, too: at a
	// start many repositories are asked for within moments.
	gather = 10 * time.Millisecond
	// defaultLife is how long a token lives that does not say.
	defaultLife = time.Minute
)

// token opens some repositories of a registry.
type token struct {
	value  string
	scopes []string
	renew  time.Time // a little before it expires
}

// tokens are those of one credential at one registry. One token opens all repositories
// that have been asked for lately, so that a registry with twenty of them is asked for
// one token and not for twenty.
type tokens struct {
	// keep is how long a repository that is not asked for any more stays in the tokens.
	keep time.Duration
	// requests are those for tokens, one at a time.
	requests singleflight.Group

	mu     sync.Mutex
	all    []token
	wanted map[string]time.Time // scope: last asked for
	// alone are scopes that a token for several did not open.
	alone map[string]bool
}

// fetch asks the registry's token server. It knows the credential, and is not kept.
type fetch func(ctx context.Context, scopes []string) (value string, life time.Duration, err error)

// want notes that a scope will be asked for.
func (t *tokens) want(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted[scope] = time.Now()
}

// get returns a token that opens a scope, and whether it was asked for just now.
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

// request asks for a token that opens a scope, and returns which scopes it was asked for.
func (t *tokens) request(ctx context.Context, scope string, ask fetch) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	time.Sleep(gather)
	t.mu.Lock()
	scopes := t.together(scope, time.Now())
	t.mu.Unlock()
	value, life, err := ask(ctx, scopes)
	if err != nil && len(scopes) > 1 && KindOf(err) != Limited {
		// Some servers refuse all for one repository that they do not know.
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

// together lists a scope, first, and the others that are asked for as well: those that
// no token opens before those that will need a new one at some time.
func (t *tokens) together(scope string, now time.Time) []string {
	if t.alone[scope] {
		return []string{scope}
	}
	var closed, opened []string
	for other, last := range t.wanted {
		switch {
		case now.Sub(last) > t.keep:
			delete(t.wanted, other)
			delete(t.alone, other)
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

// drop forgets a token that did not open a scope. An older one was revoked; a new one,
// for several repositories, does not open this one, which gets a token of its own.
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

// idle tells whether nothing has been asked for lately, so that no request is under way.
func (t *tokens) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, last := range t.wanted {
		if time.Since(last) <= t.keep {
			return false
		}
	}
	return true
}

func (t *tokens) separate(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone[scope] = true
}

// renewal is when a token that lives from now on is replaced: a quarter of its life, at
// most half a minute, before it ends.
func renewal(now time.Time, life time.Duration) time.Time {
	if life <= 0 {
		life = defaultLife
	}
	return now.Add(life - min(life/4, 30*time.Second))
}
