package imagewatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// keepImage is how long the platforms of a digest are kept; they never change.
	keepImage = 24 * time.Hour
	// shareFailure is how long a failure is shared that may be over at the next try.
	shareFailure = time.Second
)

// memory is the state of one question between checks.
type memory struct {
	last Resolution
	gone time.Time // since when the newest tag is missing, zero while it exists
}

// check answers a question with as few requests as possible.
func (r *Resolver) check(ctx context.Context, q Question, m *memory) (Resolution, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	a := &asking{Resolver: r, question: q}
	var unread error
	if q.Credentials != nil {
		a.credentials, unread = q.Credentials.Credentials(ctx, q.Repository)
	}
	tooMany := errors.Is(unread, keychain.ErrTooManySecrets)
	if tooMany {
		r.options.Exceeded(registry.PullSecrets)
	}
	found, err := a.resolve(ctx, m)
	if err == nil {
		return found, nil
	}
	e, ok := errors.AsType[*registry.Error](err)
	if !ok {
		return Resolution{}, registry.NoAnswer("digest of "+q.Repository.String()+":"+q.Spec.String(), q.Repository.Host, err)
	}
	if f, ok := q.Credentials.(keychain.Forgetter); ok && e.Kind == registry.Denied {
		f.Forget(q.Repository)
	}
	// Some registries call a repository missing that needs other credentials.
	if (e.Kind == registry.Denied || e.Kind == registry.Missing) && unread != nil {
		with := *e // Other callers share it.
		with.Cause = unread
		if tooMany {
			with.Bound = registry.PullSecrets
		}
		return Resolution{}, &with
	}
	return Resolution{}, err
}

// asking is one check of a question, with its credentials.
type asking struct {
	*Resolver
	question    Question
	credentials []keychain.Credential
}

func (a *asking) resolve(ctx context.Context, m *memory) (Resolution, error) {
	tag, err := a.tag(ctx, m)
	if err != nil {
		return Resolution{}, err
	}
	digest, at, err := a.digest(ctx, tag)
	if err != nil {
		return Resolution{}, err
	}
	found := Resolution{Tag: tag, Digest: digest, At: at}
	if len(a.question.Platforms) == 0 {
		return found, nil
	}
	found.Digest, err = a.forPlatforms(ctx, tag, digest)
	return found, err
}

// tag chooses the newest wanted tag.
func (a *asking) tag(ctx context.Context, m *memory) (string, error) {
	q := a.question
	if tag, ok := q.Spec.Exact(); ok {
		return tag, nil
	}
	listed, err := a.list(ctx)
	if err != nil {
		return "", err
	}
	chosen := listed.newest[q.Spec.String()]
	before := m.last.Tag
	if before == "" {
		before = q.Running
	}
	if newest, _ := q.Spec.Choose([]string{before, chosen}); newest == before && before != chosen && before != "" {
		return a.older(ctx, m, before, chosen)
	}
	m.gone = time.Time{}
	if chosen == "" {
		answer := fmt.Sprintf("none of %d matches %s", listed.Tags, q.Spec)
		if listed.TooLong > 0 {
			answer += fmt.Sprintf(", and %d more are too long for a tag", listed.TooLong)
		}
		return "", &registry.Error{
			Kind: registry.NoMatch, What: "tags of " + q.Repository.String(), Answer: answer,
			Advice: "test the spec offline on a list of tags: lockstep resolve REPOSITORY:SPEC",
		}
	}
	return chosen, nil
}

// older handles a list that lacks the newest known tag: lists may be incomplete. The tag stays
// as long as the registry has it, and until it is still missing at a check at least an interval
// later. Checks after a push come within seconds and may see the same wrong response, and so
// does a check that shares one.
func (a *asking) older(ctx context.Context, m *memory, before, chosen string) (string, error) {
	_, _, err := a.digest(ctx, before)
	if err == nil {
		m.gone = time.Time{}
		return before, nil
	}
	if registry.KindOf(err) != registry.Missing {
		return "", err
	}
	now := time.Now()
	if m.gone.IsZero() {
		m.gone = now
	}
	if now.Sub(m.gone) >= max(a.options.Interval, a.options.TTL) && chosen != "" {
		m.gone = time.Time{}
		return chosen, nil
	}
	return "", &registry.Error{
		Kind: registry.Shrunk, What: "tags of " + a.question.Repository.String(), Answer: fmt.Sprintf("%s, the newest so far, does not exist any more", before),
		Advice: "Lockstep takes an older one if it is still missing after an interval",
	}
}

// digest queries the digest of a tag, or uses a shared response.
func (a *asking) digest(ctx context.Context, tag string) (string, time.Time, error) {
	var at time.Time
	q := a.question
	digest, err := registry.Try(ctx, a.client, q.Repository, a.credentials, func(ctx context.Context, as keychain.Credential) (string, error) {
		digest, when, err := a.heads.Get(ctx, shareKey(q.Repository, as, tag), func(ctx context.Context) (string, time.Duration, error) {
			digest, err := a.client.Digest(ctx, as, q.Repository, tag)
			return digest, a.use(err), err
		})
		at = when
		return digest, err
	})
	return digest, at, err
}

// forPlatforms checks that an image exists for all platforms, and finds the digest.
func (a *asking) forPlatforms(ctx context.Context, tag, digest string) (string, error) {
	q := a.question
	image, err := a.image(ctx, digest, func(ctx context.Context, as keychain.Credential) (registry.Image, error) {
		return a.client.Image(ctx, as, q.Repository, digest)
	})
	switch {
	case err != nil:
		return "", err
	case q.Child && !image.Index:
		return digest, nil // Its platform doesn't matter, and some registries refuse its configuration.
	case !image.Index:
		alone := image
		image, err = a.image(ctx, "platform of "+digest, func(ctx context.Context, as keychain.Credential) (registry.Image, error) {
			return a.client.WithPlatform(ctx, as, q.Repository, alone)
		})
	}
	if err != nil {
		return "", err
	}
	var missing []string
	for _, wanted := range q.Platforms {
		if _, ok := image.For(wanted); !ok {
			missing = append(missing, wanted.String())
		}
	}
	if len(missing) > 0 {
		return "", &registry.Error{
			Kind: registry.NoPlatform, What: q.Repository.String() + ":" + tag, Answer: fmt.Sprintf("supports %s, but not %s", platformList(image), strings.Join(missing, ", ")),
			Advice: "push an image for each missing platform, or request other platforms",
		}
	}
	if !q.Child {
		return digest, nil
	}
	child, _ := image.For(q.Platforms[0])
	return child.Digest, nil
}

// image reads something about an image that never changes, or uses a shared response.
func (a *asking) image(ctx context.Context, what string, read func(context.Context, keychain.Credential) (registry.Image, error)) (registry.Image, error) {
	q := a.question
	return registry.Try(ctx, a.client, q.Repository, a.credentials, func(ctx context.Context, as keychain.Credential) (registry.Image, error) {
		// Any credential that may read the tag may read its platforms: the key omits the
		// credential.
		key := shareKey(q.Repository, keychain.Credential{}, what)
		image, _, err := a.images.Get(ctx, key, func(ctx context.Context) (registry.Image, time.Duration, error) {
			image, err := read(ctx, as)
			if err != nil {
				return registry.Image{}, shareFailure, err
			}
			return image, keepImage, nil
		})
		return image, err
	})
}

func platformList(image registry.Image) string {
	if len(image.Platforms) == 0 {
		return "no platform"
	}
	const most = 12
	var names []string
	for _, p := range image.Platforms[:min(len(image.Platforms), most)] {
		names = append(names, fmt.Sprintf("%.100s", v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}))
	}
	if more := len(image.Platforms) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// use is how long a response is shared: a refusal as long as a digest, because it is as certain,
// and a failure only among concurrent callers.
func (r *Resolver) use(err error) time.Duration {
	switch registry.KindOf(err) {
	case registry.Denied, registry.Missing, registry.Untrue, registry.TooLarge:
		return r.options.TTL
	default:
		if err == nil {
			return r.options.TTL
		}
		return shareFailure
	}
}

// shareKey identifies a query and its credential. It begins with the repository.
func shareKey(repository tagspec.Repository, as keychain.Credential, what string) string {
	who := as.Fingerprint()
	return repository.String() + "\n" + string(who[:]) + "\n" + what
}
