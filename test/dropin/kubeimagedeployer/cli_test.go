package kubeimagedeployer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// TestCommand: kube-image-deployer-cli prints the image and nothing else; what goes wrong
// is one line and an exit code.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	amd := s.push(t, "app:1.10", "two")
	s.push(t, "app:1.9", "one")
	arm, err := registrylab.ChildDigest("two", registrylab.Platforms()[1])
	if err != nil {
		t.Fatal(err)
	}
	index, err := s.registry.PushIndex(t.Context(), "app", "1.10", "two")
	if err != nil {
		t.Fatal(err)
	}
	app := s.at("app")
	cases := map[string]struct {
		reason string
		args   []string
		stdout string
		stderr string // a part, and nothing else where it is empty
		code   int
	}{
		"Glob":     {reason: "the highest number", args: []string{"--image", app, "--tag", "1.*"}, stdout: amd + "\n"},
		"Tag":      {reason: "a tag, one dash", args: []string{"-image=" + app, "-tag=1.10"}, stdout: amd + "\n"},
		"Platform": {reason: "the platform counts", args: []string{"-image", app, "-tag", "1.10", "-platform", "linux/arm64"}, stdout: app + "@" + arm + "\n"},
		"Index":    {reason: "every platform", args: []string{"-image", app, "-tag", "1.10", "-platform", "index"}, stdout: app + "@" + index + "\n"},
		"Missing":  {reason: "no such tag", args: []string{"-image", app, "-tag", "7"}, stderr: "Error: digest of " + app + ":7: ", code: 1},
		"NoMatch":  {reason: "no tag matches", args: []string{"-image", app, "-tag", "7.*"}, stderr: "none of 2 matches 7.*", code: 1},
		"NoChild":  {reason: "no such platform", args: []string{"-image", app, "-tag", "1.10", "-platform", "linux/s390x"}, stderr: "but not linux/s390x", code: 1},
		"NoTag":    {reason: "an argument is missing", args: []string{"-image", app}, stderr: "-tag", code: 2},
		"BadImage": {reason: "no image", args: []string{"-image", "A B", "-tag", "1"}, stderr: "Error: ", code: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
				Path: program(t, "kube-image-deployer-cli"), Args: tc.args, Dir: s.dir,
				Env: []string{"DOCKER_CONFIG=" + s.dir, "SSL_CERT_FILE=" + filepath.Join(s.dir, "ca.pem")},
			})
			if stdout != tc.stdout || code != tc.code || !strings.Contains(stderr, tc.stderr) || tc.stderr == "" && stderr != "" {
				t.Errorf("%s: exit %d, stdout %q, stderr %q", tc.reason, code, stdout, stderr)
			}
			if tc.code == 1 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: more than one line: %q", tc.reason, stderr)
			}
		})
	}
}

// TestUsage: a command line that cannot be understood ends with 2, and says why.
func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-unknown":                      "flag provided but not defined: -unknown",
		"-controller-watch-key a/b":     "Error: controller-watch-key",
		"-image-default-platform amd64": "Error: image-default-platform",
	} {
		_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: program(t, "kube-image-deployer"), Args: strings.Fields(args)})
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q", args, code, stderr)
		}
	}
}
