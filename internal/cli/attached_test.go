package cli_test

import (
	"strings"
	"testing"
)

// TestAttachSaysWhenNothingHadToBeDone, and says it only then.
func TestAttachSaysWhenNothingHadToBeDone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	steps := []struct {
		reason, args string
		says         []string
		idle         bool
	}{
		{"the first time", "attach deploy/web cm/app", []string{"configmap/app attached to ReplicaSet/web-"}, false},
		{"one of two is new", "attach deploy/web cm/app secret/db", []string{"configmap/app is attached already to ReplicaSet/web-", "secret/db attached to"}, false},
		{"none is new", "attach deploy/web cm/app secret/db", []string{"secret/db is attached already to"}, true},
	}
	for _, step := range steps {
		got := s.run(t, strings.Fields(step.args)...)
		for _, want := range step.says {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: %q is not in %q", step.reason, want, got.stdout)
			}
		}
		if got.code != 0 || strings.HasSuffix(got.stdout, "\nthere is nothing to do\n") != step.idle {
			t.Errorf("%s: %+v", step.reason, got)
		}
	}
}
