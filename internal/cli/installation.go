package cli

import (
	"github.com/spf13/pflag"
)

// installationOptions say where an installation keeps its own objects, for commands that
// ask it.
type installationOptions struct {
	namespace string
	state     string
	lease     string
}

func (o *installationOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.namespace, "own-namespace", "", "namespace of the controller's own objects (default $POD_NAMESPACE, then the pod's, then lockstep-system)")
	fs.StringVar(&o.state, "state-name", defaultStateName, "start of the names of the ConfigMaps with the record")
	fs.StringVar(&o.lease, "lease-name", defaultLeaseName, "name of the Lease for leader election")
}
