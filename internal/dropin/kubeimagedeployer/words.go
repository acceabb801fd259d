package kubeimagedeployer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// DefaultKey is the label of followed workloads, and the prefix of annotations that name images:
// kube-image-deployer/web.
const DefaultKey = "kube-image-deployer"

// gather is how long registry responses are collected for one patch, as in the original.
const gather = time.Second

// Words is the vocabulary of kube-image-deployer.
type Words struct {
	// Key is the label, and the prefix of the annotations.
	Key string
	// Platform is the one whose image is pinned, empty for the index.
	Platform string
}

// image and platform are annotation prefixes; the container name follows. The original didn't
// have an annotation for the platform.
func (w Words) image() string    { return w.Key + "/" }
func (w Words) platform() string { return "platform." + w.Key + "/" }

// Selector selects the followed workloads: they have the label. The original accepted any value,
// even "false".
func (w Words) Selector() string { return w.Key + "," + w.Key + "!=false" }

// Knows implements settings.Vocabulary. Without the label the annotations are ignored.
func (w Words) Knows(key string, labels map[string]string) bool {
	if value, labelled := labels[w.Key]; !labelled || value == "false" {
		return false
	}
	return strings.HasPrefix(key, w.image()) || strings.HasPrefix(key, w.platform())
}

// Intent implements settings.Vocabulary, for a workload that has the label.
func (w Words) Intent(workload, _ map[string]string) settings.Intent {
	in := settings.Intent{Strategy: settings.StrategyTemplate, Quiet: gather}
	in.Images, in.Mistakes.Refused = w.Images(workload, func(string) bool { return true })
	if len(in.Images) == 0 && len(in.Mistakes.Refused) == 0 {
		in.Mistakes.Refused = []string{fmt.Sprintf("label %s: no annotation %sCONTAINER names an image, such as app:1.4.*", w.Key, w.image())}
	}
	return in
}

// Images implements settings.ImageWords: requests sorted by container, refusals by text.
func (w Words) Images(workload map[string]string, asked func(container string) bool) (requests []settings.ImageRequest, refused []string) {
	if excess := settings.TooManyContainerKeys(workload, func(key string) bool {
		return strings.HasPrefix(key, w.image()) || strings.HasPrefix(key, w.platform())
	}); excess != "" {
		return nil, []string{excess}
	}
	for key, value := range workload {
		container, found := strings.CutPrefix(key, w.image())
		if !found || !asked(container) {
			continue
		}
		image, err := tagspec.ParseImage(strings.TrimSpace(value))
		if err != nil {
			refused = append(refused, refusal(key, err))
			continue
		}
		platform, err := ParsePlatform(cmp.Or(workload[w.platform()+container], w.Platform, Index))
		if err != nil {
			refused = append(refused, fmt.Sprintf("annotation %s: %v", w.platform()+container, err))
			continue
		}
		requests = append(requests, settings.ImageRequest{Container: container, Image: image, Platform: platform, Annotation: key})
	}
	sorting.By(requests, func(a, b settings.ImageRequest) int { return cmp.Compare(a.Container, b.Container) })
	slices.Sort(refused)
	return requests, refused
}

// refusal explains which annotation is wrong, and what to write.
func refusal(key string, err error) string {
	if refused, ok := errors.AsType[*tagspec.RefusedError](err); ok {
		return fmt.Sprintf("annotation %s: %q %s", key, settings.Shorten(refused.Text), refused.Advice)
	}
	return fmt.Sprintf("annotation %s: %v", key, err)
}

// Index and Any select the index digest instead of a platform's, so nodes of every platform find
// their image. The original didn't have them.
const (
	Index = "index"
	Any   = "any"
)

// ParsePlatform reads a platform, empty for the index.
func ParsePlatform(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == Index || text == Any {
		return "", nil
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") || strings.ContainsAny(text, " ,:") {
		return "", fmt.Errorf("platform %q: want os/architecture, such as linux/amd64 or linux/arm/v7, or %s for the image of every platform", settings.Shorten(text), Index)
	}
	return text, nil
}
