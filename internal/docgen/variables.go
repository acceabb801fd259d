package main

import (
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// variablesPage lists the environment variables of the commands for users.
func variablesPage() string {
	read, unread := newTable("variable", "flag", "sets", "commands"), newTable("flag", "sets", "commands")
	for _, v := range cli.FlagVariables() {
		if commands := strings.Join(v.Commands, ", "); v.Variable != "" {
			read.row("`"+v.Variable+"`", "`--"+v.Flag+"`", v.Sets, commands)
		} else {
			unread.row("`--"+v.Flag+"`", v.Sets, commands)
		}
	}
	return fmt.Sprintf(`# Environment variables

Every flag of `+"`lockstep controller`"+` has a variable: `+"`--max-delay` is `LOCKSTEP_MAX_DELAY`"+`. The command line takes precedence.

## Commands for users

In all other commands, variables set only the connection and the output. They never select objects, and never set a flag such as `+"`--force`"+`. A variable
that was exported for one command could otherwise widen another one.

%s
## Flags without a variable

If the variable of such a flag is set, the command warns on standard error and doesn't read it. Actions on the pages of `+"`lockstep ui`"+` don't read any variables: the
page shows the command with all its flags.

%s`, read, unread)
}
