package settings_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unsafe"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestLimit: whatever a tenant writes, little of it is kept, and its parser reports the rest.
func TestLimit(t *testing.T) {
	t.Parallel()
	many := func(n int, prefix, value string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint(prefix, i)] = value
		}
		return all
	}
	long := strings.Repeat("x", 250<<10)
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		says        string // in TooMany or a mistake
	}{
		"Reload":     {"a list that is too long", map[string]string{settings.Reload: long}, "lockstep.dev/reload is longer than 20 KiB"},
		"Quiet":      {"another value that is too long", map[string]string{settings.Quiet: long}, "isn't valid"},
		"Image":      {"an image that is too long", map[string]string{settings.ImagePrefix + "app": "app:" + long}, "take more than 16 KiB"},
		"LongImage":  {"an image that is too long for its parser", map[string]string{settings.ImagePrefix + "app": "app:" + long[:2000]}, "image.lockstep.dev/app"},
		"LongImages": {"images that are too long together", many(128, settings.ImagePrefix+"c", "app:"+long[:1000]), "take more than 16 KiB"},
		"Containers": {"thousands of containers", many(9000, settings.ImagePrefix+"c", "app:1.*"), "more than 128 of its annotations name a container"},
		"Platforms":  {"thousands of platforms", many(9000, settings.PlatformPrefix+"c", "linux/amd64"), "more than 128 of its annotations name a container"},
		"Misspelt":   {"thousands of unknown keys", many(9000, settings.Prefix+"relaod", long[:20]), "lockstep.dev/relaod0"},
		"LongValues": {"unknown keys with long values", many(16, settings.Prefix+"relaod", long), "lockstep.dev/relaod0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := settings.Limit(maps.Clone(tc.annotations))
			size := 0
			for key, value := range kept {
				size += len(key) + len(value)
				if whole := tc.annotations[key]; len(value) < len(whole) && unsafe.StringData(value) == unsafe.StringData(whole) {
					t.Errorf("%s: the cut value of %s keeps the whole one in memory", tc.reason, key)
				}
			}
			if size > 24<<10 {
				t.Errorf("%s: %d bytes are kept, want at most 24 KiB", tc.reason, size)
			}
			in := settings.ForWorkload(kept, nil, settings.Defaults{})
			said := fmt.Sprint(in.Mistakes.TooMany, in.Mistakes)
			if !strings.Contains(said, tc.says) || len(said) > 1000 {
				t.Errorf("%s: it says %q, want %q", tc.reason, said, tc.says)
			}
			if len(in.Images) > 0 {
				t.Errorf("%s: %d images are followed, want none", tc.reason, len(in.Images))
			}
		})
	}
}

// TestLimitKeepsTheRest: settings within the bounds stay as they are.
func TestLimitKeepsTheRest(t *testing.T) {
	t.Parallel()
	all := map[string]string{settings.Reload: "auto", settings.Hold: "until Monday", settings.ImagePrefix + "app": "app:1.*", settings.Enforce: "true"}
	if kept := settings.Limit(maps.Clone(all)); !maps.Equal(all, kept) {
		t.Errorf("of %v is kept %v", all, kept)
	}
}

// TestLimitKeepsKnownKeys: misspelt keys, however many, don't displace those that are known.
func TestLimitKeepsKnownKeys(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for i := range 100 {
		all[fmt.Sprint(settings.Prefix, "a", i)] = ""
	}
	for _, key := range settings.ForWorkloads() {
		all[key] = "x"
	}
	kept := settings.Limit(all)
	for _, key := range settings.ForWorkloads() {
		if kept[key] != "x" {
			t.Errorf("%s isn't kept", key)
		}
	}
}

// TestOnly: on a source or a namespace only few settings have a meaning, and only these are
// kept.
func TestOnly(t *testing.T) {
	t.Parallel()
	all := map[string]string{settings.Hold: "until Monday", settings.Reload: strings.Repeat("x", 40<<10), settings.ImagePrefix + "app": "app:1.*", settings.Prefix + "x": "x"}
	kept := settings.Only(settings.ForSources(), all)
	if len(kept) != 2 || kept[settings.Hold] != "until Monday" || len(kept[settings.Reload]) > 2<<10 {
		t.Errorf("%d settings are kept, and %d bytes of %s", len(kept), len(kept[settings.Reload]), settings.Reload)
	}
	if problems := settings.SourceProblems(kept); len(problems) != 1 {
		t.Errorf("a value that isn't understood has the problems %v", problems)
	}
}

// TestLimitKeepsAllThatMayBeFollowed: a list of as many sources with as long names as a workload
// may follow isn't too long.
func TestLimitKeepsAllThatMayBeFollowed(t *testing.T) {
	t.Parallel()
	names := make([]string, input.MaxInputs)
	for i := range names {
		names[i] = fmt.Sprintf("configmap/%0*d", input.MaxNames/input.MaxInputs, i)
	}
	kept := settings.Limit(map[string]string{settings.Reload: strings.Join(names, ", ")})
	if in := settings.ForWorkload(kept, nil, settings.Defaults{}); in.Mistakes.TooMany != "" || len(in.Listed) != input.MaxInputs {
		t.Errorf("%d sources are listed, and it says %q", len(in.Listed), in.Mistakes.TooMany)
	}
}
