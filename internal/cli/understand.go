package cli

import (
	"io"
	"net"
	"path"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
)

// understand reads the arguments of a container as "lockstep controller" would. It is false for
// another program. Files that an argument names are in the container, and are not read.
func understand(arguments []string, variable func(string) (string, bool)) (doctor.Configured, bool) {
	if len(arguments) > 0 && path.Base(arguments[0]) == programName {
		arguments = arguments[1:]
	}
	if len(arguments) == 0 || arguments[0] != "controller" {
		return doctor.Configured{}, false
	}
	o := controllerOptions{follow: follow.DefaultOptions()}
	fs := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(arguments[1:]); err != nil {
		return doctor.Configured{Problem: commandline.FlagError(fs, err).Error()}, true
	}
	if err := setFromEnvironment(fs, Environment{Lookup: variable, Stderr: io.Discard}); err != nil {
		return doctor.Configured{Problem: err.Error()}, true
	}
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return doctor.Configured{Problem: err.Error()}, true
	}
	others, err := o.images.reads.words()
	if err != nil {
		return doctor.Configured{Problem: err.Error()}, true
	}
	c := doctor.Configured{
		Kinds: kinds, Watched: o.watched, LeaderElection: o.server.LeaderElection,
		Images: o.images.follow, PlainHTTP: o.images.plainHTTP,
		Words: settings.Native{Defaults: settings.Defaults{Auto: o.auto, Observe: o.observe, Quiet: o.follow.Quiet}, Others: others},
		Rights: func(own string) []access.Right {
			o.ownNS = own
			return slices.Concat(o.rights(kinds), o.watchRights(kinds), o.keyRights())
		},
	}
	if _, port, err := net.SplitHostPort(o.server.ProbeAddr); err == nil {
		c.ProbePort = port
	}
	return c, true
}

// watchRights is what the controller lists and watches. It needs no list of them itself: what
// it may not watch shows in the watches.
func (o *controllerOptions) watchRights(kinds []kube.Kind) []access.Right {
	var all []access.Right
	follow := func(r access.Right) {
		for _, r.Verb = range []string{"list", "watch"} {
			all = append(all, r)
		}
	}
	follow(access.Right{Resource: resource("", "namespaces"), Use: "the settings of namespaces"})
	for _, ns := range o.writtenNamespaces() {
		for _, source := range []string{"configmaps", "secrets"} {
			follow(access.Right{Resource: resource("", source), Namespace: ns, Use: "following them"})
		}
		for _, kind := range kinds {
			plural, _ := meta.UnsafeGuessKindToResource(kind.GroupVersionKind)
			follow(access.Right{Resource: plural.GroupResource(), Namespace: ns, Use: "following them"})
		}
	}
	follow(access.Right{Resource: resource("", "configmaps"), Namespace: o.ownNS, Use: "remembering what was delivered", Vital: true})
	return all
}

// keyRights is what the key for digests of Secrets takes.
func (o *controllerOptions) keyRights() []access.Right {
	key := access.Right{Resource: resource("", "secrets"), Namespace: o.ownNS, Use: "the key for digests of Secrets"}
	get, create := key, key
	get.Verb, get.Name, get.Vital = "get", o.key, true
	create.Verb = "create"
	return []access.Right{get, create}
}
