// Command manifests writes what charts/lockstep renders by default into deploy/, for those who
// install with kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/release/manifest"
)

const heading = `# Written from charts/lockstep with its default values: change the chart, then run
# "go generate ./test/charts". The image is set in kustomization.yaml.
`

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
	builder, err := program.NewBuilder(os.Stderr)
	if err != nil {
		return err
	}
	built, err := builder.Build(ctx, program.Helm)
	if err != nil {
		return err
	}
	text, err := manifest.Source{
		Helm: built[program.Helm].Path, Chart: filepath.Join(root, "charts", "lockstep"), Tag: "dev", Heading: heading,
	}.Render(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "deploy", "lockstep.yaml"), text, 0o644)
}
