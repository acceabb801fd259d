package kubeimagedeployer

import (
	"cmp"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Translate writes a workload's annotations as Lockstep's own. The default platform isn't part of
// them: it is a flag of both programs.
func (w Words) Translate(own, labels map[string]string) settings.Translation {
	t := settings.Translation{Annotations: map[string]string{}, Lost: map[string]string{}}
	for key := range own {
		if strings.HasPrefix(key, w.image()) && !w.Knows(key, labels) {
			t.Lost[key] = "kube-image-deployer doesn't read it without the label " + w.Key
		}
	}
	if len(t.Lost) > 0 {
		return t
	}
	requests, refused := w.Images(own, func(string) bool { return true })
	for _, r := range requests {
		t.Annotations[settings.ImagePrefix+r.Container] = strings.TrimSpace(own[r.Annotation])
		if _, set := own[w.platform()+r.Container]; set {
			t.Annotations[settings.PlatformPrefix+r.Container] = cmp.Or(r.Platform, settings.IndexPlatform)
		}
	}
	for _, text := range refused {
		key, why, found := strings.Cut(strings.TrimPrefix(text, "annotation "), ": ")
		if !found {
			key, why = w.Key, text
		}
		t.Lost[key] = why
	}
	return t
}
