package ui_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestClusterGoesAway: the pages say so and turn grey, and recover by themselves.
func TestClusterGoesAway(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.app(t, "web", held)
	s.run(t)
	s.known(t, "web")
	line, through := testkit.NewLine(t, s.Cluster.Kubeconfig(), s.Cluster.Server())
	site := s.serve(t, through)
	overview, workload := enter(t, site), enter(t, site)
	workload.workload(s, web)
	pages := []*screen{overview, workload}
	for _, v := range pages {
		v.AwaitText(testkit.Web)
		browser.Eval[bool](v.Tab, mark)
	}
	line.Cut()
	for _, v := range pages {
		v.Until(`document.body.classList.contains("gone")`)
		v.AwaitText("The cluster doesn't answer", testkit.Web) // what was known stays
	}
	s.touch(t, "web") // by a way that isn't cut
	s.AwaitRecord(t, "web", string(input.Held))
	line.Mend()
	for _, v := range pages {
		v.Until(`!document.body.classList.contains("gone") && !document.body.innerText.includes("doesn't answer")`)
		v.AwaitText(string(input.Held))
		v.same(t)
	}
}

// TestCommandEnds: a page says that the command has ended, and recovers when it runs again at the
// same address. Its own token is the new one's, so the page needs the new address then.
func TestCommandEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	site := s.serve(t, s.Cluster.Kubeconfig())
	v := &screen{Tab: browser.Open(t), site: site}
	v.Go(site.entrance.String())
	v.row(web)
	site.Signal(t, syscall.SIGINT) // with an open live connection
	if code := site.ExitCode(t, testkit.Patience); code != 0 {
		t.Errorf("Ctrl-C ends it with %d: %s", code, site.Stderr())
	}
	v.Until(`document.body.classList.contains("gone")`)
}

// markup runs a script wherever a text isn't escaped.
const markup = `</td></script><script>alert("script")</script><img src=x onerror='alert("image")'><a href="javascript:alert('link')">'"` + "`"

// TestHostileTexts: what others write into the cluster is text, and no longer or wider than a page can show.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	long := strings.Repeat("long ", 40_000)
	s.CreateApp(t)
	d := s.Deployment(t, testkit.Web)
	d.Annotations[settings.Hold] = "before" + markup + "\x1b[31mred\u202eleft" + long
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/" + markup
	d.Annotations[settings.ImagePrefix+"app"] = "registry.example/app:" + markup
	if err := s.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("w", 63)
	s.app(t, longest, auto)
	s.run(t)
	s.AwaitRecord(t, testkit.Web, "configmap/app")
	s.SetConfig(t, "app", "key", "2")
	s.AwaitRecord(t, testkit.Web, string(input.Held))
	now := metav1.NewMicroTime(time.Now())
	s.Create(t, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "hostile"}, EventTime: now, ReportingController: "lockstep", ReportingInstance: "x" + markup,
		Action: "Reload", Reason: "Reloaded" + markup[:20], Type: corev1.EventTypeWarning, Note: "noted" + markup,
		Regarding: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.Namespace, Name: testkit.Web, UID: d.UID},
	})
	site := s.serve(t, s.Cluster.Kubeconfig())
	v := enter(t, site)
	user := newVisitor(t, site)
	workload := "/workload/" + s.Namespace + "/" + web
	for page, texts := range map[string][]string{
		"/": {"before" + markup[:20]},
		"/?q=%3Cscript%3Ealert(1)%3C/script%3E%22%27": nil,
		workload: {"before" + markup[:20], "noted" + markup[:20]},
		workload + "?do=hold&reason=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E": {"<img src=x onerror=alert(1)>"},
		"/source/" + s.Namespace + "/configmap/app":                       {"before" + markup[:20]},
		"/workload/" + s.Namespace + "/deployment/" + longest:             nil,
		"/source/" + s.Namespace + "/configmap/" + longest:                nil,
	} {
		user.checkHarmless(t, page)
		v.visit(page)
		v.AwaitText(texts...)
		v.checkFits(t, page)
	}
	v.visit("/")
	v.Click("input[name=q]")
	v.Press(`<img src=x onerror=alert(1)>`)
	v.awaitRows(t)
	for _, page := range []string{
		"/image/" + s.Namespace + "?ref=%3Cscript%3Ealert(1)%3C/script%3E",
		"/workload/" + s.Namespace + "/deployment/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
		"/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
	} {
		user.checkHarmless(t, page)
	}
}

// checkHarmless: whatever a page says, it contains no markup of others, nothing that a reader wouldn't
// see, and not too much.
func (v *visitor) checkHarmless(t testing.TB, page string) {
	t.Helper()
	response, body := v.ask(t, v.site.at(page))
	if response.status == http.StatusInternalServerError {
		t.Errorf("%s: %d", page, response.status)
	}
	for _, raw := range []string{"<script>alert", "<img src=x", "\x1b", "\u202e"} {
		if strings.Contains(body, raw) {
			t.Errorf("%s contains %q", page, raw)
		}
	}
	if len(body) > 200_000 {
		t.Errorf("%s has %d bytes", page, len(body))
	}
}
