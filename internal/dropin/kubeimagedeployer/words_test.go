package kubeimagedeployer_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

// vectors are what the original was asked for, and what is right.
func vectors() map[string]struct{ tags, pattern, want string } {
	return map[string]struct{ tags, pattern, want string }{
		"OneStar":       {"v1.0.0 v1.0.9 v1.0.10 v1.0.11", "v1.0.*", "v1.0.11"},
		"TwoStars":      {"v4.0.999 v4.1.0", "v4.*.*", "v4.1.0"},
		"OtherOrder":    {"v4.1.0 v4.0.999", "v4.*.*", "v4.1.0"},
		"ByTheirBytes":  {"1.10.0 1.2.7 1.9.0", "1.*.*", "1.10.0"},
		"SecondStar":    {"1.1.5 1.1.2", "1.*.*", "1.1.5"},
		"OneMoreNumber": {"v6.0.0 v6.0.1.0", "v6.*.*", "v6.0.0"},
		"Readme":        {"1.34 1.34.0 1.34.1 1.34.10 1.34.2", "1.34.*", "1.34.10"},
		"NoDigits":      {"1.34.0-rc1 1.34.1-musl 1.34", "1.34.*", ""},
		"Dates":         {"20210101 20230101 latest", "*", "20230101"},
		"Middle":        {"dev-12-abc dev-9-abc", "dev-*-abc", "dev-12-abc"},
		"LongNumber":    {"1.1 1.99999999999999999999", "1.*", "1.99999999999999999999"},
		"LeadingZero":   {"1.1 1.01", "1.*", "1.1"},
	}
}

// TestTagSelection: the result is the same for every order of the tags.
func TestTagSelection(t *testing.T) {
	t.Parallel()
	for name, tc := range vectors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := tagspec.Parse(tc.pattern)
			if err != nil {
				t.Fatal(err)
			}
			tags := strings.Fields(tc.tags)
			for seed := range uint64(50) {
				if got, _ := spec.Choose(tags); got != tc.want {
					t.Fatalf("%s of %v is %q, want %q", tc.pattern, tags, got, tc.want)
				}
				rand.New(rand.NewPCG(seed, 0)).Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
			}
		})
	}
}

// TestIntent: each annotation concerns its own container.
func TestIntent(t *testing.T) {
	t.Parallel()
	const digest = "sha256:15f840677a5e245d9ea199eb9b026b1539208a5183621dced7b469f6aa678115"
	cases := map[string]struct {
		reason      string
		words       kubeimagedeployer.Words
		annotations map[string]string
		want        []string // container, repository, spec and platform
		refused     []string // a part of each
	}{
		"Readme":   {reason: "containers and init containers", annotations: map[string]string{"kube-image-deployer/busybox-init": "busybox:latest", "kube-image-deployer/busybox2": "busybox:1.34.*"}, want: []string{"busybox-init busybox latest linux/amd64", "busybox2 busybox 1.34.* linux/amd64"}},
		"Port":     {reason: "a registry with a port", annotations: map[string]string{"kube-image-deployer/a": "localhost:5000/a/b:v*"}, want: []string{"a localhost:5000/a/b v* linux/amd64"}},
		"PortOnly": {reason: "a port is no tag", annotations: map[string]string{"kube-image-deployer/a": "localhost:5000/a/b"}, refused: []string{`kube-image-deployer/a: "localhost:5000/a/b" doesn't name a tag`}},
		"NoTag":    {reason: "the other container goes on", annotations: map[string]string{"kube-image-deployer/a": "busybox", "kube-image-deployer/b": "busybox:1"}, want: []string{"b busybox 1 linux/amd64"}, refused: []string{`annotation kube-image-deployer/a: "busybox" doesn't name a tag`}},
		"Pinned":   {reason: "a digest stays as it is", annotations: map[string]string{"kube-image-deployer/a": "busybox@" + digest}, refused: []string{"names a digest"}},
		"None":     {reason: "the label alone does nothing", annotations: map[string]string{"other/a": "busybox:1"}, refused: []string{"label kube-image-deployer: no annotation kube-image-deployer/CONTAINER names an image"}},
		"Key":      {reason: "another watch key", words: kubeimagedeployer.Words{Key: "team-a", Platform: "linux/arm64"}, annotations: map[string]string{"team-a/web": "app:1", "kube-image-deployer/web": "app:2"}, want: []string{"web app 1 linux/arm64"}},
		"Index":    {reason: "the image of every platform", words: kubeimagedeployer.Words{Key: "k"}, annotations: map[string]string{"k/web": "app:1"}, want: []string{"web app 1 "}},
		"Platform": {reason: "of one container", annotations: map[string]string{"kube-image-deployer/web": "app:1", "platform.kube-image-deployer/web": "linux/arm/v7", "kube-image-deployer/side": "tools:1", "platform.kube-image-deployer/side": "index"}, want: []string{"side tools 1 ", "web app 1 linux/arm/v7"}},
		"BadPlace": {reason: "a platform that is none is no guess", annotations: map[string]string{"kube-image-deployer/web": "app:1", "platform.kube-image-deployer/web": "arm"}, refused: []string{`annotation platform.kube-image-deployer/web: platform "arm": want os/architecture`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.words.Key == "" {
				tc.words = kubeimagedeployer.Words{Key: kubeimagedeployer.DefaultKey, Platform: "linux/amd64"}
			}
			in := tc.words.Intent(tc.annotations, nil)
			var got []string
			for _, r := range in.Images {
				got = append(got, r.Container+" "+r.Image.Repository.Written+" "+r.Image.Spec.String()+" "+r.Platform)
				if r.Key() != tc.words.Key+"/"+r.Container {
					t.Errorf("the annotation is called %s", r.Key())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !slices.EqualFunc(tc.refused, in.Mistakes.Refused, func(part, text string) bool { return strings.Contains(text, part) }) {
				t.Errorf("%s: refused %q, want %q", tc.reason, in.Mistakes.Refused, tc.refused)
			}
		})
	}
}

// TestSelector: the label counts, whatever its value, unless that is "false".
func TestSelector(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse(kubeimagedeployer.Words{Key: "team-a"}.Selector())
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"true": true, "configured": true, "": true, "false": false} {
		if got := selector.Matches(labels.Set{"team-a": value}); got != want {
			t.Errorf("the value %q selects: %t, want %t", value, got, want)
		}
		for _, key := range []string{"team-a/web", "platform.team-a/web"} {
			if got := (kubeimagedeployer.Words{Key: "team-a"}).Knows(key, labels.Set{"team-a": value}); got != want {
				t.Errorf("with the value %q %s is read: %t, want %t", value, key, got, want)
			}
		}
	}
	if selector.Matches(labels.Set{"other": "true"}) {
		t.Error("a workload without the label is selected")
	}
	if (kubeimagedeployer.Words{Key: "team-a"}).Knows("team-a/web", labels.Set{"other": "true"}) {
		t.Error("an annotation is read without the label")
	}
}

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost:5000": true, "127.0.0.1:5000": true, "[::1]:5000": true, "10.1.2.3": true, "192.168.0.9:443": true, "172.16.1.1": true, "registry.local:5000": true, "registry.localhost": true, "[::1]": true,
		"docker.io": false, "localhost.example": false, "8.8.8.8:5000": false, "registry.locale": false, "172.32.0.1": false, "mylocal": false,
		"localhost": false, "local:5000": false, "127.0.0.2:5000": false, "127.0.0.1.example:5000": false, "[fd00::1]:5000": false,
	} {
		if got := kubeimagedeployer.IsLocal(host); got != want {
			t.Errorf("%s is local: %t, want %t", host, got, want)
		}
	}
}
