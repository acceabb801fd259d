package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

func TestAdvised(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
		says   string
	}{
		"Namespace": {"the namespace is missing", fmt.Errorf("make the key: %w", &access.NoNamespaceError{Namespace: "own"}), "make the key: namespace own does not exist: create it, or name another one with --own-namespace"},
		"Record":    {"the name is taken", fmt.Errorf("write: %w", ledger.ErrForeignConfigMap), "rename it, or set another --state-name"},
		"Other":     {"nothing to add", errors.New("busy"), "busy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := advised(tc.err)
			if !errors.Is(got, tc.err) || !strings.HasSuffix(got.Error(), tc.says) {
				t.Errorf("%s: %v, want it to end with %q", tc.reason, got, tc.says)
			}
		})
	}
	if advised(nil) != nil {
		t.Error("no error is an error")
	}
}

// TestRevertedAdvice: commands that can be copied, and what helps against an operator.
func TestRevertedAdvice(t *testing.T) {
	t.Parallel()
	w := &kube.Workload{Identity: kube.Identity{Kind: kube.StatefulSet(), Key: kube.Key{GroupKind: kube.StatefulSet().GroupKind(), Namespace: "shop", Name: "db"}}}
	plain := revertedAdvice(w, true)
	for _, want := range []string{"lockstep release statefulset/db -n shop", "lockstep roll statefulset/db -n shop", "whatever their revision"} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q does not say %q", plain, want)
		}
	}
	if image := revertedAdvice(w, false); strings.Contains(image, "lockstep roll") || strings.Contains(image, "whatever their revision") || !strings.Contains(image, "lockstep release statefulset/db -n shop") {
		t.Errorf("of an image it says %q", image)
	}
	w.Owner = "Postgres/db"
	if owned := revertedAdvice(w, true); strings.Contains(plain, "evict") || !strings.Contains(owned, "Postgres/db") || !strings.Contains(owned, "strategy: evict") || !strings.Contains(owned, "--kind") {
		t.Errorf("of a workload that an operator controls it says %q", owned)
	}
}
