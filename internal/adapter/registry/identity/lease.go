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
	all answers.Cache[keychain.Credential]
}

// fetch gets a credential and when it expires.
type fetch func(ctx context.Context) (keychain.Credential, time.Time, error)

// get returns the credential for a key. It is renewed when a tenth of its life is left;
// a failure is not kept, except for a moment.
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

// forget ends a lease whose credential was refused, unless it is a new one.
func (l *leases) forget(key string) {
	l.all.Forget(func(other string, fetched time.Time) bool { return other == key && time.Since(fetched) > youngest })
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
