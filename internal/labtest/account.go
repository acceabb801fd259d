package labtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// Rule grants verbs on resources, as in a Role.
type Rule struct {
	Groups    []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Names     []string `json:"resourceNames,omitempty"`
	Verbs     []string `json:"verbs"`
}

// Account is a service account with only the permissions that a test grants.
type Account struct {
	Name       string
	Namespace  string
	Kubeconfig string // the path of a kubeconfig that acts as this account

	cluster *Cluster
}

// NewAccount creates a service account with only the permissions that every account has.
func NewAccount(t testing.TB, cluster *Cluster, namespace string) *Account {
	t.Helper()
	a := &Account{Name: objectName(t.Name()), Namespace: namespace, cluster: cluster}
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	manifest := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: " + a.Name + "}}"
	if _, err := cluster.api.create(t.Context(), accounts, manifest); err != nil {
		t.Fatalf("create service account: %v", err)
	}
	request := "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 86400}}"
	answer, err := cluster.api.create(t.Context(), accounts+"/"+a.Name+"/token", request)
	if err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	if err := a.writeKubeconfig(t.TempDir(), answer); err != nil {
		t.Fatalf("write kubeconfig of service account %s: %v", a.Name, err)
	}
	return a
}

func (a *Account) writeKubeconfig(dir string, tokenRequest []byte) error {
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal(tokenRequest, &answer); err != nil {
		return err
	}
	ca, err := os.ReadFile(a.cluster.file(caFile))
	if err != nil {
		return err
	}
	a.Kubeconfig = filepath.Join(dir, "kubeconfig")
	text := kubeconfig(a.cluster.Server(), ca, fmt.Sprintf("{token: %q}", answer.Status.Token))
	return os.WriteFile(a.Kubeconfig, text, 0o600)
}

// Allow grants the account exactly these rules in its own namespace. It replaces an earlier
// Allow.
func (a *Account) Allow(t testing.TB, rules ...Rule) {
	t.Helper()
	a.grant(t, rbacPath+"/namespaces/"+a.Namespace+"/", "Role", rules)
}

// AllowEverywhere grants the account these rules in all namespaces and on cluster-scoped
// objects. It replaces an earlier AllowEverywhere.
func (a *Account) AllowEverywhere(t testing.TB, rules ...Rule) {
	t.Helper()
	a.grant(t, rbacPath+"/", "ClusterRole", rules)
	t.Cleanup(func() {
		a.cluster.forget(t, rbacPath+"/clusterroles/"+a.Name)
		a.cluster.forget(t, rbacPath+"/clusterrolebindings/"+a.Name)
	})
}

// grant applies a role and its binding, both with the name of the account.
func (a *Account) grant(t testing.TB, parent, kind string, rules []Rule) {
	t.Helper()
	list, err := json.Marshal(append([]Rule{}, rules...))
	if err != nil {
		t.Fatalf("word the rules for %s: %v", a.Name, err)
	}
	role := fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, rules: %s}", kind, a.Name, list)
	binding := fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: %sBinding, metadata: {name: %s},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s},
		subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]}`, kind, a.Name, kind, a.Name, a.Name, a.Namespace)
	for plural, manifest := range map[string]string{resource(kind): role, resource(kind + "Binding"): binding} {
		if err := a.cluster.api.apply(t.Context(), parent+plural+"/"+a.Name, manifest); err != nil {
			t.Fatalf("grant permissions to %s: %v", a.Name, err)
		}
	}
}

func resource(kind string) string {
	return map[string]string{
		"Role": "roles", "RoleBinding": "rolebindings",
		"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	}[kind]
}
