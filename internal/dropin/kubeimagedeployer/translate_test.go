package kubeimagedeployer_test

import (
	"maps"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	words := kubeimagedeployer.Words{Key: kubeimagedeployer.DefaultKey}
	followed := map[string]string{"kube-image-deployer": "true"}
	for name, tc := range map[string]struct {
		own, labels map[string]string
		want, lost  map[string]string
	}{
		"Nothing":  {labels: followed},
		"Image":    {own: map[string]string{"kube-image-deployer/web": " registry.example/web:1.* "}, labels: followed, want: map[string]string{"image.lockstep.dev/web": "registry.example/web:1.*"}},
		"Platform": {own: map[string]string{"kube-image-deployer/web": "web:1.*", "platform.kube-image-deployer/web": "linux/arm64"}, labels: followed, want: map[string]string{"image.lockstep.dev/web": "web:1.*", "platform.lockstep.dev/web": "linux/arm64"}},
		"NoLabel":  {own: map[string]string{"kube-image-deployer/web": "web:1.*"}, lost: map[string]string{"kube-image-deployer/web": "kube-image-deployer doesn't read it without the label kube-image-deployer"}},
		"BadPlatform": {
			own: map[string]string{"kube-image-deployer/web": "web:1.*", "platform.kube-image-deployer/web": "arm"}, labels: followed,
			lost: map[string]string{"platform.kube-image-deployer/web": `platform "arm": want os/architecture, such as linux/amd64 or linux/arm/v7, or index for the image of every platform`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := words.Translate(tc.own, tc.labels); !maps.Equal(tc.want, got.Annotations) || !maps.Equal(tc.lost, got.Lost) {
				t.Errorf("%+v, want %v and %v", got, tc.want, tc.lost)
			}
		})
	}
}
