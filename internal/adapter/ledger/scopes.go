package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
)

// A record by workload supports more than Status for the feed.
var _ cluster.WorkloadMemory = (*Records)(nil)

// Begin records that a scope is followed, unless the record already lists it. Workloads created
// no later than newest existed before.
func (r *Records) Begin(scope cluster.Scope, newest time.Time) {
	if _, begun := r.Since(scope); begun {
		return
	}
	text, key := newest.UTC().Format(time.RFC3339), scopeKey(scope)
	if strings.HasPrefix(key, hashedWord) {
		text += " " + readableScope(scope) // a hashed key doesn't show its namespace
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shardWith(key).set(key, &text)
}

// Since is the time from which on every workload of a scope was created while the controller
// watched or was down; false when the scope isn't followed yet. An older workload without an
// entry may have run for a long time before it was followed.
func (r *Records) Since(scope cluster.Scope) (since time.Time, begun bool) {
	key := scopeKey(scope)
	r.mu.Lock()
	text, ok := r.shardWith(key).get(key)
	r.mu.Unlock()
	if !ok {
		return time.Time{}, false
	}
	text, _, _ = strings.Cut(text, " ")
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil
}

// scopeKey is the scope's key in a ConfigMap: "since.Deployment.apps_shop", with an empty
// namespace where all namespaces are watched together.
func scopeKey(s cluster.Scope) string {
	return shortKey(readableScope(s))
}

func readableScope(s cluster.Scope) string {
	return fmt.Sprintf("%s%s.%s_%s", sinceWord, s.Kind, s.Group, s.Namespace)
}
