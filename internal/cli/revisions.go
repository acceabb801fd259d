package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// revisionsOptions are the controller's flags for objects whose names carry
// their content.
type revisionsOptions struct {
	revisions.Options
	enabled bool
	// secrets are the namespaces whose Secrets are attached too.
	secrets []string
}

// everyNamespace stands for all namespaces that are followed.
const everyNamespace = "*"

func (o *revisionsOptions) bind(fs *pflag.FlagSet) {
	o.Options = revisions.DefaultOptions()
	fs.BoolVar(&o.enabled, "revisions", true, "attach ConfigMaps and Secrets labelled "+settings.Revisioned+"=true to the revisions that use them")
	fs.StringSliceVar(&o.secrets, "revisions-secret-namespaces", []string{everyNamespace}, "namespaces whose Secrets are attached too, separated by commas; * for all that are watched, nothing for none")
	fs.DurationVar(&o.Grace, "revisions-grace", o.Grace, "age from which such an object is reported when no revision uses it")
}

// secretNamespaces are those of the flag; nil means all.
func (o *revisionsOptions) secretNamespaces() []string {
	if slices.Contains(o.secrets, everyNamespace) {
		return nil
	}
	return append([]string{}, o.secrets...)
}

// Validate lists everything that is wrong with the options.
func (o *revisionsOptions) Validate() error {
	wrong := []error{o.Options.Validate()}
	for _, ns := range o.secretNamespaces() {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			wrong = append(wrong, fmt.Errorf("--revisions-secret-namespaces: namespace %q: %s", ns, problems[0]))
		}
	}
	return errors.Join(wrong...)
}

// addRevisions adds the watches to those of the cache, and the loop, on the leader.
func (p *parts) addRevisions(mgr ctrl.Manager) (forget forgetNamespaces, err error) {
	if !p.options.revisions.enabled {
		return func(func(string) bool) {}, nil
	}
	p.ownership = lineage.NewOwnership(p.cache, lineage.OwnershipOptions{
		Now:    p.options.now,
		Report: func(s mirror.Status) { reportStatus(p.log, s) },
		// A namespace that wants to observe must be known before anything is written.
		Ready:   p.cache.Defaults,
		Secrets: p.options.revisions.secretNamespaces(),
	})
	if err := p.addAttachRights(mgr); err != nil {
		return nil, err
	}
	o := p.options.revisions.Options
	o.Observe = p.options.observe
	loop := revisions.New(o, revisions.Dependencies{
		Cluster: p.ownership,
		Owners: func(ctx context.Context, object lineage.ObjectKey, uid string, owners []metav1.OwnerReference) error {
			return lineage.AddOwners(ctx, p.client, object, uid, owners)
		},
		Observes:  p.observes,
		Announcer: p.announcer,
		Metrics:   p.options.server.Metrics,
		Log:       p.log, Now: p.options.now,
	})
	return loop.ForgetNamespaces, loop.Setup(mgr)
}

// addAttachRights asks for what attaching takes, from the first revisioned object
// on: who has none must not read of rights that are missing.
func (p *parts) addAttachRights(mgr ctrl.Manager) error {
	if p.options.observe {
		return nil
	}
	p.attachRights = access.NewRights(p.client, p.options.attachRights())
	return mgr.Add(onEveryReplica(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-p.ownership.Needed():
			return p.attachRights.Run(ctx)
		}
	}))
}

// missingToAttach are the rights that revisioned objects wait for.
func (p *parts) missingToAttach() []access.Right {
	if p.attachRights == nil {
		return nil
	}
	missing, _ := p.attachRights.Missing()
	return missing
}

// observes reports whether people only want to be told of a namespace. One that the
// labels no longer choose is not written to, whatever it asked for.
func (p *parts) observes(namespace string) bool {
	ns, known := p.cache.Namespace(namespace)
	if !known {
		return p.cache.ChoosesNamespaces()
	}
	return settings.ForWorkload(nil, ns.Annotations, settings.Defaults{}).Observe
}

// ownershipStatus is how well revisions can be followed; nothing when that is
// switched off.
func (p *parts) ownershipStatus() []mirror.Status {
	if p.ownership == nil {
		return nil
	}
	return p.ownership.Status()
}
