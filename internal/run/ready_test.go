package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}}
	ok := func(name string, role mirror.Role) mirror.Sync {
		return mirror.Sync{Resource: name, Role: role, Synced: true}
	}
	bad := func(name string, role mirror.Role, err error) mirror.Sync {
		return mirror.Sync{Resource: name, Role: role, Err: err}
	}
	sources, workloads, record := ok("configmaps", mirror.RoleSource), ok("deployments", mirror.RoleWorkload), ok("record", mirror.RoleRecord)
	chosen := []mirror.Role{mirror.RoleSource, mirror.RoleWorkload} // namespaces are chosen by label
	cases := map[string]struct {
		reason string
		all    []mirror.Sync
		want   bool
		detail string // in the last check
		absent []mirror.Role
	}{
		"Everything":     {"all works", []mirror.Sync{sources, workloads, record}, true, "followed", nil},
		"NotListedYet":   {"the first list is not there", []mirror.Sync{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource}}, false, "waiting for the first list", nil},
		"Forbidden":      {"a missing permission keeps the others from nothing", []mirror.Sync{sources, workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, true, "permission is missing: secrets is forbidden", nil},
		"Revoked":        {"also one that was there", []mirror.Sync{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource, Synced: true, Err: forbidden}}, true, "permission is missing", nil},
		"NotInstalled":   {"a kind that the cluster does not have", []mirror.Sync{sources, workloads, record, bad("rollouts", mirror.RoleWorkload, noMatch)}, true, "not installed", nil},
		"Outage":         {"the API server does not answer", []mirror.Sync{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource, Synced: true, Err: errors.New("connection refused")}}, false, "connection refused", nil},
		"NoSource":       {"nothing to follow", []mirror.Sync{workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, false, "permission", nil},
		"NoWorkload":     {"nobody to move", []mirror.Sync{sources, record, bad("deployments", mirror.RoleWorkload, forbidden)}, false, "permission", nil},
		"NoneChosen":     {"the labels choose no namespace yet", []mirror.Sync{ok("namespaces", mirror.RoleSettings), record}, true, "followed", chosen},
		"ChosenRefused":  {"one is chosen, and no source can be read", []mirror.Sync{workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, false, "permission", chosen},
		"OnlySettings":   {"settings alone are no work", []mirror.Sync{ok("namespaces", mirror.RoleSettings), record}, false, "followed", nil},
		"NoRecord":       {"what was delivered cannot be known", []mirror.Sync{sources, workloads, bad("record", mirror.RoleRecord, forbidden)}, false, "permission", nil},
		"SwitchedOff":    {"what is switched off is not waited for", []mirror.Sync{workloads, record}, true, "followed", []mirror.Role{mirror.RoleSource}},
		"NothingAtAll":   {"no status is no readiness", nil, false, "", nil},
		"NamespacesGone": {"defaults of namespaces are optional", []mirror.Sync{sources, workloads, record, bad("namespaces", mirror.RoleSettings, forbidden)}, true, "permission", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Readiness(tc.all, tc.absent...)
			if got.OK != tc.want || len(got.Checks) != len(tc.all) {
				t.Fatalf("%s: %+v", tc.reason, got)
			}
			if n := len(got.Checks); n > 0 {
				last := got.Checks[n-1]
				if !strings.Contains(last.Detail, tc.detail) || last.OK != tc.all[n-1].Works() {
					t.Errorf("%s: the last check is %+v", tc.reason, last)
				}
			}
		})
	}
}

func TestKeyCheck(t *testing.T) {
	t.Parallel()
	if c := keyCheck(nil); c.OK || !strings.Contains(c.Detail, "waiting") {
		t.Errorf("before the first answer: %+v", c)
	}
	problem := errors.New("secrets is forbidden")
	if c := keyCheck(&problem); c.OK || !strings.Contains(c.Detail, "forbidden") {
		t.Errorf("after a refusal: %+v", c)
	}
}

// TestPermissionsOfKindsOfOneName: that one group's kind is not installed says nothing of
// the permissions to another group's kind of the same name.
func TestPermissionsOfKindsOfOneName(t *testing.T) {
	t.Parallel()
	further, err := kube.ParseKind("apps.kruise.io/v1beta1/StatefulSet=spec.template")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Reload: true, Scope: Scope{Namespaces: []string{"shop"}, Kinds: append(kube.Kinds(), further)}}
	followed := map[string]string{}
	for _, r := range o.permissions() {
		if r.Verb == "patch" {
			followed[r.Resource.String()] = r.Follows
		}
	}
	for resource, want := range map[string]string{
		"statefulsets.apps":           "statefulsets in shop",
		"statefulsets.apps.kruise.io": "statefulsets.apps.kruise.io in shop",
	} {
		if followed[resource] != want {
			t.Errorf("the permission to patch %s follows %q, want %q", resource, followed[resource], want)
		}
	}
}

// TestFollowingIsToldOnce: a kind that appears has first no error, and then a list.
func TestFollowingIsToldOnce(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	for _, s := range []mirror.Sync{
		{Resource: "rollouts", Err: &meta.NoKindMatchError{}},
		{Resource: "rollouts"},
		{Resource: "rollouts", Synced: true},
	} {
		ReportStatus(log, s)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "following") {
		t.Errorf("told %q, want once that it is followed", lines)
	}
}

// TestMissingPermissionsAreLogged: once, although they are checked again and again, and the end of it
// too. Of a kind that is not installed nothing is said.
func TestMissingPermissionsAreLogged(t *testing.T) {
	t.Parallel()
	var lines []string
	status := []mirror.Sync{{Resource: "deployments", Synced: true}, {Resource: "rollouts"}}
	report := missingLog(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), func() []mirror.Sync { return status })
	event := access.Permission{Verb: "create", Resource: resource("events.k8s.io", "events"), Use: "telling people"}
	patch := access.Permission{Verb: "patch", Resource: resource("apps", "deployments"), Follows: "deployments"}
	rollouts := access.Permission{Verb: "patch", Resource: resource("argoproj.io", "rollouts"), Follows: "rollouts"}
	for step, c := range []struct {
		missing []access.Permission
		want    []string
	}{
		{nil, nil},
		{[]access.Permission{event, rollouts}, []string{"is missing create events.events.k8s.io telling people"}},
		{[]access.Permission{event, rollouts}, nil},
		{[]access.Permission{event, patch}, []string{"is missing patch deployments.apps"}},
		{[]access.Permission{patch}, []string{"is granted create events.events.k8s.io"}},
		{nil, []string{"is granted patch deployments.apps"}},
	} {
		lines = nil
		report(c.missing)
		if len(lines) != len(c.want) {
			t.Errorf("step %d: %q, want %q", step, lines, c.want)
			continue
		}
		for i, want := range c.want {
			for word := range strings.FieldsSeq(want) {
				if !strings.Contains(lines[i], word) {
					t.Errorf("step %d: %q does not say %q", step, lines[i], word)
				}
			}
		}
	}
}
