package kubernetesreloader

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/run"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	follows := func(role mirror.Role, resource string) mirror.Sync {
		return mirror.Sync{Resource: resource, Role: role, Synced: true}
	}
	refused := func(role mirror.Role, resource string) mirror.Sync {
		return mirror.Sync{Resource: resource, Role: role, Err: apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("why"))}
	}
	unauthorized := func(role mirror.Role, resource string) mirror.Sync {
		return mirror.Sync{Resource: resource, Role: role, Err: apierrors.NewUnauthorized("why")}
	}
	unwatched := refused(mirror.RoleWorkload, "deployments")
	unwatched.Synced = true
	for name, tc := range map[string]struct {
		reason string
		all    []mirror.Sync
		want   string
	}{
		"All": {"everything is followed", []mirror.Sync{follows(mirror.RoleSource, "configmaps"), follows(mirror.RoleWorkload, "deployments")}, ""},
		"OneKindEach": {"the others are followed", []mirror.Sync{
			follows(mirror.RoleSource, "configmaps"), refused(mirror.RoleSource, "secrets"),
			refused(mirror.RoleWorkload, "deployments"), follows(mirror.RoleWorkload, "daemonsets"),
		}, ""},
		"NoSource": {"nothing could ever change", []mirror.Sync{
			refused(mirror.RoleSource, "configmaps"), refused(mirror.RoleSource, "secrets"), follows(mirror.RoleWorkload, "deployments"),
		}, "permission is missing: list and watch configmaps, secrets: configmaps is forbidden: why"},
		"NoWorkload": {"nothing could be rolled out; all that is missing is named", []mirror.Sync{
			follows(mirror.RoleSource, "configmaps"), refused(mirror.RoleSource, "secrets"), refused(mirror.RoleWorkload, "deployments"),
		}, "permission is missing: list and watch secrets, deployments: "},
		"ListOnly": {"the permission to watch is missing", []mirror.Sync{follows(mirror.RoleSource, "configmaps"), unwatched}, "permission is missing: list and watch deployments: "},
		"NoCredentials": {"what is wrong is the token, not a Role", []mirror.Sync{
			unauthorized(mirror.RoleSource, "configmaps"), unauthorized(mirror.RoleWorkload, "deployments"),
		}, "the API server doesn't accept the credentials: check --token, "},
		"OneUnauthorized": {"a token that was renewed meanwhile", []mirror.Sync{
			unauthorized(mirror.RoleSource, "configmaps"), follows(mirror.RoleSource, "secrets"), follows(mirror.RoleWorkload, "deployments"),
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refusal(tc.all)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestReloaderFollowsItsToken: a token of a pod ends after an hour, and the kubelet replaces it
// earlier. The next minute's requests carry the new one.
func TestReloaderFollowsItsToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		sent := bearer{}
		config, err := clusterConfig(Options{}, func() (*rest.Config, error) {
			return &rest.Config{Host: "https://api", BearerToken: "first", BearerTokenFile: file, Transport: &sent}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"first", "second"} {
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			response, err := c.Get("https://api/version")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if sent.token != "Bearer "+token {
				t.Errorf("a request carries %q, want the token in the file: %s", sent.token, token)
			}
		}
	})
}

// bearer is a server that remembers the token of the last request.
type bearer struct{ token string }

func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	b.token = request.Header.Get("Authorization")
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestReloaderConfig(t *testing.T) {
	t.Parallel()
	outside := func() (*rest.Config, error) { return nil, errors.New("no pod") }
	if _, err := clusterConfig(Options{}, outside); err == nil {
		t.Error("neither --server nor a pod is no error")
	}
	all := Options{
		Cluster: Cluster{
			Server: "https://api", Token: "t", Username: "u", Password: "p",
			CAFile: "ca", ClientCertFile: "cert", ClientKeyFile: "key",
		},
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*Options)
		want   rest.Config
	}{
		"Token": {"the token comes first", func(*Options) {}, rest.Config{BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAFile: "ca"}}},
		"Basic": {"then name and password", func(o *Options) { o.Cluster.Token = "" }, rest.Config{Username: "u", Password: "p", TLSClientConfig: rest.TLSClientConfig{CAFile: "ca"}}},
		"Certificate": {"then the certificate", func(o *Options) { o.Cluster.Token, o.Cluster.Username = "", "" }, rest.Config{
			TLSClientConfig: rest.TLSClientConfig{CAFile: "ca", CertFile: "cert", KeyFile: "key"},
		}},
		"Insecure": {"a certificate is not checked against an authority that is not asked", func(o *Options) { o.Cluster.Insecure = true }, rest.Config{
			BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := all
			tc.change(&o)
			got, err := clusterConfig(o, outside)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Host, tc.want.QPS = "https://api", -1
			if got.String() != tc.want.String() || got.BearerToken != tc.want.BearerToken || got.Password != tc.want.Password {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want.String())
			}
		})
	}
}

// TestTakenPort: the error names this program's own flag.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	taken, err := listener.Address{Value: ":0"}.Listen("metrics")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	var stderr bytes.Buffer
	code := Run(t.Context(), []string{"--server", "https://127.0.0.1:1", "--token", "t", "--namespace", "shop", "--configmap", "state", "--port", port}, run.Environment{
		Stdout: io.Discard, Stderr: &stderr, Lookup: func(string) (string, bool) { return "", false }, Now: time.Now,
	})
	if want := "Error: listen for metrics on :" + port + ": bind: address already in use; change --port\n"; code != 1 || stderr.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}
