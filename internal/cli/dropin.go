package cli

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/compat/kubeimagedeployer"
)

// dropIn runs this program in the place of another one, with that one's own
// command line, and returns the exit code that it would have returned.
type dropIn func(ctx context.Context, args []string, env Environment) int

// dropIns are the programs whose place this one can take, by the name of their
// executable. "lockstep NAME …" does the same as an executable called NAME.
func dropIns() map[string]dropIn {
	return map[string]dropIn{
		"configmap-attacher":          runConfigmapAttacher,
		kubeimagedeployer.DefaultKey:  runKubeImageDeployer,
		kubeimagedeployer.CommandName: runKubeImageDeployerCLI,
		"kubernetes-reloader":         runKubernetesReloader,
	}
}

// DropIns lists the programs whose place this one can take.
func DropIns() []string { return slices.Sorted(maps.Keys(dropIns())) }

// asDropIn finds the program that is meant by the executable's name or by the
// first argument, and that one's arguments.
func asDropIn(args []string, env Environment) (dropIn, []string) {
	if run, ok := dropIns()[filepath.Base(env.Program)]; ok {
		return run, args
	}
	if len(args) == 0 {
		return nil, nil
	}
	return dropIns()[args[0]], args[1:]
}
