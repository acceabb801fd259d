package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestImages(t *testing.T) {
	t.Parallel()
	const web, side = settings.ImagePrefix + "web", settings.ImagePrefix + "side"
	const webPlatform = settings.PlatformPrefix + "web"
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		platform    string   // the controller's default
		want        []string // container, image and platform
		refused     []string // each a part of one refusal
	}{
		"None":             {reason: "nothing asks", annotations: map[string]string{settings.Reload: "auto"}},
		"Two":              {reason: "sorted by container", annotations: map[string]string{web: "nginx:1.27.*", side: " host:5000/team/side:^1.4 "}, want: []string{"side host:5000/team/side:^1.4 ", "web nginx:1.27.* "}},
		"Platform":         {reason: "one platform's image", annotations: map[string]string{web: "nginx:1", webPlatform: " linux/arm/v7 "}, want: []string{"web nginx:1 linux/arm/v7"}},
		"Default":          {reason: "the workload says nothing", annotations: map[string]string{web: "nginx:1"}, platform: "linux/amd64", want: []string{"web nginx:1 linux/amd64 by default"}},
		"NotTheDefault":    {reason: "the workload names another one", annotations: map[string]string{web: "nginx:1", webPlatform: "linux/arm64"}, platform: "linux/amd64", want: []string{"web nginx:1 linux/arm64"}},
		"Index":            {reason: "the workload wants the index all the same", annotations: map[string]string{web: "nginx:1", webPlatform: " index"}, platform: "linux/amd64", want: []string{"web nginx:1 "}},
		"EmptyPlatform":    {reason: "an empty one is a mistake", annotations: map[string]string{web: "nginx:1", webPlatform: ""}, platform: "linux/amd64", refused: []string{webPlatform}},
		"BadSpec":          {reason: "one bad annotation does not block the others", annotations: map[string]string{web: "nginx", side: "side:1"}, want: []string{"side side:1 "}, refused: []string{web + `: "nginx" doesn't name a tag`}},
		"Digest":           {reason: "a digest never changes", annotations: map[string]string{web: "nginx@sha256:" + strings.Repeat("a", 64)}, refused: []string{"names a digest"}},
		"BadPlatform":      {reason: "another platform is no guess to make", annotations: map[string]string{web: "nginx:1", webPlatform: "arm64"}, refused: []string{webPlatform + `: "arm64" isn't valid`}},
		"PlatformAlone":    {reason: "there is nothing to choose from", annotations: map[string]string{webPlatform: "linux/arm64"}, refused: []string{"has no effect without " + web}},
		"TwoBad":           {reason: "each is told of, in one order", annotations: map[string]string{web: "nginx", side: "side"}, refused: []string{side, web}},
		"HostileIsRefused": {reason: "a pasted text does not fill the event", annotations: map[string]string{web: strings.Repeat("x", 5000) + ":1"}, refused: []string{"longer than"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settings.ForWorkload(tc.annotations, nil, settings.Defaults{Platform: tc.platform})
			var got []string
			for _, i := range in.Images {
				text := i.Container + " " + i.Image.String() + " " + i.Platform
				if i.ByDefault {
					text += " by default"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if len(in.Mistakes.Refused) != len(tc.refused) {
				t.Fatalf("%s: refused %q, want %d", tc.reason, in.Mistakes.Refused, len(tc.refused))
			}
			for i, part := range tc.refused {
				if !strings.Contains(in.Mistakes.Refused[i], part) || len(in.Mistakes.Refused[i]) > 500 {
					t.Errorf("%s: %q does not say %q in a few words", tc.reason, in.Mistakes.Refused[i], part)
				}
			}
			if len(in.Mistakes.Unknown)+len(in.Mistakes.Problems) > 0 {
				t.Errorf("%s: unknown %q, problems %v", tc.reason, in.Mistakes.Unknown, in.Mistakes.Problems)
			}
			for key := range tc.annotations {
				if !(settings.Native{}).Knows(key, nil) {
					t.Errorf("%s is dropped before it is read", key)
				}
			}
		})
	}
}
