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
	"github.com/lockstep-dev/lockstep/internal/dropin/reloader"
)

// dropIn runs this program in place of another one, with the other's command line, and returns
// the exit code that the other would have returned.
type dropIn func(ctx context.Context, args []string, env Environment) int

// replaced is a program that this one can replace.
type replaced struct {
	run   dropIn
	short string
}

// dropIns are the programs that this one can replace, by the name of their executable. "lockstep
// NAME …" does the same as an executable called NAME.
func dropIns() map[string]replaced {
	return map[string]replaced{
		configmapattacher.Name:        {configmapattacher.Run, configmapattacher.Short},
		kubeimagedeployer.Name:        {kubeimagedeployer.Run, kubeimagedeployer.Short},
		kubeimagedeployer.CommandName: {kubeimagedeployer.RunCommand, kubeimagedeployer.CommandShort},
		kubernetesreloader.Name:       {kubernetesreloader.Run, kubernetesreloader.Short},
		reloader.Name:                 {reloader.Run, reloader.Short},
	}
}

// DropIns lists the programs that this one can replace.
func DropIns() []string { return slices.Sorted(maps.Keys(dropIns())) }

// dropInTable has one line per program.
func dropInTable() string {
	var text strings.Builder
	for _, name := range DropIns() {
		fmt.Fprintf(&text, "    %-24s %s\n", name, dropIns()[name].short)
	}
	return text.String()
}

// asDropIn finds the program named by the executable or by the first argument, and that
// program's arguments.
func asDropIn(args []string, env Environment) (dropIn, []string) {
	name := filepath.Base(env.Program)
	if name == reloader.ImageName {
		name = reloader.Name
	}
	if program, ok := dropIns()[name]; ok {
		return program.run, args
	}
	if len(args) == 0 {
		return nil, nil
	}
	return dropIns()[args[0]].run, args[1:]
}
