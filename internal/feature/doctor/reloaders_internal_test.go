package doctor

import (
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestToolsOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][]string{
		"reloader.stakater.com/auto":              {"Stakater Reloader"},
		"configmap.reloader.stakater.com/reload":  {"Stakater Reloader"},
		"wave.pusher.com/update-on-config-change": {"Wave"},
		"wave.pusher.com/config-hash":             nil,
		"keel.sh/policy":                          {"Keel"},
		"kube-image-deployer/web":                 {"kube-image-deployer"},
		legacy.SecretAnnotation:                   {"kubernetes-reloader"},
		"keel":                                    nil,
		settings.Reload:                           nil,
	} {
		if got := toolsOf(map[string]string{key: "x"}, nil, settings.Native{}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestToolOfImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"ghcr.io/stakater/reloader:v1.4.21":                       "Stakater Reloader",
		"mirror.example:5000/ghcr.io/stakater/reloader@" + digest: "Stakater Reloader",
		"keelhq/keel":                          "Keel",
		"quay.io/wave-k8s/wave:v0.11.0":        "Wave",
		"ghcr.io/pubg/kube-image-deployer:v1":  "kube-image-deployer",
		"collaborne/kubernetes-reloader":       "kubernetes-reloader",
		"ghcr.io/example/notstakater/reloader": "",
		"nginx":                                "",
		"not an image":                         "",
	} {
		if got := toolOfImage(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
