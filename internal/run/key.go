package run

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
)

const (
	// keepKeyEvery is how often the leader checks whether the installation key exists.
	keepKeyEvery = 30 * time.Second
	// keyWithin bounds an attempt to read or create the key: an admission webhook may take 30
	// seconds, but a proxy in front of the API server may never answer.
	keyWithin = 45 * time.Second
)

// installationKey retries until it has the key, and logs each problem once. Without Secrets to
// follow, the key isn't needed.
func (p *parts) installationKey(ctx context.Context) ([]byte, error) {
	var key []byte
	if !p.options.Reload {
		p.keyProblem.Store(new(error))
		return nil, nil
	}
	said := ""
	backoff := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 30 * time.Second}
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := withinLimit(ctx, func(ctx context.Context) (err error) {
			key, err = access.InstallationKey(ctx, p.client, p.options.Own.Namespace, p.options.Own.Key)
			return advised(err)
		})
		p.keyProblem.Store(&err)
		if err != nil && err.Error() != said {
			said = err.Error()
			p.log.Error(err, "waiting for the installation key")
		}
		return err == nil, nil
	})
	return key, err
}

// keepKey restores the installation key when its Secret is deleted: with a new key, the next
// start could not tell which Secrets have changed. It logs once why a Secret is unusable.
func (p *parts) keepKey(ctx context.Context) error {
	said := ""
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		key := p.key.Load()
		if key == nil || *key == nil {
			return
		}
		remade := false
		err := withinLimit(ctx, func(ctx context.Context) (err error) {
			remade, err = access.KeepInstallationKey(ctx, p.client, p.options.Own.Namespace, p.options.Own.Key, *key)
			return err
		})
		switch {
		case remade:
			p.log.Info("the installation key was deleted and is created again", "secret", p.options.Own.Key)
		case err == nil:
			said = ""
		case !access.IsTransient(err) && err.Error() != said:
			said = err.Error()
			p.log.Error(advised(err), "cannot keep the installation key")
		}
	}, keepKeyEvery)
	return nil
}

// withinLimit makes one attempt, and reports an API server that doesn't answer.
func withinLimit(ctx context.Context, attempt func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, keyWithin)
	defer cancel()
	err := attempt(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the API server did not answer within %s: %w", keyWithin, err)
	}
	return err
}
