package cli

import (
	"cmp"
	"io"
	"net"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// understand parses the arguments of the program as "lockstep controller" would. It is false for
// another command. Files that an argument names are in the container, and aren't read.
func understand(arguments []string, variable func(string) (string, bool)) (installation.Configured, bool) {
	if len(arguments) == 0 || arguments[0] != controllerName {
		return installation.Configured{}, false
	}
	o := controllerOptions{rollouts: rollouts.SafeOptions()}
	fs := pflag.NewFlagSet(controllerName, pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(arguments[1:]); err != nil {
		return installation.Configured{Problem: commandline.FlagError(fs, err).Error()}, true
	}
	if err := setFromEnvironment(controllerName, fs, Environment{Lookup: variable, Stderr: io.Discard}); err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	o.own.Namespace, o.images.elsewhere = cmp.Or(o.own.Namespace, "lockstep-system"), true
	if err := o.validate(); err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	c, err := o.configured()
	if err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	return c, true
}

// configured converts valid flags.
func (o *controllerOptions) configured() (installation.Configured, error) {
	options, err := o.options()
	if err != nil {
		return installation.Configured{}, err
	}
	c := installation.Configured{
		Kinds: options.Scope.Kinds, Watched: o.scope.namespaces, Selector: options.Scope.Selector,
		Own:    installation.Own{Lease: o.lease(), State: o.own.Record, Key: o.own.Key, NotifyFile: options.NotifyFile},
		Reload: o.reload, Images: o.images.follow, Pods: o.pods, PlainHTTP: o.images.plainHTTP,
		Words: options.Words,
		Pace: installation.Pace{
			Ramp: o.rollouts.Safety.Ramp, AtMost: o.rollouts.Safety.MaxRolling, StopAfter: o.rollouts.Safety.StopAfter, Shared: options.Shared, Window: o.rollouts.Safety.Window,
		},
		Permissions: func(own string) []access.Permission {
			asked := options
			asked.Own.Namespace = own
			return asked.Needs()
		},
	}
	if _, port, err := net.SplitHostPort(o.server.ProbeAddr.Value); err == nil {
		c.ProbePort = port
	}
	return c, nil
}

// lease is that of the leader, empty without leader election.
func (o *controllerOptions) lease() string {
	if !o.server.LeaderElection {
		return ""
	}
	return o.server.LeaseName
}
