package ui_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// visitor asks a site for pages without a browser.
type visitor struct {
	site   *site
	client *http.Client
}

// newVisitor has used the address that was printed.
func newVisitor(t testing.TB, site *site) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{site: site, client: &http.Client{Jar: jar}}
	if got, _ := v.ask(t, site.entrance.String()); got.address.RawQuery != "" {
		t.Fatalf("the printed address leads to %s: %d", got.address, got.status)
	}
	return v
}

// reply is an answer whose body was read.
type reply struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	address *url.URL // after all redirects
}

// ask requests a page, and reads the answer.
func (v *visitor) ask(t testing.TB, address string) (reply, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return v.send(t, request)
}

// send sends a request, and reads the answer.
func (v *visitor) send(t testing.TB, request *http.Request) (reply, string) {
	t.Helper()
	response, err := v.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, response.Cookies(), response.Request.URL}, string(body)
}

// read is a page of the site.
func (v *visitor) read(t testing.TB, page string) string {
	t.Helper()
	var body string
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		response, got := v.ask(t, v.site.at(page))
		body = got
		return response.status == http.StatusOK, fmt.Sprint(page, ": ", response.status, ": ", body)
	})
	return body
}

// heldFor is why the Deployment "web" is held, if it is.
func (s *stage) heldFor(t testing.TB) (reason string, held bool) {
	t.Helper()
	d := testkit.Blank(t, web)
	if err := s.Client.Get(t.Context(), key(s, testkit.Web), d); err != nil {
		return "", false // The test has ended.
	}
	reason, held = d.GetAnnotations()[settings.Hold]
	return reason, held
}

// TestEntrance: the token becomes a cookie that scripts and other sites don't get, and leaves the
// address.
func TestEntrance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	site := s.serve(t, s.Cluster.Kubeconfig())
	once := &visitor{site: site, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	got, _ := once.ask(t, site.entrance.String())
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/" || len(got.cookies) != 1 {
		t.Fatalf("the entrance answers %d to %q with %v", got.status, got.header.Get("Location"), got.cookies)
	}
	if c := got.cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Name != "lockstep-ui-"+site.entrance.Port() {
		t.Errorf("the cookie is %s", c)
	}
	v := enter(t, site)
	if address := browser.Eval[string](v.Tab, "location.href + document.cookie"); address != site.at("/") {
		t.Errorf("the browser shows %s", address)
	}
}

// TestOtherPages: other pages in the browser in which the user has opened ours can neither read
// nor do anything.
func TestOtherPages(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	site := s.serve(t, s.Cluster.Kubeconfig())
	v := &screen{Tab: browser.Open(t), site: site}
	v.Go(site.entrance.String())
	v.row(web)

	v.Go("http://" + browser.Elsewhere + ":" + site.entrance.Port() + "/") // a name that leads here
	v.AwaitText("Not allowed")

	attack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><iframe id=frame src="%[1]s/"></iframe>
			<form method=post action="%[1]s/do"><input name=verb value=hold><input name=target value=%[2]s><input name=namespace value=%[3]s><input name=reason value=attack></form>
			<script>fetch("%[1]s/", {credentials: "include"}).then(r => r.text()).then(x => document.title = "read " + x, e => document.title = "refused")</script>`,
			site.at(""), web, s.Namespace)
	}))
	t.Cleanup(attack.Close)
	v.Go(attack.URL) // the same machine, so SameSite cookies are sent
	v.Until(`document.title === "refused"`)
	if framed := browser.Eval[bool](v.Tab, `(() => { try { return document.getElementById("frame").contentDocument.body.innerText.includes("web") } catch { return false } })()`); framed {
		t.Error("another page can read ours in a frame")
	}
	browser.Eval[bool](v.Tab, "document.forms[0].submit(), true")
	v.AwaitText("Not allowed")
	if reason, held := s.heldFor(t); held {
		t.Errorf("another page has held the workload: %s", reason)
	}
}
