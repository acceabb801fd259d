package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked lists the packages that a program or package is made of.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// The agent runs in every pod: what it links is paid for everywhere.
func TestTheAgentLinksNothingOfTheController(t *testing.T) {
	for _, pkg := range linked(t, ".") {
		for _, heavy := range []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/api/",
			"github.com/prometheus/client_golang",
			"github.com/lockstep-dev/lockstep/internal/cli", "github.com/lockstep-dev/lockstep/internal/server", "github.com/lockstep-dev/lockstep/internal/adapter/kube",
		} {
			if pkg == heavy || strings.HasPrefix(pkg, strings.TrimSuffix(heavy, "/")+"/") {
				t.Errorf("the agent links %s", pkg)
			}
		}
	}
}

// The pipeline's decisions know no client, no flags and no adapter.
func TestThePipelineKnowsNoAdapter(t *testing.T) {
	for _, pkg := range linked(t, "github.com/lockstep-dev/lockstep/internal/feature/podsync") {
		if strings.Contains(pkg, "lockstep/internal/adapter") || strings.HasPrefix(pkg, "k8s.io/") || strings.HasPrefix(pkg, "github.com/spf13") {
			t.Errorf("podsync links %s", pkg)
		}
	}
}

// The shipped program is static and stays under its limit of 16 MB.
func TestSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lockstep-sync")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	command.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOFLAGS=") }), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > 16e6 {
		t.Errorf("%d bytes are more than 16 MB", info.Size())
	}
}
