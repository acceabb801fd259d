package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// TestKubernetesReleases: doctor, the tests, the chart and the page about releases agree.
func TestKubernetesReleases(t *testing.T) {
	t.Parallel()
	if doctor.OldestKubernetes != program.Oldest || doctor.NewestKubernetes != program.DefaultKubernetes {
		t.Errorf("doctor says %s to %s, the tests run %s and %s", doctor.OldestKubernetes, doctor.NewestKubernetes, program.Oldest, program.DefaultKubernetes)
	}
	for file, want := range map[string]string{
		"charts/lockstep/Chart.yaml":    `kubeVersion: ">=` + doctor.OldestKubernetes + `.0-0"`,
		"docs/contributing/releases.md": "| Kubernetes " + doctor.OldestKubernetes + " |",
		"docs/tested-with.md":           "| " + doctor.OldestKubernetes + " (",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q (error %v)", file, want, err)
		}
	}
}
