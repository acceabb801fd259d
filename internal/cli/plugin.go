package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// pluginName is the executable that kubectl runs for "kubectl lockstep".
const pluginName = "kubectl-" + programName

// asPlugin makes the program call itself "kubectl lockstep" if the user started it that way.
func asPlugin(root *cobra.Command, program string) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != pluginName {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + programName}
	for _, c := range root.Commands() {
		c.Example = strings.ReplaceAll(c.Example, "  "+programName+" ", "  kubectl "+programName+" ")
	}
}
