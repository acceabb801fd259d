package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// flagGroup is a part of the help.
type flagGroup struct {
	title string
	flags []string
}

// flagGroups are all flags, in the order in which an agent needs them.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"Sources", []string{
			"configmap", "secret", "selector", "selector-kinds", "namespace", "directory", "kubeconfig", "context", "stall-deadline",
			"wait-for-sources", "on-delete", "rescan", "poll",
		}},
		{"Files", []string{
			"root", "layout", "file-mode", "dir-mode", "uid", "gid", "overwrite", "durable", "keep-old", "item", "key-separator", "include", "exclude",
			"collision", "max-size", "subdir-annotation", "once", "quiet", "max-wait",
		}},
		{"Check", []string{"app", "app-file", "app-url", "app-socket", "check", "check-timeout", "no-check"}},
		{"Notify", []string{
			"notify", "notify-timeout", "initial-notify", "min-interval", "http-method", "http-header", "http-body", "http-username-file", "http-password-file",
			"http-bearer-file", "http-ca", "http-cert", "http-key", "http-server-name", "http-insecure", "http-unix-socket", "http-codes", "http-timeout",
		}},
		{"Confirm", []string{"confirm", "confirm-timeout"}},
		{"Failure", []string{"roll-back", "max-failures", "retry", "max-retry", "start-grace"}},
		{"Process", []string{"install", "stop-signal", "stop-grace"}},
		{"Health", []string{"health-addr", "log-format", "log-level", "help", "help-all", "version"}},
	}
}

// firstFlags are the most frequently used flags.
func firstFlags() []string {
	return []string{
		"configmap", "secret", "selector", "directory", "root", "app", "check", "notify", "confirm", "roll-back", "max-failures", "once", "install",
		"health-addr", "help-all",
	}
}

// printHelp shows the most used flags, or all of them, in groups.
func printHelp(out io.Writer, cmd *cobra.Command, all bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\nUsage:\n  %s\n", cmd.Long, cmd.UseLine())
	if commands := cmd.Commands(); len(commands) > 0 {
		text.WriteString("\nCommands:\n")
		for _, c := range commands {
			fmt.Fprintf(&text, "  %-10s %s\n", c.Name(), c.Short)
		}
	}
	first := firstFlags()
	for _, group := range flagGroups() {
		shown := pflag.NewFlagSet("", pflag.ContinueOnError)
		shown.SortFlags = false
		for _, name := range group.flags {
			if f := cmd.Flags().Lookup(name); f != nil && (all || slices.Contains(first, name)) {
				shown.AddFlag(f)
			}
		}
		if shown.HasFlags() {
			fmt.Fprintf(&text, "\n%s:\n%s", group.title, shown.FlagUsages())
		}
	}
	if !all {
		text.WriteString("\nThese are the most common flags; --help-all lists all of them. \"lockstep-sync explain\" with the same flags shows what they do.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// newExplainCommand describes what a command line would do.
func newExplainCommand(env Env) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use: "explain [flags] [-- COMMAND ARGS…]", Short: "Show what an agent with the same flags would watch, write, run and query",
		Long: "Shows, in order, what an agent with these flags would watch, write, run and query, without doing it. Accepts every flag of\n" +
			"lockstep-sync, and the name of a replaced program with its flags and variables: lockstep-sync explain k8s-sidecar.",
		Args: checkArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := f.config(args, env.Lookup)
			if err != nil {
				return usageError{err}
			}
			return explain(env, config)
		},
	}
	f.bind(cmd.Flags())
	cmd.SetHelpFunc(func(c *cobra.Command, _ []string) {
		_, _ = fmt.Fprintf(env.Stdout, "%s\n\nUsage:\n  %s\n\nlockstep-sync --help-all lists the flags.\n", c.Long, c.UseLine())
	})
	return cmd
}

// explain prints the steps of an agent.
func explain(env Env, config run.Config) error {
	if err := config.Validate(); err != nil {
		return usageError{oneLine(err)}
	}
	w := commandline.NewColumns(env.Stdout, 2)
	for _, warning := range config.Warnings {
		w.Row("note", warning)
	}
	for _, step := range config.Describe() {
		w.Row(step.Stage, step.What)
	}
	return w.End()
}
