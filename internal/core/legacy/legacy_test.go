package legacy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestNames holds what the original program made of these objects.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		apiVersion, kind, name   string
		wantKey, prefix, wantVar string
	}{
		{"v1", "ConfigMap", "my-config", "v1.ConfigMap_my-config", "_RELOADER_", "_RELOADER_CONFIGMAP_MY_CONFIG"},
		{"v1", "ConfigMap", "my.config", "v1.ConfigMap_my.config", "_RELOADER_", "_RELOADER_CONFIGMAP_MY_CONFIG"},
		{"v1", "Secret", "tls-1", "v1.Secret_tls-1", "_RELOADER_", "_RELOADER_SECRET_TLS_1"},
		{"v1", "ConfigMap", "a--b", "v1.ConfigMap_a--b", "_RELOADER_", "_RELOADER_CONFIGMAP_A_B"},
		{"test/v1", "SourceThing", "source", "test_v1.SourceThing_source", "_RELOADER_", "_RELOADER_SOURCETHING_SOURCE"},
		{"api!+", "type?/", "foo:~", "api_.type__foo_", "prefix", "PREFIX_TYPE_FOO_"},
	} {
		if got := legacy.StateKey(tc.apiVersion, tc.kind, tc.name); got != tc.wantKey {
			t.Errorf("StateKey(%q, %q, %q) = %q, want %q", tc.apiVersion, tc.kind, tc.name, got, tc.wantKey)
		}
		if got := legacy.Variable(tc.prefix, tc.kind, tc.name); got != tc.wantVar {
			t.Errorf("Variable(%q, %q, %q) = %q, want %q", tc.prefix, tc.kind, tc.name, got, tc.wantVar)
		}
	}
}

func TestSharedVariablesDiffer(t *testing.T) {
	t.Parallel()
	a := legacy.SourceVariable(input.ConfigMap("my-config"), true)
	b := legacy.SourceVariable(input.ConfigMap("my.config"), true)
	if a == b {
		t.Errorf("my-config and my.config share %s", a)
	}
}

func TestIntent(t *testing.T) {
	t.Parallel()
	words := legacy.Words{
		AlternativeConfigMap: "configmap.reloader.stakater.com/reload",
		StateName:            "reloader-state", Quiet: 5 * time.Second,
	}
	configMap := func(names ...string) (list []settings.Pattern) {
		for _, name := range names {
			list = append(list, settings.Pattern{Kind: input.KindConfigMap, Name: name})
		}
		return list
	}
	for name, tc := range map[string]struct {
		reason      string
		words       legacy.Words
		annotations map[string]string
		want        []settings.Pattern
	}{
		"None":       {"nothing asked for", words, nil, nil},
		"Spaces":     {"KR-8: spaces around names, empty elements and doubles", words, map[string]string{legacy.ConfigMapAnnotation: " a, b,,a "}, configMap("a", "b")},
		"Union":      {"KR-9: both annotations count", words, map[string]string{legacy.ConfigMapAnnotation: "a", "configmap.reloader.stakater.com/reload": "b"}, configMap("a", "b")},
		"OwnState":   {"the state is never a source", words, map[string]string{legacy.ConfigMapAnnotation: "reloader-state,a"}, configMap("a")},
		"NoPatterns": {"names were never patterns", words, map[string]string{legacy.ConfigMapAnnotation: "a*,b"}, configMap("b")},
		"Ignored":    {"--ignored-config-resource-types=v1.ConfigMap", legacy.Words{IgnoreConfigMaps: true}, map[string]string{legacy.ConfigMapAnnotation: "a"}, nil},
		"NotGiven":   {"an alternative that was not given is not read", legacy.Words{}, map[string]string{"configmap.reloader.stakater.com/reload": "b"}, nil},
		"Secret":     {"the other kind", words, map[string]string{legacy.SecretAnnotation: "s"}, []settings.Pattern{{Kind: input.KindSecret, Name: "s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.words.Intent(tc.annotations, nil)
			if diff := cmp.Diff(tc.want, got.Listed); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if wantMode := len(tc.want) > 0; wantMode != (got.Mode == settings.Follow) {
				t.Errorf("%s: mode %v", tc.reason, got.Mode)
			}
		})
	}
}

func TestIgnores(t *testing.T) {
	t.Parallel()
	words := legacy.Words{IgnoreSecrets: true}
	if !words.Ignores(input.KindSecret) || words.Ignores(input.KindConfigMap) {
		t.Error("only Secrets are to be ignored")
	}
}

// TestLongListsAreRead: a list of the original's users may be longer than other annotations,
// and one that is too long is reported instead of read in part.
func TestLongListsAreRead(t *testing.T) {
	t.Parallel()
	for count, tooMany := range map[int]bool{250: false, 2000: true} {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("a-long-name-of-a-source-%04d", i)
		}
		kept := settings.Limit(map[string]string{legacy.ConfigMapAnnotation: strings.Join(names, ",")})
		got := legacy.Words{}.Intent(kept, nil)
		if tooMany && (got.Mistakes.TooMany == "" || len(got.Listed) > 0 || got.Mode != settings.Follow) || !tooMany && (got.Mistakes.TooMany != "" || len(got.Listed) != count) {
			t.Errorf("of %d names %d are followed, and it says %q", count, len(got.Listed), got.Mistakes.TooMany)
		}
	}
}
