package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/answers"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

const (
	// fetchTimeout limits a request to a cloud. Outside of a cloud there is no response.
	fetchTimeout = 15 * time.Second
	// pauseAfterFailure is how long a cloud isn't queried again, so not every image waits for a
	// missing service.
	pauseAfterFailure = time.Minute
	// youngest is the minimum age at which a refused credential is replaced.
	youngest = time.Minute
)

// leases are expiring credentials, by key.
type leases struct {
	all answers.Cache[keychain.Credential]
}

// fetch gets a credential and its expiry.
type fetch func(ctx context.Context) (keychain.Credential, time.Time, error)

// get returns the credential for a key. It is renewed when a tenth of its life is left. A
// failure is kept only for a moment.
func (l *leases) get(ctx context.Context, key string, ask fetch) (keychain.Credential, error) {
	credential, _, err := l.all.Get(ctx, key, func(ctx context.Context) (keychain.Credential, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		credential, expires, err := ask(ctx)
		if err != nil {
			return keychain.Credential{}, pauseAfterFailure, err
		}
		life := time.Until(expires)
		return credential, life - life/10, nil
	})
	return credential, err
}

// forget ends a lease whose credential was refused, unless it is new.
func (l *leases) forget(key string) {
	l.all.Forget(func(other string, fetched time.Time) bool { return other == key && time.Since(fetched) > youngest })
}

// list makes a source's result from a credential or an error. The libraries report all their
// attempts on many lines; the beginning is enough.
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
