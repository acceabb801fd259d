package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// permission is one verb on one resource.
type permission struct {
	// namespace is where; empty means everywhere.
	namespace string
	verb      string
	group     string
	resource  string
	// names narrow it to these objects, separated by spaces. It is one permission: whoever keeps its
	// record in several objects does not write all of them at once.
	names string
}

// what is "patch deployments.apps".
func (r permission) what() string {
	return r.verb + " " + strings.TrimSuffix(r.resource+"."+r.group, ".")
}

// String is how people would ask for it: "patch deployments.apps in shop".
func (r permission) String() string {
	name, where := "", "all namespaces"
	if r.names != "" {
		name = "/" + r.names
	}
	if r.namespace != "" {
		where = r.namespace
	}
	return fmt.Sprintf("%s%s in %s", r.what(), name, where)
}

// covers reports whether the permission allows a request.
func (r permission) covers(request permission) bool {
	return r.verb == request.verb && r.group == request.group && r.resource == request.resource &&
		(r.namespace == "" || r.namespace == request.namespace) && (r.names == "" || slices.Contains(strings.Fields(r.names), request.names))
}

// granted lists the permissions in rendered roles.
func granted(t *testing.T, objects []*unstructured.Unstructured) []permission {
	t.Helper()
	found := map[permission]bool{}
	for _, o := range objects {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.Role{} // A ClusterRole has its rules at the same place.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, r := range permissionsOf(rule) {
				r.namespace = o.GetNamespace()
				if found[r] {
					t.Errorf("granted twice: %s", r)
				}
				found[r] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

func permissionsOf(rule rbacv1.PolicyRule) []permission {
	names := strings.Join(sorted(rule.ResourceNames), " ")
	var all []permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, permission{verb: verb, group: group, resource: resource, names: names})
			}
		}
	}
	return all
}

// needed is the table of permissions: what an installation in a namespace may do, and no more.
func needed(s switches, own string) []permission {
	var all []permission
	add := func(namespaces []string, resources, verbs string, names ...string) {
		for _, namespace := range namespaces {
			for resource := range strings.FieldsSeq(resources) {
				plural, group, _ := strings.Cut(resource, ".")
				for verb := range strings.FieldsSeq(verbs) {
					all = append(all, permission{namespace, verb, group, plural, strings.Join(names, " ")})
				}
			}
		}
	}
	everywhere, here := []string{""}, []string{own}
	followed := everywhere
	if len(s.namespaces) > 0 {
		followed = s.namespaces
	}
	addOwn(add, s, here)
	if s.moves() || s.revisions {
		add(everywhere, "namespaces", "list watch")
		add(followed, "deployments.apps statefulsets.apps daemonsets.apps rollouts.argoproj.io cronjobs.batch", "list watch")
		add(followed, "replicasets.apps controllerrevisions.apps", "list")
		add(followed, "events.events.k8s.io", "create")
	}
	if s.moves() && !s.observe {
		add(followed, "deployments.apps statefulsets.apps daemonsets.apps rollouts.argoproj.io", "patch")
	}
	if s.reload {
		add(followed, "configmaps secrets", "list watch")
		add(followed, "pods", "list")
	}
	if s.images {
		addImages(add, s, followed)
	}
	if s.revisions {
		addRevisions(add, s, followed)
	}
	if s.pods && !s.observe {
		add(followed, "pods", "patch")
		add(followed, "pods/eviction", "create")
	}
	return all
}

type adder func(namespaces []string, resources, verbs string, names ...string)

func addOwn(add adder, s switches, here []string) {
	add(here, "leases.coordination.k8s.io", "create")
	add(here, "leases.coordination.k8s.io", "get update", "lockstep")
	add(here, "events", "create patch")
	if s.moves() {
		add(here, "configmaps", "list watch create")
		add(here, "configmaps", "get patch", ledger.ShardNames("lockstep-state")...)
	} else if s.revisions {
		add(here, "configmaps", "list watch")
	}
	if s.moves() || s.revisions {
		add(here, "events.events.k8s.io", "create patch")
	}
	if s.reload {
		add(here, "secrets", "create")
		add(here, "secrets", "get", "lockstep-installation-key")
	}
}

func addImages(add adder, s switches, followed []string) {
	add(followed, "serviceaccounts", "get")
	if s.listed {
		add(followed, "secrets", "get", "pull")
	} else {
		add(followed, "secrets", "get")
		add([]string{""}, "nodes", "list")
	}
	if !s.observe {
		add(followed, "cronjobs.batch", "patch")
	}
}

func addRevisions(add adder, s switches, followed []string) {
	add(followed, "replicasets.apps controllerrevisions.apps", "watch")
	add(followed, "jobs.batch", "list watch")
	if !s.reload {
		add(followed, "configmaps", "list watch")
		add(s.secrets, "secrets", "list watch")
	}
	if !s.observe {
		add(followed, "configmaps", "patch")
		add(s.secrets, "secrets", "patch")
	}
}

// TestRolesOfValues: what is switched off, or not needed, is not granted.
func TestRolesOfValues(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	const everything = "image: {repository: registry.example/lockstep}\nrevisions: {enabled: true}\n"
	for name, c := range map[string]struct {
		values     string
		has, lacks string // resources
	}{
		"AllKinds":     {"", "deployments statefulsets daemonsets rollouts cronjobs jobs replicasets controllerrevisions", "workers"},
		"Deployments":  {"builtInKinds: [deployment]", "deployments replicasets", "statefulsets daemonsets rollouts cronjobs jobs controllerrevisions"},
		"DaemonSets":   {"builtInKinds: [daemonset, rollout]", "daemonsets controllerrevisions rollouts replicasets", "deployments statefulsets cronjobs jobs"},
		"CronJobs":     {"builtInKinds: [cronjob]", "cronjobs jobs", "deployments statefulsets daemonsets rollouts replicasets controllerrevisions"},
		"Workers":      {"builtInKinds: []\nkinds: [{kind: example.com/v1/Worker=spec.template, resource: workers}]", "workers replicasets", "deployments statefulsets daemonsets rollouts cronjobs jobs"},
		"Nodes":        {"images: {enabled: true}", "nodes", ""},
		"Platform":     {"images: {enabled: true, defaultPlatform: linux/amd64}", "", "nodes"},
		"AllPlatforms": {"images: {enabled: true, platforms: [linux/amd64]}", "", "nodes"},
	} {
		got := map[string]bool{}
		for _, p := range granted(t, render(t, h, "lockstep", "lockstep-system", everything+c.values)) {
			got[p.resource] = true
		}
		for resource := range strings.FieldsSeq(c.has) {
			if !got[resource] {
				t.Errorf("%s: no permission on %s", name, resource)
			}
		}
		for resource := range strings.FieldsSeq(c.lacks) {
			if got[resource] {
				t.Errorf("%s: a permission on %s", name, resource)
			}
		}
	}
}

// words are permissions as people spell them, sorted.
func words(permissions []permission) []string {
	all := make([]string, 0, len(permissions))
	for _, r := range permissions {
		all = append(all, r.String())
	}
	return sorted(all)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
