package labtest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"
)

// namespaceTimeout bounds the wait for a namespace's service account.
const namespaceTimeout = 5 * time.Minute

// Namespace creates a namespace for one test, in which pods can be created at
// once, and returns its name. It is deleted, without waiting, when the test ends.
func Namespace(t testing.TB, cluster *Cluster) string {
	t.Helper()
	name := objectName(t.Name())
	manifest := "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}"
	if _, err := cluster.api.create(t.Context(), "/api/v1/namespaces", manifest); err != nil {
		t.Fatalf("create namespace for the test: %v", err)
	}
	t.Cleanup(func() { cluster.forget(t, "/api/v1/namespaces/"+name) })
	Eventually(t, namespaceTimeout, func() (bool, string) {
		err := cluster.hasServiceAccount(t.Context(), name)
		return err == nil, "the namespace has no service account: " + errorText(err)
	})
	return name
}

// forget deletes an object of a test that has ended. A failure is logged but doesn't fail
// the test: the whole control plane is removed soon.
func (c *Cluster) forget(t testing.TB, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := c.api.delete(ctx, path); err != nil {
		t.Logf("clean up: %v", err)
	}
}

// objectName derives a unique name from the test's name, such as reload-one-rollout-k3vqnx
// for TestReload/one_rollout.
func objectName(test string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	kept = strings.Trim(kept[:min(len(kept), 40)], "-")
	return kept + "-" + strings.ToLower(rand.Text()[:6])
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
