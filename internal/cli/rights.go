package cli

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
)

// rights is what the controller does besides listing and watching, which show by
// themselves. Where namespaces are chosen by their labels it is not known beforehand
// where it has to be allowed, so there only its own namespace is asked about.
func (o *controllerOptions) rights(kinds []kube.Kind) []access.Right {
	all := o.ownRights()
	if o.isIdle() {
		return all
	}
	for _, ns := range o.writtenNamespaces() {
		if o.moves() {
			all = append(all, o.movingRights(ns, kinds)...)
		}
		all = append(all, verbs(access.Right{Resource: resource("events.k8s.io", "events"), Namespace: ns, Use: "telling people on the workload"}, "create", "patch")...)
	}
	return all
}

// ownRights are those in its own namespace.
func (o *controllerOptions) ownRights() []access.Right {
	var all []access.Right
	if o.moves() {
		all = append(all, o.recordRights()...)
	}
	if o.server.LeaderElection {
		lease := access.Right{Resource: resource("coordination.k8s.io", "leases"), Namespace: o.ownNS, Use: "leader election", Vital: true}
		all = append(all, verbs(lease, "create")...)
		lease.Name = o.server.LeaseName
		all = append(all, verbs(lease, "get", "update")...)
	}
	return all
}

// recordRights are what the record takes, besides following it. A role names the ConfigMaps
// of the record all together, so that one of them stands for all.
func (o *controllerOptions) recordRights() []access.Right {
	names := ledger.ShardNames(o.state)
	record := access.Right{Resource: resource("", "configmaps"), Namespace: o.ownNS, Use: "remembering what was delivered", Vital: true}
	all := verbs(record, "create")
	record.Name, record.Use = names[0], fmt.Sprintf("%s, in %s to %s", record.Use, names[0], names[len(names)-1])
	return append(all, verbs(record, "get", "patch")...)
}

// movingRights are what moving the workloads of a namespace takes.
func (o *controllerOptions) movingRights(ns string, kinds []kube.Kind) []access.Right {
	if !o.images.follow { // Then what starts its pods by itself is never written.
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kube.Kind) bool { return k.StartsPods() })
	}
	var all []access.Right
	need := func(r access.Right, wanted ...string) { all = append(all, verbs(r, wanted...)...) }
	if !o.observe {
		for _, kind := range kinds {
			need(rightTo(kind, access.Right{Namespace: ns, Follows: kind.ResourceName(ns), Use: "rolling them", Main: true}), "patch")
		}
	}
	if o.images.follow {
		need(access.Right{Resource: resource("", "serviceaccounts"), Namespace: ns, Use: "finding the pull secrets of images"}, "get")
		for _, name := range namesOrAll(o.images.pullSecrets) {
			need(access.Right{Resource: resource("", "secrets"), Namespace: ns, Name: name, Use: "reading the pull secrets of images"}, "get")
		}
	}
	if o.pods && !o.observe {
		need(access.Right{Resource: resource("", "pods"), Namespace: ns, Use: "the strategies evict and refresh"}, "list", "patch")
		need(access.Right{Resource: resource("", "pods/eviction"), Namespace: ns, Use: "the strategy evict"}, "create")
	}
	for _, revisions := range revisionResources(kinds) {
		need(access.Right{Resource: revisions, Namespace: ns, Use: "noticing what was undone meanwhile"}, "list")
	}
	return all
}

// rightTo is the right to the objects of a kind. The resources of the kinds that Lockstep knows
// are called as one would guess.
func rightTo(kind kube.Kind, r access.Right) access.Right {
	plural, _ := meta.UnsafeGuessKindToResource(kind.GroupVersionKind)
	r.Resource = plural.GroupResource()
	if kind.Custom {
		r.Kind = kind.GroupKind()
	}
	return r
}

// namesOrAll is a right's names; the empty one means every object.
func namesOrAll(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// verbs is the right with each of the verbs.
func verbs(r access.Right, wanted ...string) []access.Right {
	var all []access.Right
	for _, r.Verb = range wanted {
		all = append(all, r)
	}
	return all
}

// revisionResources are what the revisions of the kinds are, each once.
func revisionResources(kinds []kube.Kind) []schema.GroupResource {
	var all []schema.GroupResource
	for _, kind := range kinds {
		if kind.Revisions.Transient { // They tell nothing of what the workload was given.
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind.Revisions.GroupVersionKind)
		if !slices.Contains(all, plural.GroupResource()) {
			all = append(all, plural.GroupResource())
		}
	}
	return all
}

// attachRights is what attaching revisioned objects takes. Who has none of those
// needs none of these.
func (o *controllerOptions) attachRights() []access.Right {
	var all []access.Right
	need := func(kind, ns string) {
		all = append(all, access.Right{Verb: "patch", Resource: resource("", kind), Namespace: ns, Use: "attaching revisioned objects"})
	}
	secrets := lineage.OwnershipOptions{Secrets: o.revisions.secretNamespaces()}
	for _, ns := range o.writtenNamespaces() {
		need("configmaps", ns)
		for _, within := range secrets.SecretsIn(ns) {
			need("secrets", within)
		}
	}
	return all
}

func (o *controllerOptions) writtenNamespaces() []string {
	switch {
	case o.scope != "":
		return nil
	case len(o.watched) == 0:
		return []string{corev1.NamespaceAll}
	}
	return o.watched
}

func resource(group, name string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: name}
}
