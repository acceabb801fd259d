package cli

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	is := func(role mirror.Role, synced bool, err error) mirror.Status {
		return mirror.Status{Role: role, Synced: synced, Err: err}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
	record, namespaces := is(mirror.RoleRecord, true, nil), is(mirror.RoleSettings, true, nil)
	cases := map[string]struct {
		reason string
		all    []mirror.Status
		want   bool
	}{
		"Everything":       {"all is followed", []mirror.Status{namespaces, is(mirror.RoleSource, true, nil), is(mirror.RoleWorkload, true, nil), record}, true},
		"NoNamespace":      {"the labels choose no namespace yet: there is nothing to follow", []mirror.Status{namespaces, record}, true},
		"NoRecord":         {"what is given could not be remembered", []mirror.Status{namespaces, is(mirror.RoleRecord, false, nil)}, false},
		"SourcesRefused":   {"no kind of source can be read", []mirror.Status{is(mirror.RoleSource, false, forbidden), is(mirror.RoleWorkload, true, nil), record}, false},
		"OneKindRefused":   {"another kind of source can be", []mirror.Status{is(mirror.RoleSource, false, forbidden), is(mirror.RoleSource, true, nil), is(mirror.RoleWorkload, true, nil), record}, true},
		"WorkloadsAreLate": {"a list is not complete", []mirror.Status{is(mirror.RoleSource, true, nil), is(mirror.RoleWorkload, false, nil), record}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readiness(tc.all).OK; got != tc.want {
				t.Errorf("%s: ready is %t", tc.reason, got)
			}
		})
	}
}
