package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// TestStoryWithDownloadedPrograms: with etcd and kube-apiserver at hand nothing of the
// lab is built; with a cache that is empty, building would show.
func TestStoryWithDownloadedPrograms(t *testing.T) {
	t.Parallel()
	built := labtest.Programs(t, program.Etcd, program.APIServer, program.Kubectl)
	assets, cache := t.TempDir(), t.TempDir()
	for name, p := range built {
		if err := os.Symlink(p.Path, filepath.Join(assets, name)); err != nil {
			t.Fatal(err)
		}
	}
	demo := start(t, labtest.Binary(t, "./cmd/lockstep"), "CHAPTERS=1", program.DownloadedEnv+"="+assets, program.CacheEnv+"="+cache)
	if code := demo.ExitCode(t, ending); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		"Starting a Kubernetes control plane: what is in KUBEBUILDER_ASSETS.",
		"Kubernetes " + built[program.APIServer].Version + " is up",
		"It has no kube-controller-manager",
		"no rollout (pod templates that the Deployment has had: 1)",
		"two changes, one rollout (pod templates that the Deployment has had: 2)",
		"The end, after",
	} {
		if !strings.Contains(demo.Stdout(), want) {
			t.Errorf("the story does not say %q", want)
		}
	}
	left, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("in the cache that was empty are %q, error %v, want nothing built and nothing left", left, err)
	}
}
