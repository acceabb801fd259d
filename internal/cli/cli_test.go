package cli

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// variables is an environment of given variables.
func variables(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		return value, ok
	}
}

func TestSetFromEnvironment(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   time.Duration
		says   string // of the error, empty when there must be none
	}{
		"Default":  {"neither flag nor variable", nil, nil, time.Minute, ""},
		"Variable": {"the variable of the flag", nil, map[string]string{"LOCKSTEP_MAX_DELAY": "5s"}, 5 * time.Second, ""},
		"FlagWins": {"who types a flag means it", []string{"--max-delay=7s"}, map[string]string{"LOCKSTEP_MAX_DELAY": "5s"}, 7 * time.Second, ""},
		"Bad":      {"the variable and its value are named", nil, map[string]string{"LOCKSTEP_MAX_DELAY": "soon"}, 0, `LOCKSTEP_MAX_DELAY="soon"`},
		"Others":   {"variables of others mean nothing", nil, map[string]string{"MAX_DELAY": "5s", "LOCKSTEP_PORT": "tcp://10.0.0.1:80"}, time.Minute, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			got := fs.Duration("max-delay", time.Minute, "")
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := setFromEnvironment(fs, Environment{Lookup: variables(tc.env), Stderr: io.Discard})
			_, usage := errors.AsType[usageError](err)
			if usage != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if err == nil && *got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, *got, tc.want)
			}
		})
	}
}

func TestRunSaysHowToFindACluster(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	code := Run(t.Context(), []string{"controller", "--kubeconfig", missing}, Environment{Stdout: &stdout, Stderr: &stderr, Lookup: variables(nil)})
	if code != exitUsage || !strings.Contains(stderr.String(), missing) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d and %q, want 2 and one line that names the file", code, stderr.String())
	}
}

// Who sets KUBECONFIG means no other cluster.
func TestKubeconfigVariableWithoutFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", missing)
	var stderr bytes.Buffer
	code := Run(t.Context(), []string{"controller"}, Environment{Stdout: io.Discard, Stderr: &stderr, Lookup: variables(nil)})
	if code != exitUsage || !strings.Contains(stderr.String(), "KUBECONFIG="+missing+": no such file") {
		t.Errorf("exit code %d and %q", code, stderr.String())
	}
}

func TestOwnNamespace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, flag string
		env          map[string]string
		want         string
	}{
		"Flag":     {"the flag wins", "a", map[string]string{"POD_NAMESPACE": "b"}, "a"},
		"Variable": {"then the pod's own", "", map[string]string{"POD_NAMESPACE": "b"}, "b"},
		"Default":  {"outside of a pod there is a default", "", map[string]string{"POD_NAMESPACE": ""}, "lockstep-system"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ownNamespace(tc.flag, variables(tc.env)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}}
	ok := func(name string, role mirror.Role) mirror.Status {
		return mirror.Status{Resource: name, Role: role, Synced: true}
	}
	bad := func(name string, role mirror.Role, err error) mirror.Status {
		return mirror.Status{Resource: name, Role: role, Err: err}
	}
	sources, workloads, record := ok("configmaps", mirror.RoleSource), ok("deployments", mirror.RoleWorkload), ok("record", mirror.RoleRecord)
	chosen := []mirror.Role{mirror.RoleSource, mirror.RoleWorkload} // namespaces are chosen by label
	cases := map[string]struct {
		reason string
		all    []mirror.Status
		want   bool
		detail string // in the last check
		absent []mirror.Role
	}{
		"Everything":     {"all works", []mirror.Status{sources, workloads, record}, true, "followed", nil},
		"NotListedYet":   {"the first list is not there", []mirror.Status{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource}}, false, "waiting for the first list", nil},
		"Forbidden":      {"a missing permission keeps the others from nothing", []mirror.Status{sources, workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, true, "permission is missing: secrets is forbidden", nil},
		"Revoked":        {"also one that was there", []mirror.Status{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource, Synced: true, Err: forbidden}}, true, "permission is missing", nil},
		"NotInstalled":   {"a kind that the cluster does not have", []mirror.Status{sources, workloads, record, bad("rollouts", mirror.RoleWorkload, noMatch)}, true, "not installed", nil},
		"Outage":         {"the API server does not answer", []mirror.Status{sources, workloads, record, {Resource: "secrets", Role: mirror.RoleSource, Synced: true, Err: errors.New("connection refused")}}, false, "connection refused", nil},
		"NoSource":       {"nothing to follow", []mirror.Status{workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, false, "permission", nil},
		"NoWorkload":     {"nobody to move", []mirror.Status{sources, record, bad("deployments", mirror.RoleWorkload, forbidden)}, false, "permission", nil},
		"NoneChosen":     {"the labels choose no namespace yet", []mirror.Status{ok("namespaces", mirror.RoleSettings), record}, true, "followed", chosen},
		"ChosenRefused":  {"one is chosen, and no source can be read", []mirror.Status{workloads, record, bad("secrets", mirror.RoleSource, forbidden)}, false, "permission", chosen},
		"OnlySettings":   {"settings alone are no work", []mirror.Status{ok("namespaces", mirror.RoleSettings), record}, false, "followed", nil},
		"NoRecord":       {"what was delivered cannot be known", []mirror.Status{sources, workloads, bad("record", mirror.RoleRecord, forbidden)}, false, "permission", nil},
		"SwitchedOff":    {"what is switched off is not waited for", []mirror.Status{workloads, record}, true, "followed", []mirror.Role{mirror.RoleSource}},
		"NothingAtAll":   {"no status is no readiness", nil, false, "", nil},
		"NamespacesGone": {"defaults of namespaces are optional", []mirror.Status{sources, workloads, record, bad("namespaces", mirror.RoleSettings, forbidden)}, true, "permission", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readiness(tc.all, tc.absent...)
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

func TestAllKinds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		flags  []string
		says   string // empty when it is accepted
	}{
		"None":         {"the kinds that are followed anyway", nil, ""},
		"Further":      {"one more, and another", []string{"example.com/v1/Worker=spec.template", "example.com/v1/Widget=spec.template"}, ""},
		"SameName":     {"another group's kind is another kind", []string{"example.com/v1/Deployment=spec.template"}, ""},
		"BuiltIn":      {"it would be watched twice", []string{"apps/v1/Deployment=spec.template"}, "followed already, as apps/v1/Deployment=spec.template"},
		"OtherVersion": {"another version is the same object", []string{"apps/v1beta1/Deployment=spec.template"}, "followed already"},
		"Twice":        {"two paths of one kind", []string{"example.com/v1/Worker=spec.a", "example.com/v1/Worker=spec.b"}, "as example.com/v1/Worker=spec.a"},
		"Garbled":      {"not a kind", []string{"Worker"}, "--kind: parse kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds, err := allKinds(tc.flags)
			if tc.says == "" {
				if err != nil || len(kinds) != len(kube.Kinds())+len(tc.flags) {
					t.Errorf("%s: %v, %v", tc.reason, kinds, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v, want one that says %q", tc.reason, err, tc.says)
			}
		})
	}
}

// TestRightsOfKindsOfOneName: that one group's kind is not installed says nothing of
// the rights to another group's kind of the same name.
func TestRightsOfKindsOfOneName(t *testing.T) {
	t.Parallel()
	kinds, err := allKinds([]string{"apps.kruise.io/v1beta1/StatefulSet=spec.template"})
	if err != nil {
		t.Fatal(err)
	}
	followed := map[string]string{}
	for _, r := range (&controllerOptions{reload: true, watched: []string{"shop"}}).rights(kinds) {
		if r.Verb == "patch" {
			followed[r.Resource.String()] = r.Follows
		}
	}
	for resource, want := range map[string]string{
		"statefulsets.apps":           "statefulsets in shop",
		"statefulsets.apps.kruise.io": "statefulsets.apps.kruise.io in shop",
	} {
		if followed[resource] != want {
			t.Errorf("the right to patch %s follows %q, want %q", resource, followed[resource], want)
		}
	}
}

// TestFollowingIsToldOnce: a kind that appears has first no error, and then a list.
func TestFollowingIsToldOnce(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	for _, s := range []mirror.Status{
		{Resource: "rollouts", Err: &meta.NoKindMatchError{}},
		{Resource: "rollouts"},
		{Resource: "rollouts", Synced: true},
	} {
		reportStatus(log, s)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "following") {
		t.Errorf("told %q, want once that it is followed", lines)
	}
}
