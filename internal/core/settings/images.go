package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// ImageRequest is the request for the image of one container.
type ImageRequest struct {
	Container string
	// Image is the repositoryand the wanted tags.
	Image tagspec.Image
	// Platform is the one whose image is pinned instead of the index, such as linux/arm64;
	// empty for the index.
	Platform string
	// ByDefault is true when Platform is the controller's default: a pod that selects nodes of
	// another platform doesn't use it.
	ByDefault bool
	// Annotation is the requesting annotation, if it isn't one of our own.
	Annotation string
}

// Key is the requesting annotation.
func (r ImageRequest) Key() string { return cmp.Or(r.Annotation, ImagePrefix+r.Container) }

const (
	acceptedImage    = "REPOSITORY:SPEC, such as registry.example/app:1.4.*; SPEC is a tag, a glob, a range such as ^1.4, or /regex/"
	acceptedPlatform = "OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, such as linux/arm64, or index"
)

// IndexPlatform requests the index, where the controller has a default platform.
const IndexPlatform = "index"

// isForImages reports whether a key is about the image of a container.
func isForImages(key string) bool {
	return strings.HasPrefix(key, ImagePrefix) || strings.HasPrefix(key, PlatformPrefix)
}

// readImages reads the requests for container images. An annotation that isn't understood
// affects only its own container.
func (in *Intent) readImages(annotations map[string]string, platform string) {
	if excess := TooManyContainerKeys(annotations, isForImages); excess != "" {
		in.Mistakes.TooMany = excess
		return
	}
	for key, value := range annotations {
		container, found := strings.CutPrefix(key, ImagePrefix)
		if !found {
			in.checkPlatform(annotations, key)
			continue
		}
		image, err := tagspec.ParseImage(strings.TrimSpace(value))
		if err != nil {
			in.Mistakes.Refused = append(in.Mistakes.Refused, refusal(key, err))
			continue
		}
		request := ImageRequest{Container: container, Image: image}
		own, set := annotations[PlatformPrefix+container]
		switch own = strings.TrimSpace(own); {
		case !set:
			request.Platform, request.ByDefault = platform, platform != ""
		case own == IndexPlatform:
		case isPlatform(own):
			request.Platform = own
		default:
			continue // checkPlatform reports it, and Lockstep doesn't guess another platform.
		}
		in.Images = append(in.Images, request)
	}
	sorting.By(in.Images, func(a, b ImageRequest) int { return cmp.Compare(a.Container, b.Container) })
	slices.Sort(in.Mistakes.Refused)
}

// checkPlatform refuses a platform that isn't understood, and one without an image.
func (in *Intent) checkPlatform(annotations map[string]string, key string) {
	container, found := strings.CutPrefix(key, PlatformPrefix)
	if !found {
		return
	}
	value := strings.TrimSpace(annotations[key])
	if _, asked := annotations[ImagePrefix+container]; !asked {
		in.Mistakes.Refused = append(in.Mistakes.Refused, fmt.Sprintf("annotation %s has no effect without %s", key, ImagePrefix+container))
	} else if value != IndexPlatform && !isPlatform(value) {
		in.Mistakes.Refused = append(in.Mistakes.Refused, Problem{Key: key, Value: value, Accepted: acceptedPlatform}.String())
	}
}

// refusal names the wrong annotation and explains what to write.
func refusal(key string, err error) string {
	if refused, ok := errors.AsType[*tagspec.RefusedError](err); ok {
		return fmt.Sprintf("annotation %s: %q %s", key, Shorten(refused.Text), refused.Advice)
	}
	return fmt.Sprintf("annotation %s: %v", key, err)
}

func isPlatform(text string) bool {
	parts := strings.Split(text, "/")
	return (len(parts) == 2 || len(parts) == 3) && !slices.Contains(parts, "") && !strings.ContainsAny(text, " ,:")
}
