package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/listener"
	"github.com/lockstep-dev/lockstep/internal/ui"
)

// uiOptions are the flags of "lockstep ui".
type uiOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	installation installationOptions
	// images are only the connections to registries, for the action that resolves images.
	images   imagesOptions
	port     int
	noOpen   bool
	readOnly bool
}

func newUI(env Environment) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the workloads in a browser",
		Long: `Show the workloads in a browser: which ones are behind and why, what changed when, and which
workloads use a ConfigMap, Secret or image. Open pages show changes in the cluster as they happen.

The command serves the pages from this machine, at 127.0.0.1, until you press Ctrl-C. It reads the
cluster with your kubeconfig and your permissions, and doesn't install anything there. The pages
name each permission that you lack.

Only the address that the command prints opens the pages: it contains a token. Don't pass it
on while the command runs. Each page shows the commands for what you can do; hold, release and
roll also work from the page, with your permissions, after you confirm them. With --read-only
they don't.

If only another machine reaches the cluster, run "lockstep ui --port 8080 --no-open" there and
"ssh -L 8080:127.0.0.1:8080 HOST" here. Then open the printed address here.`,
		Example: `  lockstep ui -n shop
  lockstep ui -A -l team=web
  lockstep ui -A --read-only
  lockstep ui --context staging --port 8080 --no-open`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.scope.bindMany(fs)
	o.installation.bind(fs)
	o.installation.bindEstimates(fs)
	o.images.bindRegistries(fs)
	fs.IntVar(&o.port, "port", 0, "port on 127.0.0.1 (default a free one)")
	fs.BoolVar(&o.noOpen, "no-open", false, "print the address, but don't open a browser")
	fs.BoolVar(&o.readOnly, "read-only", false, "show commands only; the pages can't change anything")
	return cmd
}

func (o *uiOptions) run(cmd *cobra.Command, env Environment) error {
	ctx := cmd.Context()
	if o.port < 0 || o.port > 65535 {
		return usageError{fmt.Errorf("--port %d: want 1 to 65535, or 0 for a free one", o.port)}
	}
	if _, err := o.images.hosts(); err != nil {
		return usageError{err}
	}
	// Actions read the kubeconfig again, and must reach the cluster that the pages show.
	if err := o.kube.pin(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	config, err := o.kube.config()
	if err != nil {
		return err
	}
	c, err := access.NewClient(ctx, config, client.Options{})
	if err != nil {
		return clusterError{err}
	}
	program := cmd.Root().CommandPath()
	open, err := listen(o.port, program, cmd.Flags())
	if err != nil {
		return err
	}
	flags := commandFlags(cmd)
	o.installation.namespace = controllerNamespace(o.installation.namespace)
	server := ui.New(ui.Options{
		Reader: o.installation.reader(c, within.kinds, env), Scope: within.Scope, ReadOnly: o.readOnly,
		Can: func(ctx context.Context, needed []access.Permission) ([]access.Permission, error) {
			return access.ReviewOwn(ctx, c, needed)
		},
		Do: func(ctx context.Context, arguments []string) (string, error) {
			if err := o.kube.isStill(config); err != nil {
				return "", err
			}
			return carryOut(ctx, actionFlags(cmd, arguments), arguments, env)
		},
		Program: shellWords(append([]string{program}, flags...)), Context: o.kube.context,
	})
	address := server.URL(open.Addr())
	if err := say(env.Stdout, "%s", address); err != nil {
		return errors.Join(err, open.Close())
	}
	_ = say(env.Stderr, "press Ctrl-C to stop")
	if !o.noOpen {
		go openBrowser(context.WithoutCancel(ctx), address, env)
	}
	return server.Serve(ctx, open)
}

// commandFlags are the flags of this command that others need to reach the same cluster as the same
// user. They are printed, so the token isn't among them.
func commandFlags(cmd *cobra.Command) []string {
	return setFlags(cmd, "context", "kubeconfig", asFlag, asGroupFlag)
}

// privateFlags are those that others need too and that are not printed.
func privateFlags(cmd *cobra.Command) []string {
	return setFlags(cmd, tokenFlag, requestTimeoutFlag)
}

// actionFlags are the flags of this command that an action needs: only roll queries registries.
func actionFlags(cmd *cobra.Command, action []string) []string {
	flags := append(privateFlags(cmd), commandFlags(cmd)...)
	if len(action) == 0 || action[0] != "roll" {
		return flags
	}
	for flag := range slices.Chunk(setFlags(cmd, "docker-config", "plain-http-registry", "registry-ca", "cloud-identity"), 2) {
		flags = append(flags, strings.Join(flag, "=")) // A boolean takes its value only in this form.
	}
	return flags
}

// setFlags are the flags that have a value, as arguments.
func setFlags(cmd *cobra.Command, names ...string) []string {
	var flags []string
	for _, name := range names {
		flag := cmd.Flag(name)
		if flag == nil || flag.Value.String() == flag.DefValue {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			flags = append(flags, "--"+name, value)
		}
	}
	return flags
}

// loopback is the only address that is served.
const loopback = "127.0.0.1"

// listen takes a port. The error about one that is in use names the next free one, and the command
// for it with the user's other flags.
func listen(port int, program string, given *pflag.FlagSet) (net.Listener, error) {
	at := func(port int) (net.Listener, error) {
		return listener.Address{Value: net.JoinHostPort(loopback, strconv.Itoa(port)), Setting: "--port"}.Listen("the pages")
	}
	open, err := at(port)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return open, err
	}
	const tries = 100
	for next := port + 1; next <= min(port+tries, 65535); next++ {
		free, err := at(next)
		if err != nil {
			continue
		}
		return nil, errors.Join(fmt.Errorf("--port %d: the port is in use; %d is free: %s", port, next,
			shellWords(append([]string{program, "ui", "--port", strconv.Itoa(next)}, otherFlags(given, "port")...))), free.Close())
	}
	return nil, fmt.Errorf("--port %d: the port is in use; without the flag, lockstep chooses a free one", port)
}

// otherFlags are the flags that the user gave, without one of them and without the token.
func otherFlags(given *pflag.FlagSet, without string) []string {
	var words []string
	given.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			word := "--" + f.Name
			if f.NoOptDefVal == "" || value != f.NoOptDefVal {
				word += "=" + value
			}
			if f.Name != without && f.Name != tokenFlag {
				words = append(words, word)
			}
		}
	})
	return words
}

// openBrowser opens an address in the user's browser, and ends with the program that opens it.
func openBrowser(ctx context.Context, address string, env Environment) {
	name, arguments := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, arguments = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	opening := exec.CommandContext(ctx, name, arguments...) //nolint:gosec // the address is our own
	if err := opening.Run(); err != nil {
		_ = say(env.Stderr, "note: %s could not open a browser; open the address yourself", name)
	}
}

// carryOut runs a command of this program that changes something. The flags and arguments are all that it obeys: the
// page shows them, and no variable may add to them.
func carryOut(ctx context.Context, flags, arguments []string, env Environment) (output string, err error) {
	if len(arguments) == 0 || !slices.Contains([]string{"hold", "release", "roll"}, arguments[0]) {
		return "", errors.New("only hold, release and roll can be run from a page")
	}
	var text bytes.Buffer
	env.Stdout, env.Stderr, env.LogLibraries, env.Environ = &text, &text, nil, nil
	env.Lookup = func(string) (string, bool) { return "", false }
	if code := Run(ctx, slices.Concat(flags, arguments), env); code != exitOK {
		return text.String(), fmt.Errorf("%s ended with exit code %d", arguments[0], code)
	}
	return text.String(), nil
}

// shellWords is a command line that a shell reads as these words. The first is the program, which
// may be two.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if i > 0 && (word == "" || strings.ContainsFunc(word, isSpecial)) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// isSpecial reports whether a shell may read a character as more than itself.
func isSpecial(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,@+%", r)
}
