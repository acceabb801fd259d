package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Permission is a permission that this process needs.
type Permission struct {
	Verb     string
	Resource schema.GroupResource
	// Kind is set where only the cluster knows the resource name of the kind; Resource is a
	// guess then.
	Kind schema.GroupKind
	// Namespace where it is needed; empty means everywhere.
	Namespace string
	// Name narrows the permission to one object.
	Name string
	// Follows is the resource, in the form for users, that the permission depends on: where that
	// isn't installed, the permission isn't missing.
	Follows string
	// Use is what the permission is needed for.
	Use string
	// Vital is true when nothing works without it. Main is true for the process's purpose:
	// without any of the main permissions the process is useless.
	Vital, Main bool
}

// For is the permission with each of the verbs. It isn't inlined, because each copy would take half
// a kilobyte.
//
//go:noinline
func (r Permission) For(verbs ...string) []Permission {
	all := make([]Permission, len(verbs))
	for i, verb := range verbs {
		all[i] = r
		all[i].Verb = verb
	}
	return all
}

// ToKind is the permission on the objects of a kind. For built-in kinds the guessed resource
// name is right.
func ToKind(kind kube.Kind, r Permission) Permission {
	plural, _ := meta.UnsafeGuessKindToResource(kind.GroupVersionKind)
	r.Resource = plural.GroupResource()
	if kind.Custom {
		r.Kind = kind.GroupKind()
	}
	return r
}

// String is the form for users: "patch deployments.apps in shop".
func (r Permission) String() string {
	where := "all namespaces"
	if r.Namespace != "" {
		where = r.Namespace
	}
	what := r.Resource.String()
	if r.Name != "" {
		what += "/" + r.Name
	}
	return fmt.Sprintf("%s %s in %s", r.Verb, what, where)
}

// named is the permission with the cluster's resource for its kind. For a kind that isn't
// installed, the guess stays.
func (r Permission) named(mapper meta.RESTMapper) Permission {
	if r.Kind.Empty() {
		return r
	}
	if mapping, err := mapper.RESTMapping(r.Kind); err == nil {
		r.Resource, r.Kind = mapping.Resource.GroupResource(), schema.GroupKind{}
	}
	return r
}

// Reviewer queries the API server, and knows its resources.
type Reviewer interface {
	client.Writer
	RESTMapper() meta.RESTMapper
}

// How often the API server is queried. A missing permission is checked again soon at first and
// then less and less often: it may stay missing, and every replica checks. Revoked permissions
// are noticed too.
const (
	askFirst   = 5 * time.Second
	askMissing = time.Minute
	askAll     = 5 * time.Minute
)

func patience() wait.Backoff {
	return wait.Backoff{Duration: askFirst, Factor: 2, Jitter: 0.1, Steps: 10, Cap: askMissing}
}

// Permissions knows which of this process's permissions are missing. Watches report their own
// missing permissions. This type covers writes that happen only occasionally, where a missing
// permission would be noticed too late.
type Permissions struct {
	// Report, if set, is called with the missing permissions after each check that the API server
	// answered.
	Report func(missing []Permission)

	client Reviewer
	needed []Permission

	mu      sync.Mutex
	known   bool
	missing []Permission
}

// NewPermissions makes Permissions that are unknown until Run.
func NewPermissions(c Reviewer, needed []Permission) *Permissions {
	return &Permissions{client: c, needed: needed}
}

// Run checks the permissions repeatedly until the context ends: all of them occasionally, and
// the missing ones in between.
func (r *Permissions) Run(ctx context.Context) error {
	backoff, asked := patience(), time.Time{}
	for {
		before, known := r.Missing()
		again := before
		if !known || time.Since(asked) >= askAll {
			again, asked = r.needed, time.Now()
		}
		r.ask(ctx, again)
		missing, known := r.Missing()
		if known && r.Report != nil {
			r.Report(missing)
		}
		if len(missing) != len(before) {
			backoff = patience()
		}
		pause := askAll
		if !known || len(missing) > 0 {
			pause = min(backoff.Step(), askAll-time.Since(asked))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// ask checks some of the permissions; the others are granted. Without a response, the previous
// result stays.
func (r *Permissions) ask(ctx context.Context, some []Permission) {
	everywhere := map[Permission]bool{}
	var missing []Permission
	for _, permission := range some {
		permission = permission.named(r.client.RESTMapper())
		allowed, err := r.granted(ctx, permission, everywhere)
		if err != nil {
			return
		}
		if !allowed {
			missing = append(missing, permission)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.missing = true, missing
}

// granted checks a permission in all namespaces first, if it is needed in several: one response
// can cover all of them.
func (r *Permissions) granted(ctx context.Context, permission Permission, everywhere map[Permission]bool) (bool, error) {
	wide := permission.everywhere()
	if r.count(wide) < 2 {
		return r.allowed(ctx, permission)
	}
	covered, known := everywhere[wide]
	if !known {
		var err error
		if covered, err = r.allowed(ctx, wide); err != nil {
			return false, err
		}
		everywhere[wide] = covered
	}
	if covered {
		return true, nil
	}
	return r.allowed(ctx, permission)
}

// everywhere is the same permission in all namespaces, whatever it is for.
func (r Permission) everywhere() Permission {
	return Permission{Verb: r.Verb, Resource: r.Resource, Kind: r.Kind, Name: r.Name}
}

// count is the number of namespaces in which a permission is needed.
func (r *Permissions) count(wide Permission) int {
	n := 0
	for _, needed := range r.needed {
		if needed.named(r.client.RESTMapper()).everywhere() == wide {
			n++
		}
	}
	return n
}

func (r *Permissions) allowed(ctx context.Context, permission Permission) (bool, error) {
	return allowed(ctx, r.client, permission)
}

// allowed asks whether the client's own user has a permission.
func allowed(ctx context.Context, c client.Writer, permission Permission) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: permission.attributes()}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// attributes is the permission as the API server expects it.
func (r Permission) attributes() *authorizationv1.ResourceAttributes {
	kind, sub, _ := strings.Cut(r.Resource.Resource, "/")
	return &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Resource.Group, Resource: kind, Subresource: sub, Namespace: r.Namespace, Name: r.Name,
	}
}

// Missing returns the permissions that are not granted, and whether the API server has responded
// yet.
func (r *Permissions) Missing() (missing []Permission, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing, r.known
}
