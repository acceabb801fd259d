package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// installationOptions locate an installation's own objects, for commands that read them.
type installationOptions struct {
	namespace string
	state     string
	lease     string
	key       string
	quiet     time.Duration
}

func (o *installationOptions) bind(fs *pflag.FlagSet) {
	bindControllerNamespace(fs, &o.namespace)
	fs.StringVar(&o.state, "state-name", "", "name prefix of the ConfigMaps with the record (default that of the controller's Deployment, then "+ask.DefaultState+")")
	fs.StringVar(&o.lease, "lease-name", "", "name of the Lease for leader election (default that of the controller's Deployment, then "+ask.DefaultLease+")")
	hide(fs, "state-name", "lease-name")
}

// controllerNamespaceFlag is the flag for the controller's namespace.
const controllerNamespaceFlag = "controller-namespace"

func bindControllerNamespace(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, controllerNamespaceFlag, "", "namespace of the controller (default that of the pod in which the command runs, then lockstep-system)")
}

// sameSetting lists the flags that set the same as a flag.
const sameSetting = "same-setting"

// sameFlags marks flags that set the same: each of them on the command line takes precedence over the
// variables of all. Of several variables, that of the first name in the alphabet counts.
func sameFlags(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = fs.SetAnnotation(name, sameSetting, names) // It fails only for a flag that doesn't exist.
	}
}

// hide keeps flags that few installations need out of the help. The controller's Deployment has their
// values, so a command needs them only where it can't read that.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = fs.MarkHidden(name) // It fails only for a flag that doesn't exist.
	}
}

// bindEstimates adds the flags that matter for what a command works out itself.
func (o *installationOptions) bindEstimates(fs *pflag.FlagSet) {
	fs.StringVar(&o.key, "key-name", ask.DefaultKey, "name of the Secret with the key for Secret digests")
	hide(fs, "key-name")
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "the controller's quiet window, for estimates")
}

// reader answers questions about the installation.
func (o *installationOptions) reader(c client.WithWatch, kinds []kube.Kind, env Environment) *ask.Reader {
	return &ask.Reader{
		Client: c, Own: ask.Own{Namespace: o.namespace, State: o.state, Lease: o.lease, Key: o.key}, Understand: understand,
		Kinds: kinds, Quiet: o.quiet, Version: env.Version, Now: env.Now,
	}
}

// kindsPatience limits the wait for the kinds that the cluster's controller knows.
const kindsPatience = 5 * time.Second

// amongKinds calls parse with the kinds of workloads, and, if it doesn't know one, again with those that the controller
// follows too. It returns the client.
func (o *installationOptions) amongKinds(ctx context.Context, k *kubeOptions, kinds []kube.Kind, env Environment, parse func([]kube.Kind) error) (client.WithWatch, error) {
	wrong := parse(kinds)
	c, err := k.client()
	if _, unknown := errors.AsType[unknownKindError](wrong); unknown && err == nil {
		// Without a response of the cluster, the first error is the useful one.
		ctx, cancel := context.WithTimeout(ctx, kindsPatience)
		defer cancel()
		wrong = parse(o.reader(c, kinds, env).InstalledKinds(ctx))
	}
	if wrong != nil {
		return nil, usageError{wrong}
	}
	return c, err
}

// advised says where to find another controller, if there is none.
func advised(c ask.Controller) ask.Controller {
	if c.NoneFound {
		c.Note += "; name another one with --controller-namespace"
	}
	return c
}
