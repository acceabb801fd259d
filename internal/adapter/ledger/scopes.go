package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
)

// A record by workload tells the feed more than whether it can be read.
var _ cluster.WorkloadMemory = (*Records)(nil)

// Begin notes that a scope is followed, unless that is on record already. Workloads
// that are not younger than newest were there before.
func (r *Records) Begin(scope cluster.Scope, newest time.Time) {
	if _, begun := r.Since(scope); begun {
		return
	}
	text, key := newest.UTC().Format(time.RFC3339), scopeKey(scope)
	if strings.HasPrefix(key, hashedWord) {
		text += " " + readableScope(scope) // the key does not tell whose it is
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shardWith(key).set(key, &text)
}

// Since is from when on every workload of a scope was made while the controller
// watched, or was down for a time; false when the scope is not followed yet. One
// that is older and has no entry may have run for long without being followed.
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

// scopeKey is the scope's key in a ConfigMap: "since.Deployment.apps_shop", with
// nothing after the underscore where all namespaces are watched together.
func scopeKey(s cluster.Scope) string {
	return shortKey(readableScope(s))
}

func readableScope(s cluster.Scope) string {
	return fmt.Sprintf("%s%s.%s_%s", sinceWord, s.Kind, s.Group, s.Namespace)
}
