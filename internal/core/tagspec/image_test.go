package tagspec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

func TestParseImage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ written, host, path, spec string }{
		"busybox:1.34.*":                   {"busybox", "docker.io", "library/busybox", "1.34.*"},
		"team/app:latest":                  {"team/app", "docker.io", "team/app", "latest"},
		"localhost:5000/a/b:v*":            {"localhost:5000/a/b", "localhost:5000", "a/b", "v*"},
		"localhost/app:1":                  {"localhost/app", "localhost", "app", "1"},
		"registry.example/app:^1.4":        {"registry.example/app", "registry.example", "app", "^1.4"},
		"index.docker.io/nginx:1":          {"index.docker.io/nginx", "docker.io", "library/nginx", "1"},
		"[::1]:5000/app:1":                 {"[::1]:5000/app", "[::1]:5000", "app", "1"},
		"app:>=1 <3":                       {"app", "docker.io", "library/app", ">=1 <3"},
		`app:/v(?P<n>\d+)/`:                {"app", "docker.io", "library/app", `/v(?P<n>\d+)/`},
		`r.example:5000/app:/(?:a|b)@*\d/`: {"r.example:5000/app", "r.example:5000", "app", `/(?:a|b)@*\d/`},
	} {
		image, err := tagspec.ParseImage(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := struct{ written, host, path, spec string }{image.Repository.Written, image.Repository.Host, image.Repository.Path, image.Spec.String()}
		if got != want {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
		if image.String() != text {
			t.Errorf("%s became %s", text, image)
		}
	}
}

func TestImageThatIsRefused(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]tagspec.Reason{
		"":                                tagspec.NoTag,
		"busybox":                         tagspec.NoTag,
		"busybox:":                        tagspec.NoTag,
		"localhost:5000/a/b":              tagspec.NoTag,
		"busybox" + digest:                tagspec.HasDigest,
		"busybox:1.34" + digest:           tagspec.HasDigest,
		"r.example:5000/app" + digest:     tagspec.HasDigest,
		"Team/App:1":                      tagspec.BadRepository,
		":1":                              tagspec.BadRepository,
		"https://r.example/app:1":         tagspec.BadRepository,
		"r.example:port/app:1":            tagspec.BadRepository,
		strings.Repeat("a", 64) + ":1":    tagspec.BadRepository, // That is the ID of an image.
		"app:1:2":                         tagspec.BadTag,
		"app:(1)":                         tagspec.BadTag,
		strings.Repeat("a/", 600) + "b:1": tagspec.TooLarge,
		strings.Repeat("a/", 200) + "b:1": tagspec.BadRepository,
	} {
		_, err := tagspec.ParseImage(text)
		refused, ok := errors.AsType[*tagspec.RefusedError](err)
		if !ok || refused.Reason != want {
			t.Errorf("%.40q: got %v, want the reason %s", text, err, want)
		}
	}
}

func TestParseRepository(t *testing.T) {
	t.Parallel()
	got, err := tagspec.ParseRepository("nginx")
	want := tagspec.Repository{Written: "nginx", Host: "docker.io", Path: "library/nginx"}
	if err != nil || !cmp.Equal(got, want) || got.String() != "docker.io/library/nginx" {
		t.Errorf("nginx is %+v, error %v", got, err)
	}
	for _, text := range []string{"nginx:1", "", "a b"} {
		if got, err := tagspec.ParseRepository(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{"nginx:1", "localhost:5000/a:v*", "a:/b:/", "a@sha256:b", "[::1]:5000/a:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		image, err := tagspec.ParseImage(text)
		if err != nil {
			if _, ok := errors.AsType[*tagspec.RefusedError](err); !ok {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		if image.String() != text || image.Repository.Host == "" || image.Repository.Path == "" {
			t.Errorf("%q is read as %+v", text, image)
		}
	})
}
