package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// helpName is the name of the command that prints help.
const helpName = "help"

// newHelp is Cobra's command, except that an unknown name is a mistake.
func newHelp(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   helpName + " [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			if word := commandline.Misplaced(cmd.Root(), args); word != "" {
				if program, is := dropIns()[word]; is {
					program.run(cmd.Context(), []string{"--help"}, env)
					return nil
				}
				return usageError{commandline.UnknownCommand(cmd.Root(), word, DropIns())}
			}
			about, _, _ := cmd.Root().Find(args) // Misplaced has found it
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
