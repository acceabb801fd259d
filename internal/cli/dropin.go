package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/dropin/configmapattacher"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubernetesreloader"
)

// dropIn runs this program in the place of another one, with that one's own
// command line, and returns the exit code that it would have returned.
type dropIn func(ctx context.Context, args []string, env Environment) int

// replaced is a program whose place this one can take.
type replaced struct {
	run   dropIn
	short string
}

// dropIns are the programs whose place this one can take, by the name of their
// executable. "lockstep NAME …" does the same as an executable called NAME.
func dropIns() map[string]replaced {
	return map[string]replaced{
		"configmap-attacher":          {configmapattacher.Run, "attach ConfigMaps to the newest ReplicaSet of an Argo Rollout"},
		kubeimagedeployer.DefaultKey:  {kubeimagedeployer.Run, "roll workloads to the newest digest of a tag"},
		kubeimagedeployer.CommandName: {kubeimagedeployer.RunCommand, "print the digest of a tag"},
		"kubernetes-reloader":         {kubernetesreloader.Run, "roll workloads when a ConfigMap or Secret changes"},
	}
}

// DropIns lists the programs whose place this one can take.
func DropIns() []string { return slices.Sorted(maps.Keys(dropIns())) }

// dropInTable has a line for each of them.
func dropInTable() string {
	var text strings.Builder
	for _, name := range DropIns() {
		fmt.Fprintf(&text, "    %-24s %s\n", name, dropIns()[name].short)
	}
	return text.String()
}

// asDropIn finds the program that is meant by the executable's name or by the
// first argument, and that one's arguments.
func asDropIn(args []string, env Environment) (dropIn, []string) {
	if program, ok := dropIns()[filepath.Base(env.Program)]; ok {
		return program.run, args
	}
	if len(args) == 0 {
		return nil, nil
	}
	return dropIns()[args[0]].run, args[1:]
}
