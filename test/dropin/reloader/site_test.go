// Package reloader_test runs the product in the place of Stakater Reloader: its command line and
// its environment, on a real API server, with exactly the roles of its Helm chart.
package reloader_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func TestMain(m *testing.M) { inprocess.Main(m, 16) }

const (
	// watched is the label of the namespaces that a site watches; other tests share the control
	// plane.
	watched = "lockstep.dev/test-site"
	// quick is the quiet window of most tests.
	quick = "--quiet=100ms"
)

// site is an installation of the original: a release namespace, and an account with its roles.
type site struct {
	cluster *labtest.Cluster
	client  client.Client
	// release is the namespace of the installation.
	release string
	account *labtest.Account
	// kubeconfig acts as the account.
	kubeconfig string
}

// newSite is an installation with the chart's values that watches the namespaces with a label of its
// own. It needs components of the lab.
func newSite(t *testing.T, v values, needs ...labtest.Component) *site {
	t.Helper()
	v.namespaceSelector = true
	s := newSiteOn(t, labtest.Shared(t, needs...))
	s.grant(t, v, s.release)
	return s
}

// newSiteOn is one on a control plane, with an account that may do nothing yet.
func newSiteOn(t *testing.T, cluster *labtest.Cluster) *site {
	t.Helper()
	labtest.Story(t, "TestDefaults")
	s := &site{cluster: cluster, client: testkit.NewClient(t, cluster.Kubeconfig()), release: labtest.Namespace(t, cluster)}
	s.account = labtest.NewAccount(t, cluster, s.release)
	s.kubeconfig = s.account.Kubeconfig
	return s
}

// grant grants the account the roles of the chart's values, in the given namespaces unless they
// are for all. It waits until the authorizer knows them.
func (s *site) grant(t *testing.T, v values, namespaces ...string) {
	t.Helper()
	metadata := v.metadataRole()
	if v.watchGlobally() {
		s.account.AllowEverywhere(t, v.role()...)
		s.account.Allow(t, metadata...)
	} else {
		for _, namespace := range namespaces {
			s.grantIn(t, namespace, v.role())
		}
		s.account.Allow(t, metadata...)
	}
	own := client.InNamespace(s.release)
	testkit.AwaitListing(t, s.account, true, &corev1.ConfigMapList{}, own)
	for _, rule := range v.role() {
		if slices.Contains(rule.Resources, "deployments") {
			s.awaitRole(t, namespaces)
		}
	}
}

// grantIn grants rules in one namespace.
func (s *site) grantIn(t *testing.T, namespace string, rules []labtest.Rule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reloader-role"}}
	for _, r := range rules {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: r.Groups, Resources: r.Resources, Verbs: r.Verbs})
	}
	s.create(t, role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reloader-role-binding"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.release, Name: s.account.Name}},
	})
}

// awaitRole waits until the authorizer knows the account's role in namespaces.
func (s *site) awaitRole(t *testing.T, namespaces []string) {
	t.Helper()
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{blankList("apps/v1", "Deployment"), blankList("apps/v1", "StatefulSet")} {
			testkit.AwaitListing(t, s.account, true, list, client.InNamespace(namespace))
		}
	}
}

// namespace makes a namespace that the site watches.
func (s *site) namespace(t *testing.T, prefix string) *room {
	t.Helper()
	return s.namespaceWith(t, prefix, map[string]string{watched: s.release})
}

// namespaceWith makes one with other labels.
func (s *site) namespaceWith(t *testing.T, prefix string, labels map[string]string) *room {
	t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: labels}}
	s.create(t, o)
	t.Cleanup(func() { _ = s.client.Delete(context.WithoutCancel(t.Context()), o) })
	return &room{site: s, name: o.Name}
}

// rooms makes a namespace for each name. The program learns of namespaces by a watch of its own, so
// they have to exist before it starts.
func rooms[T any](t *testing.T, s *site, names map[string]T) map[string]*room {
	t.Helper()
	all := map[string]*room{}
	for name := range names {
		all[name] = s.namespace(t, strings.ToLower(name))
	}
	return all
}

// scene is what happens in one namespace. Scenes that need the same flags share a program.
type scene func(t *testing.T, r *room, p *program)

// play plays scenes side by side, each in a namespace of its own, under one program.
func (s *site) play(t *testing.T, scenes map[string]scene, flags ...string) {
	t.Helper()
	in := rooms(t, s, scenes)
	p := s.run(t, flags...)
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, in[name], p)
		})
	}
}

// create creates objects.
func (s *site) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
		}
	}
}

// run runs the program for the site's namespaces, until it is ready.
func (s *site) run(t *testing.T, flags ...string) *program {
	t.Helper()
	p := s.start(t, nil, append([]string{"--namespace-selector=" + watched + "=" + s.release, quick}, flags...)...)
	p.awaitWorking(t)
	return p
}

// run runs the program for this namespace alone, until it is ready.
func (r *room) run(t *testing.T, flags ...string) *program {
	t.Helper()
	return r.runWith(t, nil, flags...)
}

// runWith does the same in an environment.
func (r *room) runWith(t *testing.T, env []string, flags ...string) *program {
	t.Helper()
	p := r.start(t, env, append([]string{"--namespaces=" + r.name, quick}, flags...)...)
	p.awaitWorking(t)
	return p
}

// start starts the program in the test process, with the environment that the chart always sets.
func (s *site) start(t *testing.T, env []string, flags ...string) *program {
	t.Helper()
	p := &program{port: labtest.FreePort(t), flags: flags}
	p.Running = inprocess.Start(t, inprocess.Command{
		Program: "reloader", Args: append(slices.Clone(flags), "--metrics-addr=127.0.0.1:"+strconv.Itoa(p.port)),
		Env: append([]string{"KUBECONFIG=" + s.kubeconfig, "RELOADER_NAMESPACE=" + s.release, "RELOADER_DEPLOYMENT_NAME=reloader-reloader"}, env...),
	})
	return p
}

// program is a running drop-in.
type program struct {
	*labtest.Running
	port int
	// flags are those without the address.
	flags []string
}

// log is what it has logged so far.
func (p *program) log() string { return p.Stderr() }

// awaitWorking waits until the program delivers changes: from now on, it hears of all of them.
func (p *program) awaitWorking(t *testing.T) {
	t.Helper()
	p.awaitReady(t, "[+] deployments")
}

// awaitReady waits until /readyz answers that the program is ready, and its verbose form has these
// texts.
func (p *program) awaitReady(t *testing.T, texts ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		select {
		case <-p.Done():
			t.Fatalf("the program has ended:\n%s", p.log())
		default:
		}
		text, code := p.get(t, "/readyz?verbose")
		for _, part := range texts {
			if !strings.Contains(text, part) {
				return false, fmt.Sprintf("/readyz doesn't say %q, but %d:\n%s", part, code, text)
			}
		}
		return code == http.StatusOK, fmt.Sprintf("/readyz answers %d:\n%s", code, text)
	})
}

// get requests a path, and answers code 0 while the program doesn't serve.
func (p *program) get(t *testing.T, path string) (body string, code int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(text), response.StatusCode
}

// awaitLog waits until the program has logged a text.
func (p *program) awaitLog(t *testing.T, text string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Contains(p.log(), text), "the log doesn't contain " + text
	})
}
