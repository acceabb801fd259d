package ui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// TestImagePage: which containers run which digest, what the registry last answered, and what is
// quarantined.
func TestImagePage(t *testing.T) {
	t.Parallel()
	e := ask.ImageExplanation{
		Namespace: "shop", Image: "registry.example/web:1.*", Controller: ask.Controller{State: ask.Running},
		Containers: []ask.ImageUse{
			{
				InputStatus: ask.InputStatus{Input: "image/web", Delivered: "aaa111", Current: "bbb222"}, Namespace: "shop", Workload: "deployment/web", Container: "web",
				Spec: "registry.example/web:1.*", State: ask.Report{Reason: "Quarantined", Message: "its rollout failed", Ends: "a newer image", From: ask.FromRecord},
				Quarantined: []string{"bbb222"}, Healthy: "1.4@sha256:aaa111",
				Problem: &ask.Event{At: *ago(3 * time.Minute), Reason: "Unresolved", Note: "the registry answered 429"},
			},
			{
				InputStatus: ask.InputStatus{Input: "image/log", Delivered: "ccc333", Current: "ccc333"}, Namespace: "shop", Workload: "deployment/log", Container: "log",
				Spec: "registry.example/web:1.*", State: ask.Report{Reason: "InStep", From: ask.FromRecord}, Tag: "1.5", Digest: "sha256:ccc333full", Contested: true,
			},
		},
		Notes: []string{"events are not visible to you"},
	}
	v := &imageView{ImageExplanation: e, Now: noon(), Shell: shell{program: "lockstep --context lab"}}
	page := imagePage(v)
	shows(t, page, "<h1>registry.example/web:1.*", `<code class="digest">1.5@sha256:ccc333full</code>`, `<dt>Digest</dt><dd><code class="digest">bbb222</code>`,
		"3m ago", "#unresolved", "the registry answered 429", `"Quarantine">failed for this workload: bbb222</td><td data-label="Last healthy"><code class="digest">1.4@aaa111</code>`, "another writer keeps restoring its image",
		`<a href="/workload/shop/deployment/web">`, "its rollout failed", `<span class="badge in-step">in step</span>`, "events are not visible to you",
		"lockstep images -n shop --context lab", "<code>lockstep resolve &#39;registry.example/web:1.*&#39;</code>")
	for i := range 600 {
		v.Containers = append(v.Containers, ask.ImageUse{Workload: fmt.Sprintf("deployment/w%d", i)})
	}
	page = imagePage(v)
	shows(t, page, "102 further containers aren&#39;t shown")
	if n := strings.Count(string(page), "<tr>"); n != mostUsers+1 {
		t.Errorf("%d rows, want %d and the head", n, mostUsers)
	}
	shows(t, imagePage(&imageView{ImageExplanation: ask.ImageExplanation{Namespace: "shop", Image: "registry.example/web"}, Now: noon()}), "no container follows it", "the controller hasn&#39;t queried it")
}

// TestBadImage: a spec that can't be read names the annotation that is wrong.
func TestBadImage(t *testing.T) {
	t.Parallel()
	d := newDesk(func(o *Options) { o.Scope.Namespace = "shop" })
	p := d.get(t, "/image/shop?ref=registry.example%2Fweb%3A%3E%3D%3C&annotation=image.lockstep.dev%2Fweb")
	if p.status != http.StatusBadRequest {
		t.Errorf("the status is %d", p.status)
	}
	shows(t, p.body, "The annotation image.lockstep.dev/web has the value <code>registry.example/web:&gt;=&lt;</code>")
	shows(t, d.get(t, "/image/shop?ref=%3C&annotation=other").body, "image.lockstep.dev/CONTAINER")
	shows(t, d.get(t, "/image/shop").body, "The address doesn&#39;t name an image.")
}
