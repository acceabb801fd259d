package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
)

// notifyOptions are the flags of "lockstep notify".
type notifyOptions struct {
	kube      kubeOptions
	file      string
	namespace string
	secret    string
	key       string
}

func newNotify(env Environment) *cobra.Command {
	var o notifyOptions
	cmd := &cobra.Command{
		Use:   "notify test TARGET",
		Short: "Send a test message to a notification target",
		Long: `Send a test message to one notification target, immediately and independent of the routes.

The targets come from a file, or from the Secret that the controller mounts. The command checks
them as the controller does, and never prints the address and the keys of a target.

Exit codes: 0 the target accepted the message; 1 it didn't, or can't be reached; 2 wrong usage, or
a mistake in the targets.`,
		Example: `  lockstep notify test ops -f targets.yaml

  # with the Secret that the controller mounts
  lockstep notify test ops --secret lockstep-notifications -n lockstep-system`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && args[0] != "test":
				return usageError{fmt.Errorf("unknown command \"notify %s\"%s", args[0], commandline.Hint(args[0], "notify ", []string{"test"}))}
			case len(args) != 2:
				return usageError{errors.New("want \"notify test\" and the name of one target")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[1], env)
		},
		ValidArgs: []string{"test"},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	fs.StringVarP(&o.file, "filename", "f", "", "the file with the targets")
	fs.StringVar(&o.secret, "secret", "", "the Secret with the targets")
	fs.StringVar(&o.key, "key", "targets.yaml", "the key of that Secret")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the controller and its Secret (default that of the pod in which the command runs, then lockstep-system)")
	bindControllerNamespace(fs, &o.namespace)
	sameFlags(fs, "namespace", controllerNamespaceFlag)
	return cmd
}

func (o *notifyOptions) run(ctx context.Context, name string, env Environment) error {
	text, err := o.read(ctx)
	if err != nil {
		return err
	}
	config, err := notice.Parse(text)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", cmp.Or(o.file, "secret/"+o.secret), err)}
	}
	target, known := config.Targets[name]
	if !known {
		return usageError{fmt.Errorf("target %q is not known; known are %s", name, strings.Join(slices.Sorted(maps.Keys(config.Targets)), ", "))}
	}
	if err := notify.Send(ctx, target, notice.Test(name, env.Now()), env.Now()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "sent a test message to %s (%s)\n", name, target.Kind)
	return err
}

// read returns the targets.
func (o *notifyOptions) read(ctx context.Context) ([]byte, error) {
	switch {
	case (o.file == "") == (o.secret == ""):
		return nil, usageError{errors.New("name the targets with either -f FILE or --secret NAME")}
	case o.file != "":
		text, err := os.ReadFile(o.file)
		if err != nil {
			return nil, usageError{err}
		}
		return text, nil
	}
	c, err := o.kube.client()
	if err != nil {
		return nil, err
	}
	place := client.ObjectKey{Namespace: controllerNamespace(o.namespace), Name: o.secret}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, place, secret); err != nil {
		return nil, fmt.Errorf("read secret/%s in namespace %s: %w", place.Name, place.Namespace, err)
	}
	text, has := secret.Data[o.key]
	if !has {
		return nil, usageError{fmt.Errorf("secret/%s in namespace %s has no key %s", place.Name, place.Namespace, o.key)}
	}
	return text, nil
}
