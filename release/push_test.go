package main_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

func TestMain(m *testing.M) { os.Exit(labtest.RunTests(m)) }

// A mistake costs one line that says which, exit code 1, and no time: nothing is
// compiled before the registry has been asked.
func TestPushSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	wantsCredentials := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	readsOnly := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	for name, c := range map[string]struct {
		image, config string
		want          string
	}{
		"no image":    {"", "", "IMAGE is not set"},
		"no registry": {"team/lockstep", "", "want a registry and a repository"},
		"no credentials": {
			wantsCredentials + "/team/lockstep", "",
			"no credentials for " + wantsCredentials + " (401 Unauthorized)",
		},
		"wrong credentials": {
			wantsCredentials + "/team/lockstep", login(wantsCredentials, "me", "wrong"),
			wantsCredentials + " refuses the credentials",
		},
		"no permission": {
			readsOnly + "/team/lockstep", login(readsOnly, "me", "right"),
			readsOnly + " refuses the credentials that the Docker configuration has for it (403 Forbidden)",
		},
		"nobody there": {"127.0.0.1:1/team/lockstep", "", "push 127.0.0.1:1/team/lockstep: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, out := t.TempDir(), filepath.Join(t.TempDir(), "images")
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
				Path: labtest.Binary(t, "./release"), Args: []string{"push", "--source=..", "--out=" + out, "--image=" + c.image},
				Env: []string{"DOCKER_CONFIG=" + config, "HOME=" + config, "REGISTRY_AUTH_FILE="},
			})
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("code %d, stdout %q, stderr %q; want 1 and one line with %q", code, stdout, stderr, c.want)
			}
			if strings.Contains(stderr, "wrong") || strings.Contains(stderr, "right") {
				t.Errorf("the password is in %q", stderr)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("images were built although they cannot be pushed")
			}
		})
	}
}

// TestImagesKeepOtherFiles: a directory with something else in it is refused, in one line
// and before anything is compiled: the directory of the checkout does not even exist.
func TestImagesKeepOtherFiles(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	file := filepath.Join(out, ".profile")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./release"), Args: []string{"images", "--source=" + filepath.Join(out, "none"), "--out=" + out},
	})
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "name a new or an empty directory") {
		t.Errorf("code %d, stdout %q, stderr %q; want 1 and one line that says what to do", code, stdout, stderr)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func serve(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// login is the configuration that "docker login" writes.
func login(registry, user, password string) string {
	return `{"auths": {"` + registry + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + `"}}}`
}

// TestBundleSaysWhatIsMissing: a release is made from a tag; a mistake costs one line, and no
// time. The directory of the checkout is a repository without one.
func TestBundleSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no tag":       {nil, "a release is made from a tag, and this commit has none: git tag v0.1.0, or say VERSION=v0.1.0"},
		"no version":   {[]string{"--version=90adcec"}, "VERSION=90adcec: want a v and a semantic version"},
		"no changelog": {[]string{"--version=v0.1.0"}, "CHANGELOG.md: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
				Path: labtest.Binary(t, "./release"), Args: append([]string{"bundle", "--source=" + root, "--out=" + filepath.Join(root, "dist")}, c.args...),
			})
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("code %d, stdout %q, stderr %q; want 1 and one line with %q", code, stdout, stderr, c.want)
			}
		})
	}
}
