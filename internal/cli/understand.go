package cli

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
)

// understand reads the arguments of the program as "lockstep controller" would. It is false for
// another command. Files that an argument names are in the container, and are not read.
func understand(arguments []string, variable func(string) (string, bool)) (installation.Configured, bool) {
	if len(arguments) == 0 || arguments[0] != "controller" {
		return installation.Configured{}, false
	}
	o := controllerOptions{follow: follow.DefaultOptions()}
	fs := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(arguments[1:]); err != nil {
		return installation.Configured{Problem: commandline.FlagError(fs, err).Error()}, true
	}
	if err := setFromEnvironment(fs, Environment{Lookup: variable, Stderr: io.Discard}); err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	o.ownNS, o.form, o.images.elsewhere = cmp.Or(o.ownNS, "lockstep-system"), o.forms.choose(fs), true
	if err := o.validate(); err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	c, err := o.configured()
	if err != nil {
		return installation.Configured{Problem: err.Error()}, true
	}
	return c, true
}

// configured is what flags that are valid mean.
func (o *controllerOptions) configured() (installation.Configured, error) {
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return installation.Configured{}, err
	}
	others, err := o.images.reads.words()
	if err != nil {
		return installation.Configured{}, err
	}
	c := installation.Configured{
		Kinds: kinds, Watched: o.watched, Lease: o.lease(), State: o.state, Key: o.key,
		Reload: o.reload, Images: o.images.follow, Pods: o.pods, PlainHTTP: o.images.plainHTTP,
		Words: settings.Native{Defaults: settings.Defaults{Auto: o.auto, Observe: o.observe, Quiet: o.follow.Quiet}, Others: others},
		Rights: func(own string) []access.Right {
			asked := *o
			// Any namespace may have the labels, so the rights are needed in all of them.
			asked.ownNS, asked.scope = own, ""
			return slices.Concat(asked.rights(kinds), asked.watchRights(kinds), asked.keyRights(), asked.revisionRights(kinds))
		},
	}
	if o.scope != "" {
		if c.Selector, err = labels.Parse(o.scope); err != nil {
			return installation.Configured{}, fmt.Errorf("--namespace-selector %q: %w", o.scope, err)
		}
	}
	if _, port, err := net.SplitHostPort(o.server.ProbeAddr); err == nil {
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

// watchRights is what the controller lists and watches. It needs no list of them itself: what
// it may not watch shows in the watches.
func (o *controllerOptions) watchRights(kinds []kube.Kind) []access.Right {
	if o.isIdle() {
		return nil
	}
	var all []access.Right
	follow := func(r access.Right) { all = append(all, verbs(r, "list", "watch")...) }
	follow(access.Right{Resource: resource("", "namespaces"), Use: "the settings of namespaces"})
	for _, ns := range o.writtenNamespaces() {
		for _, source := range o.watchedSources() {
			follow(access.Right{Resource: resource("", source), Namespace: ns, Use: "following them", Main: true})
		}
		for _, kind := range kinds {
			follow(rightTo(kind, access.Right{Namespace: ns, Use: "following them", Main: true}))
		}
	}
	if o.moves() {
		follow(access.Right{Resource: resource("", "configmaps"), Namespace: o.ownNS, Use: "remembering what was delivered", Vital: true})
	}
	if o.images.follow && len(o.images.platforms) == 0 {
		all = append(all, verbs(access.Right{Resource: resource("", "nodes"), Use: "the platforms that images must have"}, "list")...)
	}
	return all
}

// watchedSources are those that are followed; without, ConfigMaps are watched for attaching.
// Where Secrets are attached is a matter of namespaces that are named, and shows there.
func (o *controllerOptions) watchedSources() []string {
	switch {
	case o.reload:
		return []string{"configmaps", "secrets"}
	case o.revisions.enabled:
		return []string{"configmaps"}
	}
	return nil
}

// keyRights is what the key for digests of Secrets takes.
func (o *controllerOptions) keyRights() []access.Right {
	if !o.reload {
		return nil
	}
	key := access.Right{Resource: resource("", "secrets"), Namespace: o.ownNS, Use: "the key for digests of Secrets"}
	create := verbs(key, "create")
	key.Name, key.Vital = o.key, true
	return append(verbs(key, "get"), create...)
}

// revisionRights is what attaching takes from the first revisioned object on.
func (o *controllerOptions) revisionRights(kinds []kube.Kind) []access.Right {
	if !o.revisions.enabled {
		return nil
	}
	var all []access.Right
	for _, ns := range o.writtenNamespaces() {
		for _, kind := range kinds {
			plural, _ := meta.UnsafeGuessKindToResource(kind.Revisions.GroupVersionKind)
			right := access.Right{Resource: plural.GroupResource(), Namespace: ns, Use: "attaching revisioned objects"}
			if !slices.Contains(all, verbs(right, "watch")[0]) {
				all = append(all, verbs(right, "list", "watch")...)
			}
		}
	}
	if o.observe {
		return all
	}
	return append(all, o.attachRights()...)
}
