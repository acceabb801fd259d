package run

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Needs is every permission that the controller needs. Where namespaces are selected by label,
// any namespace may have these labels, so the permissions are needed in all.
func (o *Options) Needs() []access.Permission {
	asked := *o
	asked.Scope.Selector = nil
	return slices.Concat(asked.permissions(), asked.watchPermissions(), asked.keyPermissions(), asked.revisionPermissions())
}

// permissions is what the controller needs besides listing and watching, for which the watches
// report missing permissions. Where namespaces are selected by label it isn't known beforehand
// which namespaces need them, so only the controller's own namespace is checked.
func (o *Options) permissions() []access.Permission {
	all := o.ownPermissions()
	if o.IsIdle() {
		return all
	}
	for _, ns := range o.writtenNamespaces() {
		if o.rollsOut() {
			all = append(all, o.rolloutPermissions(ns)...)
		}
		all = append(all, access.Permission{Verb: "create", Resource: resource("events.k8s.io", "events"), Namespace: ns, Use: "events on workloads"})
	}
	return all
}

// ownPermissions are those in its own namespace.
func (o *Options) ownPermissions() []access.Permission {
	var all []access.Permission
	if o.rollsOut() {
		all = append(all, o.recordPermissions()...)
	}
	if o.Server.LeaderElection {
		lease := access.Permission{Resource: resource("coordination.k8s.io", "leases"), Namespace: o.Own.Namespace, Use: "leader election", Vital: true}
		all = append(all, lease.For("create")...)
		lease.Name = o.Server.LeaseName
		all = append(all, lease.For("get", "update")...)
	}
	return all
}

// recordPermissions are the permissions for the record, besides watching it. A role lists all
// ConfigMaps of the record together, so checking one of them is enough.
func (o *Options) recordPermissions() []access.Permission {
	names := ledger.ShardNames(o.Own.Record)
	record := access.Permission{Resource: resource("", "configmaps"), Namespace: o.Own.Namespace, Use: "the record of delivered versions", Vital: true}
	all := record.For("create")
	record.Name, record.Use = names[0], fmt.Sprintf("%s, in %s to %s", record.Use, names[0], names[len(names)-1])
	return append(all, record.For("get", "patch")...)
}

// rolloutPermissions are the permissions for rolling out the workloads of a namespace.
func (o *Options) rolloutPermissions(ns string) []access.Permission {
	kinds := o.Scope.Kinds
	if !o.Images.Enabled { // Then kinds that start their pods by themselves are never written.
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kube.Kind) bool { return k.StartsPods() })
	}
	var all []access.Permission
	need := func(r access.Permission, wanted ...string) { all = append(all, r.For(wanted...)...) }
	if !o.observes() {
		for _, kind := range kinds {
			need(access.ToKind(kind, access.Permission{Namespace: ns, Follows: kind.ResourceName(ns), Use: "rolling them out", Main: true}), "patch")
		}
	}
	if o.Images.Enabled {
		need(access.Permission{Resource: resource("", "serviceaccounts"), Namespace: ns, Use: "finding the pull secrets of images"}, "get")
		for _, name := range namesOrAll(o.Images.PullSecrets) {
			need(access.Permission{Resource: resource("", "secrets"), Namespace: ns, Name: name, Use: "reading the pull secrets of images"}, "get")
		}
	}
	if o.Reload && len(revisionResources(kinds)) > 0 {
		need(access.Permission{Resource: resource("", "pods"), Namespace: ns, Use: "detecting what other rollouts have loaded"}, "list")
	}
	if o.Rollout.Pods && !o.observes() {
		need(access.Permission{Resource: resource("", "pods"), Namespace: ns, Use: "the strategies evict and refresh"}, "list", "patch")
		need(access.Permission{Resource: resource("", "pods/eviction"), Namespace: ns, Use: "the strategy evict"}, "create")
	}
	for _, revisions := range revisionResources(kinds) {
		need(access.Permission{Resource: revisions, Namespace: ns, Use: "detecting undone changes"}, "list")
	}
	return all
}

// namesOrAll is a permission's names; the empty one means every object.
func namesOrAll(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// revisionResources are the resources of the kinds' revisions, each once.
func revisionResources(kinds []kube.Kind) []schema.GroupResource {
	var all []schema.GroupResource
	for _, kind := range kinds {
		if kind.Revisions.Transient { // They don't show the delivered versions.
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind.Revisions.GroupVersionKind)
		if !slices.Contains(all, plural.GroupResource()) {
			all = append(all, plural.GroupResource())
		}
	}
	return all
}

// attachPermissions are the permissions for attaching revisioned objects. Without such objects
// they aren't needed.
func (o *Options) attachPermissions() []access.Permission {
	var all []access.Permission
	need := func(kind, ns string) {
		all = append(all, access.Permission{Verb: "patch", Resource: resource("", kind), Namespace: ns, Use: "attaching revisioned objects"})
	}
	secrets := ownership.Options{Secrets: o.Revisions.Secrets}
	for _, ns := range o.writtenNamespaces() {
		need("configmaps", ns)
		for _, within := range secrets.SecretsIn(ns) {
			need("secrets", within)
		}
	}
	return all
}

func (o *Options) writtenNamespaces() []string {
	switch {
	case o.Scope.Selector != nil:
		return nil
	case len(o.Scope.Namespaces) == 0:
		return []string{corev1.NamespaceAll}
	}
	return o.Scope.Namespaces
}

func resource(group, name string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: name}
}

// watchPermissions are the resources that the controller lists and watches. The controller
// itself doesn't check them: its watches report missing permissions.
func (o *Options) watchPermissions() []access.Permission {
	if o.IsIdle() {
		return nil
	}
	var all []access.Permission
	follow := func(r access.Permission) { all = append(all, r.For("list", "watch")...) }
	follow(access.Permission{Resource: resource("", "namespaces"), Use: "namespace settings"})
	for _, ns := range o.writtenNamespaces() {
		for _, source := range o.watchedSources() {
			follow(access.Permission{Resource: resource("", source), Namespace: ns, Use: "following them", Main: true})
		}
		for _, kind := range o.Scope.Kinds {
			follow(access.ToKind(kind, access.Permission{Namespace: ns, Use: "following them", Main: true}))
		}
	}
	if o.rollsOut() {
		follow(access.Permission{Resource: resource("", "configmaps"), Namespace: o.Own.Namespace, Use: "the record of delivered versions", Vital: true})
	} else {
		follow(access.Permission{Resource: resource("", "configmaps"), Namespace: o.Own.Namespace, Name: settings.StopName, Use: "the kill switch", Vital: true})
	}
	if o.Images.Enabled && o.Images.fixedPlatforms(o.Words.Defaults.Platform) == nil {
		all = append(all, (access.Permission{Resource: resource("", "nodes"), Use: "the nodes' platforms"}).For("list")...)
	}
	return all
}

// watchedSources are the followed kinds of sources; without any, ConfigMaps are watched for
// attaching. Secrets are attached only in the configured namespaces, and are checked there.
func (o *Options) watchedSources() []string {
	switch {
	case o.Reload:
		return []string{"configmaps", "secrets"}
	case o.Revisions.Enabled:
		return []string{"configmaps"}
	}
	return nil
}

// keyPermissions are the permissions for the key of Secret digests.
func (o *Options) keyPermissions() []access.Permission {
	if !o.Reload {
		return nil
	}
	key := access.Permission{Resource: resource("", "secrets"), Namespace: o.Own.Namespace, Use: "the key for Secret digests"}
	create := key.For("create")
	key.Name, key.Vital = o.Own.Key, true
	return append(key.For("get"), create...)
}

// revisionPermissions are the permissions for attaching, once the first revisioned object
// exists.
func (o *Options) revisionPermissions() []access.Permission {
	if !o.Revisions.Enabled {
		return nil
	}
	var all []access.Permission
	for _, ns := range o.writtenNamespaces() {
		for _, kind := range o.Scope.Kinds {
			plural, _ := meta.UnsafeGuessKindToResource(kind.Revisions.GroupVersionKind)
			permission := access.Permission{Resource: plural.GroupResource(), Namespace: ns, Use: "attaching revisioned objects"}
			if !slices.Contains(all, permission.For("watch")[0]) {
				all = append(all, permission.For("list", "watch")...)
			}
		}
	}
	if o.observes() {
		return all
	}
	return append(all, o.attachPermissions()...)
}
