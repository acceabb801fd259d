package tagspec_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

func TestReference(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct {
		reason    string
		text      string
		host      string
		tag, hash string
		spec      string
		allowed   bool
	}{
		"Bare":        {"latest is not a wish that anyone wrote", "nginx", "docker.io", "", "", "nginx:1.*", false},
		"Tag":         {"a wanted tag", "nginx:1.27", "docker.io", "1.27", "", "docker.io/library/nginx:1.*", true},
		"OtherTag":    {"a tag outside the spec", "nginx:2.0", "docker.io", "2.0", "", "nginx:1.*", false},
		"Digest":      {"of an unknown tag", "nginx@" + digest, "docker.io", "", digest, "nginx:1.*", true},
		"Both":        {"as Lockstep writes it", "host:5000/a/b:1.4@" + digest, "host:5000", "1.4", digest, "host:5000/a/b:1.*", true},
		"BothOther":   {"the digest of another tag", "host:5000/a/b:2.4@" + digest, "host:5000", "2.4", digest, "host:5000/a/b:1.*", false},
		"OtherRepo":   {"another repository", "host:5000/a/c:1.4", "host:5000", "1.4", "", "host:5000/a/b:1.*", false},
		"OtherServer": {"another registry", "ghcr.io/a/b:1.4", "ghcr.io", "1.4", "", "quay.io/a/b:1.*", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tagspec.ParseReference(tc.text)
			if err != nil || got.Repository.Host != tc.host || got.Tag != tc.tag || got.Digest != tc.hash {
				t.Errorf("%s: %+v, %v", tc.reason, got, err)
			}
			spec, err := tagspec.ParseImage(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if spec.Allows(got) != tc.allowed {
				t.Errorf("%s: allowed %t", tc.reason, !tc.allowed)
			}
		})
	}
	for _, text := range []string{"", "UPPER", "a b", "${IMAGE}", "nginx:", "nginx@sha256:12", "0.0_0/team/app", "a_b:5000/app"} {
		if got, err := tagspec.ParseReference(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
