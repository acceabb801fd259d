package reload_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestDefaultPlatform: where a workload names no platform, the image of the controller's default
// is pinned. An annotation and the node selector win. "lockstep
// images" and "lockstep roll" agree when they are given the same flag.
func TestDefaultPlatform(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	index := g.push(t, "app:latest", "one")
	digests := make([]string, 2)
	for i, platform := range registrylab.Platforms() {
		digest, err := registrylab.ChildDigest("one", platform)
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = g.at("app:latest") + "@" + digest
	}
	amd64, arm64 := digests[0], digests[1]
	wants := g.wants("app", "app:latest")
	g.make(t, deployment("web", wants, g.runs("app:latest"))+
		deployment("other", wants+", "+settings.PlatformPrefix+"app: linux/arm64", g.runs("app:latest"))+
		deployment("every", wants+", "+settings.PlatformPrefix+"app: index", g.runs("app:latest"))+
		deployment("elsewhere", wants, g.runs("app:latest")+", nodeSelector: {kubernetes.io/arch: arm64}")+
		deployment("here", wants, g.runs("app:latest")+", nodeSelector: {kubernetes.io/arch: amd64}"))
	const flag = "--image-default-platform=linux/amd64"
	g.open(t, flag)
	for name, want := range map[string]string{"web": amd64, "other": arm64, "every": index, "elsewhere": index, "here": amd64} {
		g.awaitImage(t, "deployment/"+name, "app", want)
		g.awaitKnown(t, deploy, name, digestIn(want))
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		table := g.table(t, flag)
		return strings.Count(table, "InStep") == 5, "the table says\n" + table
	})
	g.rollImage(t, 0, "is in step", web, flag)
}
