package kubernetesreloader_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
)

// TestExitCodes needs no cluster.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason         string
		args           string
		code           int
		stdout, stderr string
	}{
		"Help":        {"asked for", "--help", 0, "--coalesce-period", ""},
		"HelpFirst":   {"before anything else is looked at", "--port=x --help", 0, "--coalesce-period", ""},
		"Version":     {"asked for", "--version", 0, labtest.Version, ""},
		"NoNamespace": {"a required flag is missing", "--configmap=x", 1, "", "missing required arguments: namespace"},
		"Nothing":     {"both are missing, and the usage is shown", "", 1, "", "--alternative-secret-annotation"},
		"BadPeriod":   {"no number", "--namespace=n --configmap=c --coalesce-period=5s", 1, "", "--coalesce-period"},
		"NoCluster":   {"neither --server nor a pod", "--namespace=n --configmap=c", 1, "", "no cluster"},
		"BadCA":       {"a file that is not there", "--namespace=n --configmap=c --server=https://127.0.0.1:1 --cacert=/nowhere", 1, "", "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := []string{"KUBERNETES_SERVICE_HOST=", "KUBERNETES_SERVICE_PORT="}
			for path, args := range map[string][]string{
				program(t):  strings.Fields(tc.args),
				lockstep(t): append([]string{"kubernetes-reloader"}, strings.Fields(tc.args)...),
			} {
				stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: path, Args: args, Env: outside})
				if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
					t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d, %q, %q", tc.reason, code, stdout, stderr, tc.code, tc.stdout, tc.stderr)
				}
			}
		})
	}
}

// TestMetrics asks at the port of the flag and of the variable.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	port := labtest.FreePort(t)
	s.run(t, "--port="+strconv.Itoa(port))
	s.fence(t)
	metrics, code := get(t, port, "/metrics")
	if code != http.StatusOK || !strings.Contains(metrics, "\nup 1\n") {
		t.Errorf("/metrics answers %d without up 1:\n%s", code, metrics)
	}
	// A rollout is seen before it is counted.
	labtest.Eventually(t, patience, func() (bool, string) {
		metrics, _ := get(t, port, "/metrics")
		want := `lockstep_reloads_total{kind="Deployment",namespace="` + s.namespace + `"`
		return strings.Contains(metrics, want), fmt.Sprintf("/metrics does not count reloads by %s:\n%s", want, metrics)
	})
	for _, path := range []string{"/", "/health", "/metricsx"} {
		if _, code := get(t, port, path); code != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", path, code)
		}
	}
	other := labtest.FreePort(t)
	labtest.StartCommand(t, labtest.Command{
		Path: program(t), Env: []string{"PORT=" + strconv.Itoa(other)},
		Args: []string{"--namespace=n", "--configmap=c", "--server=http://127.0.0.1:1"},
	})
	get(t, other, "/metrics")
}

// get asks until somebody answers.
func get(t *testing.T, port int, path string) (body string, code int) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		body, code = string(text), response.StatusCode
		return err == nil, fmt.Sprintf("the response %d is cut short: error %v, read\n%s", code, err, body)
	})
	return body, code
}

// TestCredentials reaches the API server itself, in each way that the original
// could be told.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	admin := load(t, s.cluster.Kubeconfig())
	file := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca", s.config.CAData)
	for name, args := range map[string][]string{
		"CA":                {"--cacert", ca, "--token=" + s.config.BearerToken},
		"Insecure":          {"--insecure-skip-tls-verify", "--token", s.config.BearerToken},
		"ClientCertificate": {"--certificateAuthority=" + ca, "--cert", file("cert", admin.CertData), "--key", file("key", admin.KeyData)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inprocess.Start(t, inprocess.Command{
				Args: append([]string{"kubernetes-reloader", "--port=0", "--namespace", s.namespace, "--configmap", stateName, "-s", s.cluster.Server()}, args...),
			})
			awaitLog(t, r, `msg=following resource="deployments in`)
			awaitLog(t, r, `msg=following resource="configmap `+stateName)
		})
	}
}

// TestIgnoredTypes: what is ignored is not even listed, and its digests stay.
func TestIgnoredTypes(t *testing.T) {
	t.Parallel()
	s := newBareSite(t)
	s.createState(t, map[string]string{"v1.Secret_web": sum("MA=="), "v1.ConfigMap_web": sum("0")})
	secret, d := s.secret("web", "1"), s.deployment("web", "web")
	d.Annotations[secretAnnotation] = "web"
	s.create(t, secret, s.configMap("web", "1"), d)
	s.start(t, "--ignored-config-resource-types", "v1.Secret")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("1")})
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	if got := s.state(t)["v1.Secret_web"]; got != sum("MA==") {
		t.Errorf("the digest of an ignored kind became %q", got)
	}
	if asked := s.gate.seen(func(c call) bool { return strings.HasSuffix(c.path, "/secrets") }); len(asked) > 0 {
		t.Errorf("secrets were asked for: %v", asked)
	}
}
