package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	half := []Check{{Name: "deployments", OK: true, Detail: "followed"}, {Name: "secrets", Detail: "permission is missing"}}
	const lines = "[+] deployments: followed\n[-] secrets: permission is missing\n"
	cases := map[string]struct {
		reason, path string
		ready        Readiness
		code         int
		text         string
	}{
		"Healthy":         {"the process answers", "/healthz", Readiness{}, http.StatusOK, "ok\n"},
		"Ready":           {"a machine asks", "/readyz", Readiness{OK: true, Checks: half}, http.StatusOK, "ok\n"},
		"ReadyVerbose":    {"a person asks", "/readyz?verbose", Readiness{OK: true, Checks: half}, http.StatusOK, lines + "ok\n"},
		"NotReady":        {"why is always said", "/readyz", Readiness{Checks: half}, http.StatusServiceUnavailable, lines + "not ready\n"},
		"NotReadyVerbose": {"in the same words", "/readyz?verbose", Readiness{Checks: half}, http.StatusServiceUnavailable, lines + "not ready\n"},
		"Elsewhere":       {"nothing else is served", "/", Readiness{OK: true}, http.StatusNotFound, "404 page not found\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, tc.path, http.NoBody)
			probes(func() Readiness { return tc.ready }).ServeHTTP(answer, request)
			if answer.Code != tc.code || answer.Body.String() != tc.text {
				t.Errorf("%s: %s answers %d %q, want %d %q", tc.reason, tc.path, answer.Code, answer.Body, tc.code, tc.text)
			}
		})
	}
}
