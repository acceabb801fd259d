// Command manifests writes what charts/lockstep renders by default into deploy/, for those who
// install with kubectl.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// namespace is where the manifests install the controller.
const namespace = "lockstep-system"

const heading = `# Written from charts/lockstep with its default values: change the chart, then run
# "go generate ./test/charts". The image is set in kustomization.yaml.
---
apiVersion: v1
kind: Namespace
metadata:
  name: ` + namespace + "\n"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	rendered, err := render(ctx, filepath.Join(root, "charts", "lockstep"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "deploy", "lockstep.yaml"), append([]byte(heading), plain(rendered)...), 0o644)
}

// render has Helm render the chart, with an image that stands for one's own.
func render(ctx context.Context, chart string) ([]byte, error) {
	builder, err := program.NewBuilder(os.Stderr)
	if err != nil {
		return nil, err
	}
	built, err := builder.Build(ctx, program.Helm)
	if err != nil {
		return nil, err
	}
	helm := exec.CommandContext(ctx, built[program.Helm].Path, "template", "lockstep", chart,
		"--namespace", namespace, "--set", "image.repository=registry.example/lockstep,image.tag=dev")
	helm.Stderr = os.Stderr
	return helm.Output()
}

// plain takes out what only Helm needs, and what it says of itself.
func plain(rendered []byte) []byte {
	helm := regexp.MustCompile(`(?m)^(# Source: .*| *app\.kubernetes\.io/(managed-by|instance): .*| *helm\.sh/chart: .*)\n`)
	return bytes.ReplaceAll(helm.ReplaceAll(rendered, nil), []byte("\n\n---"), []byte("\n---"))
}
