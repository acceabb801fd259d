package labtest

import (
	"encoding/json"
	"errors"
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
	token   string // the token file, if the kubeconfig names one
	bound   string // the Secret that the token in the file is bound to
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
	a.writeKubeconfig(t, fmt.Sprintf("{token: %q}", a.requestToken(t, "")))
	return a
}

// requestToken requests a token with further fields of the request.
func (a *Account) requestToken(t testing.TB, more string) string {
	t.Helper()
	request := "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 86400" + more + "}}"
	raw, err := a.cluster.api.create(t.Context(), "/api/v1/namespaces/"+a.Namespace+"/serviceaccounts/"+a.Name+"/token", request)
	var answer struct{ Status struct{ Token string } }
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		t.Fatalf("request a token of service account %s: %v", a.Name, err)
	}
	return answer.Status.Token
}

// writeKubeconfig writes the kubeconfig with these credentials.
func (a *Account) writeKubeconfig(t testing.TB, user string) {
	t.Helper()
	ca, err := os.ReadFile(a.cluster.file(caFile))
	if err == nil {
		a.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		err = os.WriteFile(a.Kubeconfig, kubeconfig(a.cluster.Server(), ca, user), 0o600)
	}
	if err != nil {
		t.Fatalf("write kubeconfig of service account %s: %v", a.Name, err)
	}
}

// RotateToken puts a new token into a file that the kubeconfig names, as the kubelet does for a
// pod. When it returns, the API server rejects the token before it.
func (a *Account) RotateToken(t testing.TB) {
	t.Helper()
	secrets, before := "/api/v1/namespaces/"+a.Namespace+"/secrets", a.bound
	a.bound = objectName(t.Name())
	raw, err := a.cluster.api.create(t.Context(), secrets, "{apiVersion: v1, kind: Secret, metadata: {name: "+a.bound+"}}")
	var secret struct{ Metadata struct{ UID string } }
	if err == nil {
		err = json.Unmarshal(raw, &secret)
	}
	if err != nil {
		t.Fatalf("create a Secret for a token: %v", err)
	}
	token := a.requestToken(t, fmt.Sprintf(", boundObjectRef: {apiVersion: v1, kind: Secret, name: %s, uid: %s}", a.bound, secret.Metadata.UID))
	if a.token == "" {
		a.token = filepath.Join(t.TempDir(), "token")
		a.writeKubeconfig(t, fmt.Sprintf("{tokenFile: %q}", a.token))
	}
	old, err := replaceFile(a.token, token)
	if err != nil {
		t.Fatalf("rotate a token: %v", err)
	}
	if before == "" {
		return
	}
	// A token ends with the object that it is bound to.
	if err := a.cluster.api.delete(t.Context(), secrets+"/"+before); err != nil {
		t.Fatalf("delete the Secret of the token before: %v", err)
	}
	review := fmt.Sprintf("{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: %q}}", old)
	Eventually(t, namespaceTimeout, func() (bool, string) {
		raw, err := a.cluster.api.create(t.Context(), "/apis/authentication.k8s.io/v1/tokenreviews", review)
		var answer struct{ Status struct{ Authenticated bool } }
		if err == nil {
			err = json.Unmarshal(raw, &answer)
		}
		return err == nil && !answer.Status.Authenticated, "the API server accepts the token before: " + errorText(err)
	})
}

// replaceFile replaces a file's content in one step, and returns the content before it.
func replaceFile(name, content string) (before string, err error) {
	raw, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		return "", err
	}
	return string(raw), os.Rename(name+".new", name)
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
