package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// theirs is a language in which old/CONTAINER asks for an image, on objects with the label
// old.
type theirs struct{}

func (theirs) Knows(key string, labels map[string]string) bool {
	_, labelled := labels["old"]
	return labelled && strings.HasPrefix(key, "old/")
}

func (theirs) Images(workload map[string]string, asked func(string) bool) (requests []settings.ImageRequest, refused []string) {
	for key, value := range workload {
		container, found := strings.CutPrefix(key, "old/")
		if !found || !asked(container) {
			continue
		}
		image, err := tagspec.ParseImage(value)
		if err != nil {
			refused = append(refused, key)
			continue
		}
		requests = append(requests, settings.ImageRequest{Container: container, Image: image, Annotation: key})
	}
	return requests, refused
}

// TestOtherWords: what is asked for in another language counts beside our own, and our own
// wins for the container that both name.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	native := settings.Native{Others: []settings.ImageWords{theirs{}}}
	in := native.Intent(map[string]string{
		settings.ImagePrefix + "web": "web:2", "old/web": "web:1",
		settings.ImagePrefix + "bad": "bad", "old/bad": "bad:1",
		"old/app": "app:1", "old/side": "side",
		settings.Hold: "freeze",
	}, nil)
	var got []string
	for _, r := range in.Images {
		got = append(got, r.Key()+" "+r.Image.String())
	}
	if diff := cmp.Diff([]string{"old/app app:1", settings.ImagePrefix + "web web:2"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(in.Mistakes.Refused) != 2 || !strings.Contains(in.Mistakes.Refused[0], settings.ImagePrefix+"bad") || in.Mistakes.Refused[1] != "old/side" {
		t.Errorf("refused %q", in.Mistakes.Refused)
	}
	if !in.Held {
		t.Error("our own settings do not count")
	}
	for key, labels := range map[string]map[string]string{"old/app": {"old": ""}, settings.Reload: nil} {
		if !native.Knows(key, labels) {
			t.Errorf("%s is dropped before it is read", key)
		}
	}
	if native.Knows("old/app", map[string]string{"other": ""}) || (settings.Native{}).Knows("old/app", map[string]string{"old": ""}) {
		t.Error("an annotation is kept that nothing reads")
	}
}
