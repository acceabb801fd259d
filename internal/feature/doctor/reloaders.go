package doctor

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// tool is another program that restarts workloads or changes their images.
type tool struct {
	name string
	// keys are annotations or labels with which a workload asks for it, domains those of
	// which every key does.
	keys, domains []string
	// images are the suffixes of the repositories that it is published in.
	images []string
}

// tools are the known tools.
func tools() []tool {
	return []tool{
		{
			name:    "Stakater Reloader",
			domains: []string{"reloader.stakater.com", "configmap.reloader.stakater.com", "secret.reloader.stakater.com", "secretproviderclass.reloader.stakater.com", "deployment.reloader.stakater.com"},
			images:  []string{"stakater/reloader"},
		},
		{name: "Wave", keys: []string{"wave.pusher.com/update-on-config-change"}, images: []string{"wave-k8s/wave", "pusher/wave"}},
		{name: "Keel", keys: []string{"keel.sh/policy"}, images: []string{"keel-hq/keel", "keelhq/keel"}},
		{name: "kube-image-deployer", domains: []string{"kube-image-deployer"}, images: []string{"pubg/kube-image-deployer"}},
		{name: "kubernetes-reloader", keys: []string{legacy.ConfigMapAnnotation, legacy.SecretAnnotation}, images: []string{"collaborne/kubernetes-reloader"}},
	}
}

// toolsOf are the tools that a workload asks for, except those whose annotations Lockstep reads
// itself.
func toolsOf(annotations, labels map[string]string, words settings.Vocabulary) []string {
	var names []string
	for _, t := range tools() {
		asks := func(key string) bool {
			domain, _, _ := strings.Cut(key, "/")
			return (slices.Contains(t.keys, key) || strings.Contains(key, "/") && slices.Contains(t.domains, domain)) && !words.Knows(key, labels)
		}
		if anyKey(annotations, asks) || anyKey(labels, asks) {
			names = append(names, t.name)
		}
	}
	return names
}

func anyKey(set map[string]string, asks func(string) bool) bool {
	for key := range set {
		if asks(key) {
			return true
		}
	}
	return false
}

// toolOfImage is the tool that an image belongs to, empty when there is none.
func toolOfImage(image string) string {
	ref, err := tagspec.ParseReference(image)
	if err != nil {
		return ""
	}
	for _, t := range tools() {
		for _, end := range t.images {
			if ref.Repository.Path == end || strings.HasSuffix(ref.Repository.Path, "/"+end) {
				return t.name
			}
		}
	}
	return ""
}
