package reloader_test

import "github.com/lockstep-dev/lockstep/internal/labtest"

// values are those of the original's chart that its roles depend on.
type values struct {
	// scoped is watchGlobally: false.
	scoped bool
	// namespaceSelector is true when one is set.
	namespaceSelector                                           bool
	ignoreConfigMaps, ignoreSecrets, ignoreJobs, ignoreCronJobs bool
	isArgoRollouts, enableHA, enableCSI                         bool
}

func (v values) watchGlobally() bool { return !v.scoped }

// role is the ClusterRole, or the Role of each namespace.
func (v values) role() []labtest.Rule {
	read, change := []string{"list", "get", "watch"}, []string{"list", "get", "update", "patch"}
	var sources []string
	if !v.ignoreSecrets {
		sources = append(sources, "secrets")
	}
	if !v.ignoreConfigMaps {
		sources = append(sources, "configmaps")
	}
	rules := []labtest.Rule{
		{Groups: []string{""}, Resources: sources, Verbs: read},
		{Groups: []string{"apps"}, Resources: []string{"deployments", "daemonsets", "statefulsets"}, Verbs: change},
		{Groups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	if v.scoped || !v.ignoreCronJobs {
		rules = append(rules, labtest.Rule{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"list", "get"}})
	}
	if v.scoped || !v.ignoreJobs {
		rules = append(rules, labtest.Rule{Groups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete", "list", "get"}})
	}
	if v.watchGlobally() && v.namespaceSelector {
		rules = append(rules, labtest.Rule{Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: read})
	}
	if v.isArgoRollouts {
		rules = append(rules, labtest.Rule{Groups: []string{"argoproj.io", ""}, Resources: []string{"rollouts"}, Verbs: change})
	}
	if v.enableHA {
		rules = append(rules, labtest.Rule{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}})
	}
	if v.enableCSI {
		rules = append(rules, labtest.Rule{
			Groups: []string{"secrets-store.csi.x-k8s.io"}, Resources: []string{"secretproviderclasspodstatuses", "secretproviderclasses"}, Verbs: read,
		})
	}
	return rules
}

// metadataRole is the Role in the namespace of the installation.
func (values) metadataRole() []labtest.Rule {
	return []labtest.Rule{{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "get", "watch", "create", "update"}}}
}
