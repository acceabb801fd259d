package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asked is an API server that answers questions for permissions, and notes them. A real one
// would not let us turn the clock.
type asked struct {
	client.Writer

	grants func(authorizationv1.ResourceAttributes) bool
	err    error

	mu  sync.Mutex
	all []string
}

func (a *asked) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SelfSubjectAccessReview)
	about := *review.Spec.ResourceAttributes
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, strings.TrimSpace(about.Verb+" "+about.Resource+" "+about.Namespace))
	review.Status.Allowed = a.grants(about)
	return a.err
}

// RESTMapper knows a kind whose resource nobody would guess.
func (a *asked) RESTMapper() meta.RESTMapper {
	kind := redis()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	resource := kind.GroupVersion().WithResource("redis")
	mapper.AddSpecific(kind, resource, resource, meta.RESTScopeNamespace)
	return mapper
}

func redis() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "db.example", Version: "v1", Kind: "Redis"}
}

// take returns what was asked since the last time.
func (a *asked) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

func permissionsIn(namespaces ...string) []Permission {
	needed := []Permission{{Verb: "patch", Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "own", Use: "the record"}}
	for _, ns := range namespaces {
		for _, kind := range []string{"deployments", "daemonsets"} {
			needed = append(needed, Permission{Verb: "patch", Resource: schema.GroupResource{Group: "apps", Resource: kind}, Namespace: ns, Follows: kind + " in " + ns})
		}
	}
	return needed
}

// TestOneAnswerCoversAllNamespaces: a permission that is granted everywhere is one question,
// however many namespaces it is needed in; only where it is not, each is asked about.
func TestOneAnswerCoversAllNamespaces(t *testing.T) {
	t.Parallel()
	server := &asked{grants: func(a authorizationv1.ResourceAttributes) bool {
		return a.Resource != "daemonsets" || a.Namespace == "shop"
	}}
	r := NewPermissions(server, permissionsIn("shop", "blog", "wiki"))
	r.ask(t.Context(), r.needed)
	want := []string{"patch configmaps own", "patch deployments", "patch daemonsets", "patch daemonsets shop", "patch daemonsets blog", "patch daemonsets wiki"}
	if got := server.take(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	missing, known := r.Missing()
	if fmt.Sprint(missing) != "[patch daemonsets.apps in blog patch daemonsets.apps in wiki]" || !known {
		t.Errorf("missing are %v (%t), want daemonsets in blog and wiki", missing, known)
	}
}

// TestNamedByTheCluster: how the resource of a kind is called is not guessed, unless the cluster
// does not have it.
func TestNamedByTheCluster(t *testing.T) {
	t.Parallel()
	server := &asked{grants: func(authorizationv1.ResourceAttributes) bool { return false }}
	guessed := func(kind, resource, ns string) Permission {
		return Permission{Verb: "patch", Resource: schema.GroupResource{Group: "db.example", Resource: resource}, Kind: schema.GroupKind{Group: "db.example", Kind: kind}, Namespace: ns}
	}
	r := NewPermissions(server, []Permission{guessed("Redis", "redises", "shop"), guessed("Redis", "redises", "blog"), guessed("Valkey", "valkeys", "shop")})
	r.ask(t.Context(), r.needed)
	if got, want := server.take(), []string{"patch redis", "patch redis shop", "patch redis blog", "patch valkeys shop"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if missing, _ := r.Missing(); fmt.Sprint(missing) != "[patch redis.db.example in shop patch redis.db.example in blog patch valkeys.db.example in shop]" {
		t.Errorf("missing are %v", missing)
	}
}

// TestMissingPermissionsAreAskedForLessAndLess: what is missing for good costs next to
// nothing; all permissions are asked for now and then; a grant is noticed.
func TestMissingPermissionsAreAskedForLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var granted atomic.Bool
		server := &asked{grants: func(a authorizationv1.ResourceAttributes) bool { return granted.Load() || a.Resource != "daemonsets" }}
		r := NewPermissions(server, permissionsIn("shop"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(askFirst / 2)
		if first := server.take(); len(first) != 3 {
			t.Errorf("asked for %q at first, want all three", first)
		}
		time.Sleep(askAll - askFirst)
		again := server.take()
		if len(again) > 9 || slices.ContainsFunc(again, func(q string) bool { return q != "patch daemonsets shop" }) {
			t.Errorf("asked %d times in five minutes: %q; want the missing one, less and less often", len(again), again)
		}
		time.Sleep(askMissing)
		if all := server.take(); !slices.Contains(all, "patch configmaps own") {
			t.Errorf("asked for %q, want all of them after five minutes", all)
		}
		granted.Store(true)
		time.Sleep(askMissing + askMissing/5)
		if missing, known := r.Missing(); len(missing) != 0 || !known {
			t.Errorf("missing are %v a minute after the grant", missing)
		}
		server.take()
		time.Sleep(askAll - 2*askMissing)
		if idle := server.take(); len(idle) != 0 {
			t.Errorf("asked for %q although everything is granted", idle)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNoAnswer: what was known before stands, and the question is asked again.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	server := &asked{grants: func(authorizationv1.ResourceAttributes) bool { return false }}
	r := NewPermissions(server, permissionsIn("shop"))
	r.ask(t.Context(), r.needed)
	before, _ := r.Missing()
	server.err = errors.New("the API server is down")
	server.grants = func(authorizationv1.ResourceAttributes) bool { return true }
	r.ask(t.Context(), r.needed)
	if after, known := r.Missing(); len(after) != len(before) || !known {
		t.Errorf("missing are %v after no answer, %v before", after, before)
	}
}
