package ui

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// grantAge is how long an answer about permissions counts: a page that changes ten times a second
// doesn't ask each time.
const grantAge = 10 * time.Second

// mostGrants bounds the answers that are kept.
const mostGrants = 1000

// mostAsked is about how many permissions of one action are asked for. The command itself finds
// out about further ones.
const mostAsked = 40

// grants knows which permissions the user lacks.
type grants struct {
	can func(context.Context, []access.Permission) ([]access.Permission, error)
	now func() time.Time

	mu    sync.Mutex
	known map[string]grant
}

type grant struct {
	missing []access.Permission
	err     error
	at      time.Time
}

func newGrants(can func(context.Context, []access.Permission) ([]access.Permission, error), now func() time.Time) *grants {
	return &grants{can: can, now: now, known: map[string]grant{}}
}

// missing are the permissions that the user lacks.
func (g *grants) missing(ctx context.Context, needed []access.Permission) ([]access.Permission, error) {
	if g.can == nil {
		return nil, nil
	}
	var names strings.Builder
	for _, permission := range needed {
		names.WriteString(permission.String() + " " + permission.Kind.String() + "\n")
	}
	key := names.String()
	g.mu.Lock()
	kept, found := g.known[key]
	g.mu.Unlock()
	if found && g.now().Sub(kept.at) < grantAge {
		return kept.missing, kept.err
	}
	kept = grant{at: g.now()}
	kept.missing, kept.err = g.can(ctx, needed)
	if ctx.Err() != nil {
		return kept.missing, kept.err // the next one asks again
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= mostGrants {
		clear(g.known)
	}
	g.known[key] = kept
	return kept.missing, kept.err
}

// check completes the actions with what the user lacks for them.
func (g *grants) check(ctx context.Context, actions []action, needs func(*action) []access.Permission) {
	for i := range actions {
		missing, err := g.missing(ctx, needs(&actions[i]))
		actions[i].Missing = missing
		if err != nil {
			actions[i].Unchecked = err.Error()
		}
		if a := &actions[i]; a.Verb != verbHold && len(missing) == 0 {
			a.Unkept, _ = g.missing(ctx, toTell(a.Namespace))
		}
	}
}

// onObject are the permissions that hold and release need.
func onObject(what access.Permission, namespace, name string) []access.Permission {
	what.Namespace, what.Name = namespace, name
	return what.For("get", "patch")
}

// toTell is the permission that release and roll need to keep the reason. They work without it.
func toTell(namespace string) []access.Permission {
	return []access.Permission{{Verb: "create", Resource: schema.GroupResource{Resource: "events"}, Namespace: namespace}}
}

// ofSources is a permission on ConfigMaps or Secrets.
func ofSources(kind input.Kind) access.Permission {
	return access.Permission{Resource: schema.GroupResource{Resource: strings.ToLower(string(kind)) + "s"}}
}

// toRoll are the permissions of "lockstep roll": to read the workload, its sources and the
// installation key, and to change the workload. Without the record it works too.
func toRoll(kind kube.Kind, e *ask.Explanation, own ask.Own) []access.Permission {
	_, name, _ := strings.Cut(e.Workload, "/")
	all := onObject(access.ToKind(kind, access.Permission{}), e.Namespace, name)
	for _, u := range e.Inputs {
		if id, err := input.ParseSource(u.Input); err == nil && len(all) < mostAsked {
			source := ofSources(id.Kind)
			source.Namespace, source.Name = e.Namespace, id.Name
			all = append(all, source.For("get")...)
		}
	}
	annotations := map[string]string{}
	for _, s := range e.Settings {
		if s.On == "workload" {
			annotations[s.Key] = s.Value
		}
	}
	for _, listed := range (settings.Native{}).Intent(annotations, nil).Listed {
		if listed.IsGlob() {
			sources := ofSources(listed.Kind)
			sources.Namespace = e.Namespace
			all = append(all, sources.For("list")...)
		}
	}
	key := ofSources(input.KindSecret)
	key.Namespace, key.Name = cmp.Or(own.Namespace, usualNamespace), cmp.Or(own.Key, ask.DefaultKey)
	return append(all, key.For("get")...)
}
