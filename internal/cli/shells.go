package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// shells are those with a completion script.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletion(env Environment) *cobra.Command {
	names := strings.Join(shells(), "|")
	return &cobra.Command{
		Use:   "completion " + names,
		Short: "Print the completion script for a shell",
		Long: `Print a script that completes commands, flags, kinds, names and namespaces in your shell.

For this shell only, in bash, zsh, fish and PowerShell:

    source <(lockstep completion bash)
    source <(lockstep completion zsh)
    lockstep completion fish | source
    lockstep completion powershell | Out-String | Invoke-Expression

For every new shell; bash needs the package bash-completion, zsh needs compinit:

    lockstep completion bash > /etc/bash_completion.d/lockstep
    lockstep completion zsh > "${fpath[1]}/_lockstep"
    lockstep completion fish > ~/.config/fish/completions/lockstep.fish
    lockstep completion powershell >> $PROFILE`,
		Example: `  source <(lockstep completion bash)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("name one shell: " + names)}
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(shells(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, script := cmd.Root(), commandline.Raw(env.Stdout)
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(script, true)
			case "zsh":
				return root.GenZshCompletion(script)
			case "fish":
				return root.GenFishCompletion(script, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(script)
			}
			return usageError{fmt.Errorf("no completion for %q, want %s%s", args[0], names, commandline.Hint(args[0], "", shells()))}
		},
	}
}
