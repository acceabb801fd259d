package kubernetesreloader_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestNothingMayBeListed: a process that can't do anything ends at its start, as the original
// did, and names what its Role lacks. The kubelet starts it again, and kubectl shows that.
func TestNothingMayBeListed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		rules  []labtest.Rule
		args   []string
		want   []string
	}{
		"Nothing": {"no Role at all", nil, nil, []string{"configmaps", "secrets", "deployments", "daemonsets", "statefulsets"}},
		"Sources": {"without sources there are no changes", []labtest.Rule{patchWorkloads()}, nil, []string{"configmaps", "secrets"}},
		"Workloads": {
			"without workloads there is nothing to roll out",
			[]labtest.Rule{readSources(), patchState()},
			nil,
			[]string{"deployments", "daemonsets", "statefulsets"},
		},
		"Ignored": {
			"only an ignored kind of source may be listed", []labtest.Rule{
				{Groups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "get", "watch"}}, patchWorkloads(),
			}, []string{"--ignored-config-resource-types=v1.Secret"}, []string{"configmaps"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSiteAllowing(t, tc.rules...)
			program := s.start(t, tc.args...)
			if code := program.ExitCode(t, patience); code != 1 {
				t.Errorf("%s: exit code %d, want 1", tc.reason, code)
			}
			var resources []string
			for _, resource := range tc.want {
				resources = append(resources, resource+" in "+s.namespace)
			}
			for _, want := range []string{
				"Error: permission is missing: list and watch " + strings.Join(resources, ", ") + ": ",
				`forbidden: User "system:serviceaccount:` + s.namespace + ":" + s.account.Name + `" cannot`,
			} {
				if !strings.Contains(program.Stderr(), want) {
					t.Errorf("%s: the last words are %q, want %q", tc.reason, program.Stderr(), want)
				}
			}
		})
	}
}

// TestWrongToken: a token that the API server doesn't accept ends the process at its start, too.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := s.start(t, "--token=not-a-token")
	if code := program.ExitCode(t, patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "Error: the API server doesn't accept the credentials: check --token, "; !strings.Contains(program.Stderr(), want) {
		t.Errorf("the last words are %q, want %q", program.Stderr(), want)
	}
	if strings.Contains(program.Stderr()+program.Stdout(), "not-a-token") {
		t.Error("the token is in the output")
	}
}

// TestOneKindMayNotBeListed: the others are followed, and /readyz names the missing permission.
func TestOneKindMayNotBeListed(t *testing.T) {
	t.Parallel()
	configMaps, deployments := readSources(), patchWorkloads()
	configMaps.Resources, deployments.Resources = []string{"configmaps"}, []string{"deployments"}
	s := newSiteAllowing(t, configMaps, patchState(), deployments)
	s.createState(t, nil)
	port := labtest.FreePort(t)
	s.start(t, "--port="+strconv.Itoa(port))
	s.awaitReady(t, port, http.StatusOK,
		"[+] configmaps in "+s.namespace+": followed",
		"[-] secrets in "+s.namespace+": permission is missing: secrets is forbidden",
		"[+] deployments in "+s.namespace+": followed",
		"[-] statefulsets in "+s.namespace+": permission is missing: ",
		"[+] configmap "+stateName+": followed",
	)
	s.fence(t)
}

// TestPermissionsAreRevoked: a process that has done its work stays up, and continues when the
// permissions are granted again. Until then it isn't ready.
func TestPermissionsAreRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	port := labtest.FreePort(t)
	program := s.run(t, "--port="+strconv.Itoa(port))
	s.awaitReady(t, port, http.StatusOK)
	revoked := s.gate.answer(func(r *http.Request) bool { return r.Method == http.MethodGet }, always, status(http.StatusForbidden, "Forbidden"))
	s.gate.cut()
	s.awaitReady(t, port, http.StatusServiceUnavailable,
		"[-] configmaps in "+s.namespace+": permission is missing: the gate says Forbidden",
		"[-] secrets in "+s.namespace+": permission is missing: the gate says Forbidden",
		"[-] deployments in "+s.namespace+": permission is missing: the gate says Forbidden",
		"not ready",
	)
	s.gate.lift(revoked)
	s.awaitReady(t, port, http.StatusOK, "[+] configmaps in "+s.namespace, "[+] deployments in "+s.namespace, "[+] configmap "+stateName)
	s.fence(t)
	select {
	case <-program.Done():
		t.Fatal("the program has ended")
	default:
	}
}

// TestReadiness: without an API server the process is healthy, and not ready.
func TestReadiness(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.close()
	port := labtest.FreePort(t)
	s.start(t, "--port="+strconv.Itoa(port))
	s.awaitReady(t, port, http.StatusServiceUnavailable, "[-] deployments in "+s.namespace+": ", "not ready")
	if text, code := get(t, port, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("/healthz answers %d and %q", code, text)
	}
	s.gate.open()
	s.awaitReady(t, port, http.StatusOK, "[+] deployments in "+s.namespace+": followed")
	if text, _ := get(t, port, "/readyz"); text != "ok\n" {
		t.Errorf("/readyz answers %q", text)
	}
}

// awaitReady waits until /readyz has the code and its verbose form these texts.
func (s *site) awaitReady(t *testing.T, port, want int, texts ...string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		text, code := get(t, port, "/readyz?verbose")
		for _, part := range texts {
			if !strings.Contains(text, part) {
				return false, fmt.Sprintf("/readyz doesn't say %q, but %d:\n%s", part, code, text)
			}
		}
		return code == want, fmt.Sprintf("/readyz answers %d, want %d:\n%s", code, want, text)
	})
}
