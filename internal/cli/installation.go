package cli

import (
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
	fs.StringVar(&o.namespace, "own-namespace", "", "namespace of the controller's own objects (default $POD_NAMESPACE, then the pod's, then lockstep-system)")
	fs.StringVar(&o.state, "state-name", "", "start of the names of the ConfigMaps with the record (default that of the controller's Deployment, then "+ask.DefaultState+")")
	fs.StringVar(&o.lease, "lease-name", "", "name of the Lease for leader election (default that of the controller's Deployment, then "+ask.DefaultLease+")")
}

// bindEstimates adds the flags that matter for what a command works out itself.
func (o *installationOptions) bindEstimates(fs *pflag.FlagSet) {
	fs.StringVar(&o.key, "key-name", ask.DefaultKey, "name of the Secret with the key for digests of Secrets")
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "the controller's quiet window, for estimates")
}

// reader answers questions about the installation.
func (o *installationOptions) reader(c client.WithWatch, kinds []kube.Kind, env Environment) *ask.Reader {
	return &ask.Reader{
		Client: c, Own: ask.Own{Namespace: o.namespace, State: o.state, Lease: o.lease, Key: o.key}, Understand: understand,
		Kinds: kinds, Quiet: o.quiet, Version: env.Version, Now: env.Now,
	}
}

// advised says where to find another controller, if there is none.
func advised(c ask.Controller) ask.Controller {
	if c.NoneFound {
		c.Note += "; name another one with --own-namespace"
	}
	return c
}
