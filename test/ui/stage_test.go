package ui_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// What ConfigMaps and Secrets of these tests contain, and no page ever does.
const (
	configContent = "content-of-a-configmap"
	secretContent = "content-of-a-secret"
)

// The annotations of most workloads.
const (
	auto = settings.Reload + ": auto"
	held = auto + ", " + settings.Hold + ": release freeze"
)

// web is the workload that most stories are about.
const web = "deployment/" + testkit.Web

// stage is a world whose changes are those of a user with kubectl.
type stage struct {
	*testkit.World

	controller *testkit.Controller
}

// newStage skips the test where there is no browser, before it does anything else.
func newStage(t testing.TB, needs ...labtest.Component) *stage {
	t.Helper()
	labtest.Want(t, browser.Chromium)
	w := testkit.NewWorldOn(t, labtest.Shared(t, needs...))
	w.Client = client.WithFieldOwner(w.Client, "kubectl-edit")
	return &stage{World: w}
}

// run starts the controller.
func (s *stage) run(t testing.TB, flags ...string) {
	t.Helper()
	s.controller = inprocess.StartReady(t, s.World, append([]string{"--quiet", testkit.Quiet}, flags...)...)
}

// app makes a Deployment with annotations, and the ConfigMap of its name that it reads.
func (s *stage) app(t testing.TB, name, annotations string) {
	t.Helper()
	s.Make(t, fmt.Sprintf(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s}, data: {key: %[3]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {%[2]s}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: app, image: app, envFrom: [{configMapRef: {name: %[1]s}}]}]}}
`, name, annotations, configContent))
}

// known waits until workloads are on record.
func (s *stage) known(t testing.TB, deployments ...string) {
	t.Helper()
	for _, name := range deployments {
		s.AwaitRecord(t, name, "configmap/")
	}
}

// touch changes the content of a ConfigMap.
func (s *stage) touch(t testing.TB, configMap string) {
	t.Helper()
	s.SetConfig(t, configMap, "key", configContent+"2")
}

// screen is a tab on the pages of a running "lockstep ui".
type screen struct {
	*browser.Tab

	site *site
}

// site is a running "lockstep ui".
type site struct {
	*labtest.Running

	// entrance is the address that it printed, with the token.
	entrance *url.URL
}

// at is the address of a page.
func (s *site) at(page string) string { return "http://" + s.entrance.Host + page }

// serve runs "lockstep ui" with the permissions of a kubeconfig. Without a scope among the flags
// it shows the application's namespace.
func (s *stage) serve(t testing.TB, kubeconfig string, flags ...string) *site {
	t.Helper()
	args := slices.Concat([]string{"ui", "--no-open", "--kubeconfig", kubeconfig, "--controller-namespace", s.Own}, flags)
	if !slices.Contains(flags, "-A") {
		args = append(args, "-n", s.Namespace)
	}
	return visit(t, inprocess.Start(t, inprocess.Command{Args: args}))
}

// visit reads the address that a command printed.
func visit(t testing.TB, running *labtest.Running) *site {
	t.Helper()
	printed := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=[\w-]+`)
	one := &site{Running: running}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		select {
		case <-running.Done():
			t.Fatalf("lockstep ui ended: %s", running.Stderr())
		default:
		}
		found := printed.FindString(running.Stdout())
		if found == "" {
			return false, "it printed no address: " + running.Stdout() + running.Stderr()
		}
		var err error
		one.entrance, err = url.Parse(found)
		return err == nil, fmt.Sprint(err)
	})
	return one
}

// open opens the pages as a user who may do everything.
func (s *stage) open(t testing.TB, flags ...string) *screen {
	t.Helper()
	return s.openAs(t, s.Cluster.Kubeconfig(), flags...)
}

// openAs opens the pages with the permissions of a kubeconfig.
func (s *stage) openAs(t testing.TB, kubeconfig string, flags ...string) *screen {
	t.Helper()
	return enter(t, s.serve(t, kubeconfig, flags...))
}

// enter opens a site in a tab of its own. At the end nothing may have gone wrong in it, unless the cluster
// didn't answer a page in time: the page comes back by itself, and tests wait for what it shows then. Updates
// and actions don't.
func enter(t testing.TB, one *site) *screen {
	t.Helper()
	c := &screen{Tab: browser.Open(t), site: one}
	t.Cleanup(func() {
		troubles := slices.DeleteFunc(c.Troubles(), func(s string) bool {
			return strings.Contains(s, "503 (Service Unavailable)") && !strings.Contains(s, one.at("/live")) && !strings.Contains(s, one.at("/do"))
		})
		if len(troubles) > 0 {
			t.Errorf("the browser reports %q", troubles)
		}
	})
	c.Go(one.entrance.String())
	c.Await("main h1")
	return c
}

// visit goes to a page.
func (c *screen) visit(page string) {
	c.Go(c.site.at(page))
	c.Await("main h1")
}

// workload goes to the page of a workload of the application's namespace.
func (c *screen) workload(s *stage, ref string) { c.visit("/workload/" + s.Namespace + "/" + ref) }

// rows are the rows of the overview: "shop/deployment/web " and how they read.
func (c *screen) rows() []string {
	return browser.Eval[[]string](c.Tab, `[...document.querySelectorAll("main tbody tr")].map(r => r.id + " " + r.innerText.replace(/\s+/g, " "))`)
}

// awaitRows waits until the overview has rows about these workloads, and no others, in any order.
func (c *screen) awaitRows(t testing.TB, workloads ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		rows := c.rows()
		for _, w := range workloads {
			if !slices.ContainsFunc(rows, func(row string) bool { return strings.Contains(row, w+" ") }) {
				return false, fmt.Sprintf("no row about %s in %q", w, rows)
			}
		}
		return len(rows) == len(workloads), fmt.Sprintf("%d rows, want %d: %q", len(rows), len(workloads), rows)
	})
}

// row waits until the overview's row about a workload contains every text.
func (c *screen) row(workload string, texts ...string) {
	c.Until(`[...document.querySelectorAll("main tbody tr")].some(r => r.id.endsWith(%s))`, "/"+workload)
	for _, text := range texts {
		c.Until(`[...document.querySelectorAll("main tbody tr")].some(r => r.id.endsWith(%s) && r.innerText.includes(%s))`, "/"+workload, text)
	}
}
