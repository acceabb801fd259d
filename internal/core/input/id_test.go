package input_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

func TestParseSource(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   input.ID // zero when the text must be refused
	}{
		"ConfigMap":    {"as annotations spell it", "configmap/app", input.ConfigMap("app")},
		"Secret":       {"as annotations spell it", "secret/db", input.Secret("db")},
		"KindsCase":    {"people copy kinds from manifests", "ConfigMap/app", input.ConfigMap("app")},
		"Glob":         {"patterns are names until they are matched", "secret/db-*", input.Secret("db-*")},
		"NoKind":       {"a bare name could be either", "app", input.ID{}},
		"NoName":       {"a kind alone names nothing", "configmap/", input.ID{}},
		"Image":        {"an image is an input and no source", "image/web", input.ID{}},
		"OtherKind":    {"only two kinds are sources", "deployment/web", input.ID{}},
		"Plural":       {"one spelling", "configmaps/app", input.ID{}},
		"Namespaced":   {"a pod reads its own namespace only", "configmap/shop/app", input.ID{}},
		"Empty":        {"nothing is no source", "", input.ID{}},
		"OnlySlash":    {"nothing is no source", "/", input.ID{}},
		"KindSpelling": {"Turkish dotless i is not an i", "confıgmap/app", input.ID{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := input.ParseSource(tc.text)
			if (err != nil) != (tc.want == input.ID{}) || got != tc.want {
				t.Fatalf("%s: ParseSource(%q) = %+v, %v, want %+v", tc.reason, tc.text, got, err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), "configmap") {
				t.Errorf("the error %q does not say what is accepted", err)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   input.ID // zero when the text must be refused
	}{
		"ConfigMap": {"every kind of input has an identity", "configmap/app", input.ConfigMap("app")},
		"Secret":    {"every kind of input has an identity", "secret/db", input.Secret("db")},
		"Image":     {"by the container that runs it", "image/web", input.Image("web")},
		"OtherKind": {"a kind of a newer program", "volume/data", input.ID{}},
		"NoName":    {"a kind alone names nothing", "image/", input.ID{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := input.ParseID(tc.text)
			if (err != nil) != (tc.want == input.ID{}) || got != tc.want {
				t.Fatalf("%s: ParseID(%q) = %+v, %v, want %+v", tc.reason, tc.text, got, err, tc.want)
			}
			if err == nil && got.String() != tc.text {
				t.Errorf("%s: written as %q", tc.reason, got)
			}
		})
	}
}

// FuzzParseSource: what is accepted is written so that it is read the same.
func FuzzParseSource(f *testing.F) {
	f.Add("configmap/app")
	f.Add("SECRET/db-*")
	f.Add("configmap//")
	f.Add("secret/\x00,~=")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := input.ParseSource(text)
		if err != nil {
			return
		}
		if again, err := input.ParseSource(s.String()); err != nil || again != s {
			t.Errorf("%q is read as %+v and then as %+v, %v", text, s, again, err)
		}
	})
}
