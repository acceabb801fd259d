package ui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// picturesEnv names the directory for pictures of the pages. Where it is set, the namespaces
// have names that read well.
const picturesEnv = "LOCKSTEP_SCREENSHOTS"

// town is a stage with two namespaces and workloads in every group of states.
type town struct {
	*stage

	payments *stage
	registry *testkit.Registry
	// everything selects the town's workloads among those of all tests.
	everything []string
}

// newTown brings each workload into its state.
func newTown(t *testing.T) *town {
	t.Helper()
	shop := newStage(t, labtest.KWOK)
	payments := &stage{World: &testkit.World{Cluster: shop.Cluster, Client: shop.Client, Own: shop.Own}}
	everything := []string{"-A", "-l", "town=" + shop.Own}
	if os.Getenv(picturesEnv) == "" {
		payments.Namespace = labtest.Namespace(t, shop.Cluster)
	} else { // of nothing else
		shop.Namespace, payments.Namespace, everything = namespace(t, shop, "shop"), namespace(t, shop, "payments"), []string{"-A"}
	}
	c := &town{stage: shop, payments: payments, registry: testkit.StartRegistry(t), everything: everything}
	c.build(t)
	c.run(t, append(c.registry.Flags(), "--namespaces", payments.Namespace, "--leader-elect=true", "--lease-duration", "1m")...)
	c.live(t)
	return c
}

func namespace(t *testing.T, s *stage, name string) string {
	t.Helper()
	one := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.Client.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(t.Context()), one) })
	return name
}

// shopfront has three pods that load everything that can be followed.
const shopfront = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: web-settings}, data: {key: %[3]s}}
---
{apiVersion: v1, kind: Secret, metadata: {name: db-password}, stringData: {key: %[4]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {town: %[1]s}, annotations: {lockstep.dev/reload: auto, image.lockstep.dev/app: '%[2]s/shop/web:1.4.*'}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: app
          image: %[2]s/shop/web:1.4.0
          envFrom: [{secretRef: {name: db-password}}]
          volumeMounts: [{name: settings, mountPath: /etc/web}]
      volumes: [{name: settings, configMap: {name: web-settings}}]
`

// build makes the workloads, before the controller runs.
func (c *town) build(t *testing.T) {
	t.Helper()
	c.registry.Push(t, "shop/web", "1.4.0")
	c.Make(t, fmt.Sprintf(shopfront, c.Own, c.registry.Address, configContent, secretContent))
	for _, name := range []string{"checkout", "catalog", "search"} {
		c.citizen(t, c.stage, name, auto)
	}
	c.citizen(t, c.payments, "api", auto+", "+settings.Quiet+": 1h")
	c.citizen(t, c.payments, "ledger", held)
	c.citizen(t, c.payments, "fraud", auto+", "+settings.Quiet+": soon")
	c.citizen(t, c.payments, "invoices", settings.Reload+": configmap/none-*")
	c.citizen(t, c.payments, "mailer", auto)
}

// citizen is an app that belongs to the town.
func (c *town) citizen(t *testing.T, s *stage, name, annotations string) {
	t.Helper()
	s.app(t, name, annotations)
	s.Patch(t, testkit.Blank(t, "deployment/"+name), name, fmt.Sprintf(`{"metadata":{"labels":{"town":%q}}}`, c.Own))
}

// live is what happens while the controller runs.
func (c *town) live(t *testing.T) {
	t.Helper()
	c.AwaitRecord(t, "web", "configmap/web-settings", "secret/db-password", "image/app")
	c.known(t, "checkout", "catalog", "search")
	c.payments.known(t, "api", "ledger", "mailer")
	c.payments.touch(t, "api")
	c.payments.touch(t, "ledger")
	c.touch(t, "checkout")
	shown := c.AwaitRollout(t, "web", "") // of the image
	for i := range 3 {
		c.Revisions(t, "web") // two templates in quick succession would be one revision
		c.SetConfig(t, "web-settings", "key", configContent+strings.Repeat("+", i+1))
		shown = c.AwaitRollout(t, "web", shown)
		c.awaitHealthy(t, "web")
	}
	c.undo(t, "checkout")
	c.payments.AwaitRecord(t, "api", string(input.QuietWindow))
	c.payments.AwaitRecord(t, "ledger", string(input.Held))
	c.Annotate(t, "web", settings.Hold, "release freeze until Monday")
	c.SetSecret(t, "db-password", "key", secretContent+"2")
	c.AwaitRecord(t, "web", string(input.Held))
}

// undo takes back a change that was rolled out.
func (c *town) undo(t *testing.T, name string) {
	t.Helper()
	shown := c.AwaitRollout(t, name, "")
	c.Revisions(t, name)
	c.AwaitRecord(t, name, strings.TrimPrefix(shown, "configmap/"+name+"~"))
	c.Undo(t, name, "")
	c.AwaitRecord(t, name, string(input.Undone))
}

// awaitHealthy waits until all pods run the newest revision.
func (c *town) awaitHealthy(t *testing.T, name string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := c.Deployment(t, name)
		s := d.Status
		done := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.AvailableReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas
		return done, fmt.Sprintf("%s has the status %+v", name, s)
	})
}

// pages are the addresses of all views.
func (c *town) pages() map[string]string {
	return map[string]string{
		"Overview": "/",
		"Workload": "/workload/" + c.Namespace + "/deployment/web",
		"Source":   "/source/" + c.Namespace + "/configmap/web-settings",
		"Secret":   "/source/" + c.Namespace + "/secret/db-password",
		"Image":    "/image/" + c.Namespace + "?ref=" + c.registry.Address + "/shop/web:1.4.*",
		"Confirm":  "/workload/" + c.Namespace + "/deployment/web?do=release&reason=done",
		"NoPage":   "/nowhere",
	}
}

// TestViews shows what each view says of the same town.
func TestViews(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	site := c.serve(t, c.Cluster.Kubeconfig(), c.everything...)
	t.Run("Overview", func(t *testing.T) {
		t.Parallel()
		v := enter(t, site)
		v.row("deployment/web", c.Namespace, string(input.Held), "secret/db-password")
		rows, before := v.rows(), -1
		// Within a group the order is that of the namespaces, whose names are random.
		for _, group := range [][]string{{"fraud"}, {"checkout"}, {"ledger", "web"}, {"api"}, {"invoices"}, {"catalog", "search", "mailer"}} {
			last := before
			for _, name := range group {
				at := indexOf(rows, "deployment/"+name+" ")
				if at <= before {
					t.Errorf("%s is row %d, want it after row %d: trouble first in %q", name, at, before, rows)
				}
				last = max(last, at)
			}
			before = last
		}
		for _, words := range []string{"1 failed", "1 undone", "2 held", "1 waiting", "1 behind", "3 in step"} {
			number, group, _ := strings.Cut(words, " ")
			v.Until(`[...document.querySelectorAll("main a[href*='state=']")].some(a => { const w = a.textContent + " " + (a.ariaLabel || "") + " " + a.title; return w.includes(%s) && w.includes(%s) })`, number, group)
		}
	})
	t.Run("Workload", func(t *testing.T) {
		t.Parallel()
		v := enter(t, site)
		v.visit(c.pages()["Workload"])
		v.AwaitText("deployment/web", "configmap/web-settings", "secret/db-password", "release freeze until Monday",
			"kubectl-edit", "Revision 4", "Revision 1", "3 pods run it", settings.Reload, "rollout undo", "explain deployment/web")
		input := browser.Eval[string](v.Tab, `document.getElementById("input-secret/db-password").innerText`)
		if digests := fields(input); len(digests) < 2 {
			t.Errorf("the Secret has no delivered and current digest: %q", input)
		}
	})
	t.Run("Source", func(t *testing.T) {
		t.Parallel()
		v := enter(t, site)
		v.visit(c.pages()["Source"])
		v.AwaitText("configmap/web-settings", "deployment/web", string(input.Held))
	})
	t.Run("Image", func(t *testing.T) {
		t.Parallel()
		v := enter(t, site)
		v.visit(c.pages()["Image"])
		v.AwaitText("shop/web", "1.4.*", "deployment/web", "sha256:")
	})
	t.Run("NoPage", func(t *testing.T) {
		t.Parallel()
		v := &screen{Tab: browser.Open(t), site: site}
		v.Go(site.entrance.String())
		v.visit(c.pages()["NoPage"])
		v.AwaitText("no such page")
	})
	for name, page := range c.pages() {
		t.Run("Accessible"+name, func(t *testing.T) {
			t.Parallel()
			checkAccessible(t, site, page)
		})
	}
	t.Run("Pictures", func(t *testing.T) {
		t.Parallel()
		c.takePictures(t, site)
	})
	t.Run("NoContent", func(t *testing.T) {
		t.Parallel()
		c.checkNoContent(t, site)
	})
}

// fields are the digests in a text.
func fields(words string) []string {
	var digests []string
	for word := range strings.FieldsSeq(words) {
		if len(word) >= 7 && strings.Trim(word, "0123456789abcdef") == "" {
			digests = append(digests, word)
		}
	}
	return digests
}

func indexOf(rows []string, part string) int {
	for i, row := range rows {
		if strings.Contains(row, part) {
			return i
		}
	}
	return -1
}

// checkNoContent looks for the content of ConfigMaps and Secrets in all that the server sends.
func (c *town) checkNoContent(t *testing.T, site *site) {
	t.Helper()
	user := newVisitor(t, site)
	for name, page := range c.pages() {
		if name == "NoPage" {
			continue
		}
		body := user.read(t, page)
		if !strings.Contains(body, "web") {
			t.Errorf("%s says nothing of web: %s", page, body)
		}
		for _, content := range []string{configContent, secretContent, "Y29udGVudC1vZi1hLXNlY3JldA"} {
			if strings.Contains(body, content) {
				t.Errorf("%s contains %q", page, content)
			}
		}
	}
}

// takePictures takes pictures of two views, light and dark.
func (c *town) takePictures(t *testing.T, site *site) {
	t.Helper()
	v := enter(t, site)
	for _, view := range []string{"Overview", "Workload"} {
		for _, scheme := range []string{"light", "dark"} {
			v.Scheme(scheme)
			v.visit(c.pages()[view])
			v.AwaitText("web", "db-password")
			picture := v.Picture()
			if dir := os.Getenv(picturesEnv); dir != "" {
				file := filepath.Join(dir, fmt.Sprintf("ui-%s-%s.png", strings.ToLower(view), scheme))
				if err := os.WriteFile(file, picture, 0o644); err != nil {
					t.Error(err)
				}
			}
			checkPicture(t, view+" "+scheme, picture, scheme == "dark")
		}
	}
}
