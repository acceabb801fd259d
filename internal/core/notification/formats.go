package notification

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// manifests are the media types that a tag can stand for.
func manifests() []string {
	return []string{
		"application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
		"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
	}
}

// distribution reads the envelope of Docker distribution. A push by digest, such as the
// image for one platform of an index, doesn't change a tag. The host is the one that was
// pushed to, which may be another name than the one for pulling.
func distribution(body []byte, registry string) ([]string, error) {
	var envelope struct {
		Events []struct {
			Action  string
			Target  struct{ MediaType, Repository, Tag string }
			Request struct{ Host string }
		}
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, notJSON()
	}
	if envelope.Events == nil {
		return nil, errors.New("it doesn't contain events")
	}
	var images []string
	for _, e := range envelope.Events {
		if e.Action == "push" && e.Target.Tag != "" && slices.Contains(manifests(), e.Target.MediaType) {
			images = append(images, cmp.Or(registry, e.Request.Host)+"/"+e.Target.Repository)
		}
	}
	return images, nil
}

// dockerHub reads a Docker Hub notification. Its callback_url is not called.
func dockerHub(body []byte, registry string) ([]string, error) {
	var push struct {
		Repository struct {
			Name string `json:"repo_name"`
		}
	}
	if err := json.Unmarshal(body, &push); err != nil {
		return nil, notJSON()
	}
	if push.Repository.Name == "" {
		return nil, errors.New("repository.repo_name is missing")
	}
	return []string{cmp.Or(registry, "docker.io") + "/" + push.Repository.Name}, nil
}

// githubPackage reads GitHub's package and registry_package events. Others, such as the
// ping when a webhook is created, don't name an image.
func githubPackage(body []byte, registry string) ([]string, error) {
	type published struct {
		Name      string
		Namespace string
		Type      string `json:"package_type"`
		Version   struct {
			URL string `json:"package_url"`
		} `json:"package_version"`
	}
	var event struct {
		Package         *published
		RegistryPackage *published `json:"registry_package"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, notJSON()
	}
	var images []string
	for _, p := range []*published{event.Package, event.RegistryPackage} {
		if p == nil || !strings.EqualFold(p.Type, "container") {
			continue
		}
		name := cmp.Or(registry, "ghcr.io") + "/" + p.Namespace + "/" + p.Name
		if registry == "" && p.Version.URL != "" { // It ends with a colon if the version has no tag.
			name = strings.TrimSuffix(p.Version.URL, ":")
		}
		images = append(images, strings.ToLower(name))
	}
	return images, nil
}

// generic reads {"image": "registry.example/team/app:1.4"}; the tag may be missing.
func generic(body []byte, _ string) ([]string, error) {
	var push struct{ Image string }
	if err := json.Unmarshal(body, &push); err != nil {
		return nil, notJSON()
	}
	if push.Image == "" {
		return nil, errors.New(`"image" is missing`)
	}
	return []string{push.Image}, nil
}

// notJSON reports that without quoting the body.
func notJSON() error { return errors.New("it isn't JSON in this format") }
