package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

func newInstallCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "install DIRECTORY", Short: "Copy this program into a directory that other containers share",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return install(env, args[0]) },
	}
}

func newVersionCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this build",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(env.Stdout, commandline.Version(programName, env.Version))
			return err
		},
	}
}

// usage reports a wrong number of arguments as a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

func install(env Env, dir string) error {
	target, err := run.Install(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "installed %s\n", target)
	return err
}

func newStatusCommand(env Env) *cobra.Command {
	var root, layout, output string
	var check bool
	cmd := &cobra.Command{
		Use: "status --root DIRECTORY", Short: "Show what an agent observed, published and confirmed",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("output %q: want text or json", output)}
			}
			s, raw, err := readStatus(root, volume.Layout(layout))
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = commandline.JSON(env.Stdout).Write(raw)
			} else {
				err = printStatus(env.Stdout, s)
			}
			if check && !s.Healthy {
				return errors.Join(err, errors.New("the application isn't running the published set"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "directory the agent publishes into")
	cmd.Flags().StringVar(&layout, "layout", string(volume.Links), "the agent's --layout")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 1 when /healthz/application would fail: the application is known not to run the published set; for exec probes")
	return cmd
}

func readStatus(root string, layout volume.Layout) (podsync.Status, []byte, error) {
	var s podsync.Status
	if root == "" {
		return s, nil, usageError{errors.New("set --root to the agent's, and --layout if the agent's is exchange; an agent without a root doesn't keep a status file")}
	}
	if !layout.Known() {
		return s, nil, usageError{fmt.Errorf("layout %q: want links, exchange or files", layout)}
	}
	name := filepath.Join(volume.StateDir(root, layout), podsync.StatusFile)
	raw, err := plainfile.Read(name, plainfile.Large)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, fmt.Errorf("no agent has published into %s yet (there is no %s); is this its --root, and is its --layout %s?", root, name, layout)
	}
	if err != nil {
		return s, nil, fmt.Errorf("read the status: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, nil, fmt.Errorf("read the status in %s: %w", name, err)
	}
	return s, raw, nil
}

func printStatus(out io.Writer, s podsync.Status) error {
	w := commandline.NewColumns(out, 2)
	w.Row("observed", orNone(s.Observed))
	w.Row("published", orNone(s.Published), count(int64(s.Files), "file")+", "+count(s.Bytes, "byte"))
	w.Row("confirmed", orNone(s.Confirmed), unconfirmed(s))
	w.Row("reason", string(s.Reason))
	for name, id := range map[string]string{"rejected": s.Rejected, "rolled back": s.Barred} {
		if id != "" {
			w.Row(name, id)
		}
	}
	if s.Failures > 0 {
		w.Row("failures", strconv.Itoa(s.Failures))
	}
	if s.Message != "" {
		w.Row("message", strings.ReplaceAll(s.Message, "\n", "; "))
	}
	for _, source := range s.Sources {
		w.Row("source", source.Name, source.State, source.Failure)
	}
	w.Row("updated", s.Updated.Format("2006-01-02 15:04:05 MST"))
	if err := w.End(); err != nil {
		return err
	}
	for _, printed := range []struct{ who, what string }{{"checker", s.CheckOutput}, {"command that failed", s.Output}} {
		if printed.what == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "the %s printed:\n%s\n", printed.who, strings.TrimRight(printed.what, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// unconfirmed explains why the published set is not the confirmed one, when that is
// expected.
func unconfirmed(s podsync.Status) string {
	switch {
	case s.Published == "" || s.Confirmed == s.Published:
		return ""
	case s.Initial == s.Published:
		return "the application reads the published set when it starts"
	case s.Delivered == s.Published:
		return "the application was notified of the published set, and no confirmation is configured"
	}
	return ""
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
