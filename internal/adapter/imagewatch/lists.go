package imagewatch

import (
	"context"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// mostSpecs limits the specs that share one list, because each costs time for each tag.
	mostSpecs = 16
	// atOnce is how many tags are compared at a time.
	atOnce = 1024
)

// listing is the newest tag of a repository for each of several specs. The list itself isn't kept:
// it may be long.
type listing struct {
	registry.Count

	newest map[string]string // by spec; empty without a match
}

// list finds the newest tags of the repository. The watched specs share the whole list. If the list
// is known to be sorted and long, those with the same prefix share that part.
func (a *asking) list(ctx context.Context) (listing, error) {
	q := a.question
	return registry.Try(ctx, a.client, q.Repository, a.credentials, func(ctx context.Context, as keychain.Credential) (listing, error) {
		whole := shareKey(q.Repository, as, "")
		if l, ok := a.lists.Peek(whole); ok && l.has(q.Spec) {
			return l, nil
		}
		key, prefix := whole, ""
		if a.client.MaySeek(q.Repository, q.Spec.Prefix()) {
			prefix = q.Spec.Prefix()
			key = whole + prefix
		}
		l, err := a.read(ctx, as, key, prefix, a.specs(q, prefix))
		if err == nil && !l.has(q.Spec) { // The list was begun before this spec was watched.
			l, err = a.read(ctx, as, key+"\n"+q.Spec.String(), prefix, []tagspec.Spec{q.Spec})
		}
		return l, err
	})
}

func (l listing) has(s tagspec.Spec) bool {
	_, known := l.newest[s.String()]
	return known
}

// specs are that of a question, and others that the same list answers.
func (r *Resolver) specs(q Question, prefix string) []tagspec.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, seen := []tagspec.Spec{q.Spec}, map[string]bool{q.Spec.String(): true}
	for key, s := range r.subjects {
		other := s.question.Spec
		_, exact := other.Exact()
		if len(all) < mostSpecs && !exact && !seen[other.String()] && isAbout(key, q.Repository) && strings.HasPrefix(other.Prefix(), prefix) {
			all, seen[other.String()] = append(all, other), true
		}
	}
	return all
}

// read reads a list, or uses a shared one.
func (a *asking) read(ctx context.Context, as keychain.Credential, key, prefix string, specs []tagspec.Spec) (listing, error) {
	l, _, err := a.lists.Get(ctx, key, func(ctx context.Context) (listing, time.Duration, error) {
		c := choosing{specs: specs, newest: map[string]string{}, batch: make([]string, 0, atOnce+1)}
		count, err := a.client.Tags(ctx, as, a.question.Repository, prefix, c.add)
		c.choose()
		return listing{count, c.newest}, a.use(err), err
	})
	return l, err
}

// choosing finds the newest tags while a list is read.
type choosing struct {
	specs  []tagspec.Spec
	newest map[string]string
	batch  []string
}

func (c *choosing) add(tag string) {
	c.batch = append(c.batch, tag)
	if len(c.batch) == atOnce {
		c.choose()
	}
}

func (c *choosing) choose() {
	for _, spec := range c.specs {
		c.newest[spec.String()], _ = spec.Choose(append(c.batch, c.newest[spec.String()]))
	}
	c.batch = c.batch[:0]
}
