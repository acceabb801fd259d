package identity

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

const (
	// fetchTimeout bounds a question to a cloud. Outside of it there is no answer.
	fetchTimeout = 15 * time.Second
	// pauseAfterFailure is how long no cloud is asked again, so that not each of many
	// images waits for what is not there.
	pauseAfterFailure = time.Minute
	// youngest is the least age of a credential that is replaced because it was refused.
	youngest = time.Minute
)

// leases are credentials that expire, by what they are for.
type leases struct {
	mu  sync.Mutex
	all map[string]*lease
}

// lease is a credential with an end. One caller at a time fetches it.
type lease struct {
	turn       chan struct{}
	credential keychain.Credential
	err        error
	fetched    time.Time
	until      time.Time
}

// fetch gets a credential and when it expires.
type fetch func(ctx context.Context) (keychain.Credential, time.Time, error)

// get returns the credential for a key. It is renewed when a tenth of its life is left;
// a failure is not kept, except for a moment.
func (l *leases) get(ctx context.Context, key string, ask fetch) (keychain.Credential, error) {
	one := l.lease(key)
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
	case <-ctx.Done():
		return keychain.Credential{}, context.Cause(ctx)
	}
	now := time.Now()
	if now.Before(one.until) {
		return one.credential, one.err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	credential, expires, err := ask(ctx)
	if err != nil {
		one.credential, one.err, one.until = keychain.Credential{}, err, time.Now().Add(pauseAfterFailure)
		return one.credential, err
	}
	one.credential, one.err, one.fetched = credential, nil, now
	one.until = expires.Add(-expires.Sub(now) / 10)
	return credential, nil
}

func (l *leases) lease(key string) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*lease{}
	}
	one := l.all[key]
	if one == nil {
		one = &lease{turn: make(chan struct{}, 1)}
		l.all[key] = one
	}
	return one
}

// forget ends a lease whose credential was refused, unless it is a new one.
func (l *leases) forget(key string) {
	one := l.lease(key)
	one.turn <- struct{}{}
	defer func() { <-one.turn }()
	if one.err == nil && time.Since(one.fetched) > youngest {
		one.until = time.Time{}
	}
}

// list makes what a source returns of a credential or an error. The libraries tell all
// that they have tried on many lines; the beginning says enough.
func list(credential keychain.Credential, cloud, host string, err error) ([]keychain.Credential, error) {
	if err == nil {
		return []keychain.Credential{credential}, nil
	}
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return nil, fmt.Errorf("identity of %s for %s: %s", cloud, host, text)
}
