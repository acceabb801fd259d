package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is something that this process has to be allowed to do.
type Right struct {
	Verb     string
	Resource schema.GroupResource
	// Namespace is where; empty means everywhere.
	Namespace string
	// Name narrows the right to one object.
	Name string
	// Follows is the resource, as people spell it, that the right is of no use
	// without: where that is not installed nothing is missing.
	Follows string
	// Use is what the right is needed for.
	Use string
	// Vital is true when nothing works without it.
	Vital bool
}

// String is how people would ask for it: "patch deployments.apps in shop".
func (r Right) String() string {
	where := "all namespaces"
	if r.Namespace != "" {
		where = r.Namespace
	}
	return fmt.Sprintf("%s %s in %s", r.Verb, r.Resource, where)
}

// How often the API server is asked: a grant is noticed soon, and that one was
// taken away is noticed too.
const (
	askWhileMissing = 5 * time.Second
	askWhileGranted = 5 * time.Minute
)

// Rights knows which of the rights that this process needs are missing. Those
// that its watches need show in the watches themselves; this is about what is
// only written now and then, and would be noticed when it is too late.
type Rights struct {
	client client.Writer
	needed []Right

	mu      sync.Mutex
	known   bool
	missing []Right
}

// NewRights makes Rights that know nothing until Run.
func NewRights(c client.Writer, needed []Right) *Rights {
	return &Rights{client: c, needed: needed}
}

// Run asks the API server for each right, again and again until the context ends.
func (r *Rights) Run(ctx context.Context) error {
	for {
		pause := askWhileGranted
		if !r.ask(ctx) {
			pause = askWhileMissing
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// ask reports whether every right is granted. Without an answer, what was known
// before stands.
func (r *Rights) ask(ctx context.Context) bool {
	var missing []Right
	for _, right := range r.needed {
		allowed, err := r.allowed(ctx, right)
		if err != nil {
			return false
		}
		if !allowed {
			missing = append(missing, right)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.missing = true, missing
	return len(missing) == 0
}

func (r *Rights) allowed(ctx context.Context, right Right) (bool, error) {
	kind, sub, _ := strings.Cut(right.Resource.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Resource.Group, Resource: kind, Subresource: sub,
			Namespace: right.Namespace, Name: right.Name,
		},
	}}
	err := r.client.Create(ctx, review)
	return review.Status.Allowed, err
}

// Missing returns the rights that are not granted, and whether the API server has
// said so yet.
func (r *Rights) Missing() (missing []Right, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing, r.known
}
