package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// runResolve runs the command as a shell would, with Docker's configuration in a directory.
func runResolve(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), append([]string{"resolve"}, args...), Environment{
		Stdout: &out, Stderr: &err, Lookup: variables(map[string]string{"DOCKER_CONFIG": dir}),
	})
	return out.String(), err.String(), code
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := registrylab.Start(t.Context(), registrylab.Options{Dir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.PushIndex(t.Context(), "team/app", "1.9", "old"); err != nil {
		t.Fatal(err)
	}
	digest, err := s.PushIndex(t.Context(), "team/app", "1.10", "new")
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, s.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	for user, password := range map[string]string{"good": registrylab.Password, "bad": "hunter2"} {
		config := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, s.Address, registrylab.User, password)
		if err := os.Mkdir(filepath.Join(dir, user), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, user, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := s.Address + "/team/app"
	for _, c := range []struct {
		reason, user string
		args         []string
		out          string // all of stdout
		says         string // part of stderr, which is empty if this is
		code         int
	}{
		{"the image", "good", []string{image + ":1.*", "--registry-ca", ca}, image + ":1.10@" + digest + "\n", "", exitOK},
		{"the digest", "good", []string{image + ":1.10", "--registry-ca", ca, "-o", "digest"}, digest + "\n", "", exitOK},
		{"the tag", "good", []string{image + ":>=1.0", "--registry-ca", ca, "--output=tag"}, "1.10\n", "", exitOK},
		{"another file", "bad", []string{image + ":1.*", "--registry-ca", ca, "--docker-config", filepath.Join(dir, "good", "config.json")}, image + ":1.10@" + digest + "\n", "", exitOK},
		{"wrong credentials", "bad", []string{image + ":1.*", "--registry-ca", ca}, "", `answered 401 Unauthorized; log in with "docker login ` + s.Address, exitFailed},
		{"no credentials", "none", []string{image + ":1.10", "--registry-ca", ca}, "", "answered 401 Unauthorized", exitFailed},
		{"no such tag", "good", []string{image + ":2", "--registry-ca", ca}, "", "answered 404 Not Found", exitFailed},
		{"no match", "good", []string{image + ":2.*", "--registry-ca", ca}, "", "none of 2 matches 2.*; try other specs with --tags-from", exitFailed},
		{"no such platform", "good", []string{image + ":1.10", "--registry-ca", ca, "--platform", "linux/s390x"}, "", "supports linux/amd64, linux/arm64/v8, but not linux/s390x", exitFailed},
		{"an unknown certificate", "good", []string{image + ":1.10"}, "", "--registry-ca are for registries without a public certificate", exitFailed},
		{"no time", "good", []string{image + ":1.10", "--registry-ca", ca, "--timeout", "1ns"}, "", "not within 1ns", exitFailed},
		{"no image", "good", nil, "", "name one image", exitUsage},
		{"no tag", "good", []string{image}, "", "doesn't name a tag", exitUsage},
		{"a bad platform", "good", []string{image + ":1", "--platform", "arm"}, "", "want os/architecture", exitUsage},
		{"a bad output", "good", []string{image + ":1", "-o", "yaml"}, "", "want image, digest or tag", exitUsage},
		{"no file", "good", []string{image + ":1", "--registry-ca", "/none"}, "", "--registry-ca: open /none", exitUsage},
		{"no list", "good", []string{image + ":1", "--tags-from", "/none"}, "", "--tags-from: open /none", exitUsage},
		{"no timeout", "good", []string{image + ":1", "--timeout", "0s"}, "", "must be positive", exitUsage},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runResolve(t, filepath.Join(dir, c.user), c.args...)
			if stdout != c.out || code != c.code {
				t.Errorf("printed %q and exit code %d, want %q and %d; stderr %q", stdout, code, c.out, c.code, stderr)
			}
			if c.says == "" && stderr != "" || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "hunter2") {
				t.Errorf("stderr is %q, want %q in it", stderr, c.says)
			}
			if code == exitFailed && strings.Count(stderr, "\n") != 1 {
				t.Errorf("stderr is %q, want one line", stderr)
			}
		})
	}
	t.Run("one platform", func(t *testing.T) {
		t.Parallel()
		stdout, stderr, code := runResolve(t, filepath.Join(dir, "good"), image+":1.10", "--registry-ca", ca, "--platform", "linux/arm64")
		if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, image+":1.10@sha256:") || strings.Contains(stdout, digest) {
			t.Errorf("printed %q and exit code %d; stderr %q", stdout, code, stderr)
		}
	})
}

// TestResolveSaysWhenToTryAgain: a registry that wants to be left alone.
func TestResolveSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s, err := registrylab.Start(t.Context(), registrylab.Options{Dir: t.TempDir(), Progress: os.Stderr, Public: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.Spoil(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runResolve(t, t.TempDir(), s.Address+"/app:1", "--registry-ca", ca)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "answered 429 Too Many Requests; try again after ") {
		t.Errorf("printed %q and exit code %d; stderr %q", stdout, code, stderr)
	}
}

// TestResolveOffline: a spec can be tried on a list of tags, without any registry.
func TestResolveOffline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"lines": "1.4.0\n1.10.0\r\n\n 1.9.2\nlatest\n", "answer": `{"name":"app","tags":["1.4.0","1.10.0","latest"]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		spec, file, out, says string
		code                  int
	}{
		{"1.*.*", "lines", "1.10.0\n", "", exitOK},
		{"1.*.*", "answer", "1.10.0\n", "", exitOK},
		{"latest", "lines", "latest\n", "", exitOK},
		{"^2", "lines", "", "none of 4 tags matches ^2", exitFailed},
		{"2.*", "lines", "", "a star stands for digits", exitFailed},
		{"1.**", "lines", "", "contains two * in a row", exitUsage},
	} {
		stdout, stderr, code := runResolve(t, dir, "registry.invalid/app:"+c.spec, "--tags-from", filepath.Join(dir, c.file))
		if stdout != c.out || code != c.code || !strings.Contains(stderr, c.says) || c.says == "" && stderr != "" {
			t.Errorf("%s: printed %q and %q, exit code %d", c.spec, stdout, stderr, code)
		}
	}
}
