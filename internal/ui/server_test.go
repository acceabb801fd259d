package ui

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// patient is how long a test waits for what must come.
const patient = 5 * time.Minute

// clock is when the tests of the overview are.
func clock() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// standInBoard has a status that a test sets, and no cluster.
func standInBoard(status ask.Status) *board {
	b := &board{
		status: func(context.Context, ask.Scope, []cluster.Header) (ask.Status, error) { return status, nil },
		kinds:  func(context.Context) []kube.Kind { return nil },
		beat:   func(context.Context) error { return nil },
		now:    time.Now,
		woken:  make(chan struct{}, 1), published: make(chan struct{}), listeners: map[*listener]bool{},
	}
	b.watches = &watches{now: time.Now, changed: b.changed, mirrors: map[schema.GroupKind]*mirror.Mirror[*copied]{}}
	b.publish(newSnapshot(status, nil))
	b.asked = time.Now()
	return b
}

// standIn is a server without a cluster.
func standIn(status ask.Status) *Server {
	return newServer(Options{Reader: &ask.Reader{Now: clock, Version: "v1.2.3"}, Program: "lockstep"}, nil, standInBoard(status))
}

// opened is a server that listens, and a client with its cookie.
type opened struct {
	*Server

	address string
	stop    func()
	ended   <-chan error
}

func open(t *testing.T, s *Server) opened {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		ended <- s.serve(ctx, listener)
	}()
	t.Cleanup(func() { stop(); <-served })
	return opened{s, "http://" + listener.Addr().String(), stop, ended}
}

// get sends a request as the user's browser does.
func (o opened) get(t *testing.T, path string, change ...func(*http.Request)) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(r.URL.Host)
	r.AddCookie(&http.Cookie{Name: "lockstep-ui-" + port, Value: o.token})
	for _, c := range change {
		c(r)
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := stay.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answered{answer.Status, answer.StatusCode, answer.Header, answer.Body, answer.Cookies()}
}

// answered is an answer whose body is closed after the test.
type answered struct {
	Status     string
	StatusCode int
	Header     http.Header
	Body       io.Reader
	cookies    []*http.Cookie
}

func read(t *testing.T, from io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func has(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestGuard(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	none := func(r *http.Request) { r.Header.Del("Cookie") }
	posts := func(r *http.Request) { r.Method = http.MethodPost }
	type changes []func(*http.Request)
	for name, c := range map[string]struct {
		reason string
		path   string
		change changes
		want   int
	}{
		"User":             {reason: "the cookie opens it", want: http.StatusOK},
		"Localhost":        {reason: "the other name of the host", change: changes{func(r *http.Request) { r.Host = strings.Replace(r.URL.Host, "127.0.0.1", "localhost", 1) }}, want: http.StatusOK},
		"ByHand":           {reason: "a user who types the address", change: changes{has("Sec-Fetch-Site", "none")}, want: http.StatusOK},
		"OwnPage":          {reason: "a script of ours", change: changes{has("Sec-Fetch-Site", "same-origin"), has("Origin", o.address)}, want: http.StatusOK},
		"Stranger":         {reason: "no cookie", change: changes{none}, want: http.StatusForbidden},
		"StrangerLive":     {reason: "no cookie", path: "/live?at=/", change: changes{none}, want: http.StatusForbidden},
		"StrangerStatic":   {reason: "no cookie", path: o.files["ui.css"].address, change: changes{none}, want: http.StatusForbidden},
		"StrangerDoes":     {reason: "no cookie", path: "/do", change: changes{none, posts, has("Origin", o.address)}, want: http.StatusForbidden},
		"WrongToken":       {reason: "a guess", path: "/?token=" + strings.Repeat("A", 43), change: changes{none}, want: http.StatusForbidden},
		"PartOfTheToken":   {reason: "a guess that begins well", path: "/?token=" + o.token[:20], change: changes{none}, want: http.StatusForbidden},
		"WrongCookie":      {reason: "that of an earlier start", change: changes{none, has("Cookie", "lockstep-ui-"+o.port(t)+"=AAAA")}, want: http.StatusForbidden},
		"CookieOfAPort":    {reason: "that of another lockstep ui", change: changes{none, has("Cookie", "lockstep-ui-1="+o.token)}, want: http.StatusForbidden},
		"EmptyCookie":      {reason: "nothing is not a token", change: changes{none, has("Cookie", "lockstep-ui-"+o.port(t)+"=")}, want: http.StatusForbidden},
		"Rebinding":        {reason: "a name that leads to 127.0.0.1", change: changes{func(r *http.Request) { r.Host = "evil.example:" + o.port(t) }}, want: http.StatusMisdirectedRequest},
		"OtherPort":        {reason: "another server's name", change: changes{func(r *http.Request) { r.Host = "127.0.0.1:1" }}, want: http.StatusMisdirectedRequest},
		"NoPort":           {reason: "another server's name", change: changes{func(r *http.Request) { r.Host = "127.0.0.1" }}, want: http.StatusMisdirectedRequest},
		"RebindingToken":   {reason: "even with the token", path: "/?token=" + o.token, change: changes{func(r *http.Request) { r.Host = "evil.example" }}, want: http.StatusMisdirectedRequest},
		"ForeignOrigin":    {reason: "a script of another site", change: changes{has("Origin", "https://evil.example")}, want: http.StatusForbidden},
		"NullOrigin":       {reason: "a sandboxed frame", change: changes{has("Origin", "null")}, want: http.StatusForbidden},
		"OriginOtherPort":  {reason: "another server of this machine", change: changes{has("Origin", "http://127.0.0.1:1")}, want: http.StatusForbidden},
		"OriginTLS":        {reason: "we don't serve that", change: changes{has("Origin", strings.Replace(o.address, "http:", "https:", 1))}, want: http.StatusForbidden},
		"CrossSite":        {reason: "a link or image of another site", change: changes{has("Sec-Fetch-Site", "cross-site")}, want: http.StatusForbidden},
		"SameSite":         {reason: "another port of this machine", change: changes{has("Sec-Fetch-Site", "same-site")}, want: http.StatusForbidden},
		"CrossSiteToken":   {reason: "even with the token", path: "/?token=" + o.token, change: changes{has("Sec-Fetch-Site", "cross-site")}, want: http.StatusForbidden},
		"PostNowhere":      {reason: "a form must say where it is from", path: "/do", change: changes{posts}, want: http.StatusForbidden},
		"PostForeign":      {reason: "a form of another site", path: "/do", change: changes{posts, has("Origin", "https://evil.example")}, want: http.StatusForbidden},
		"PostNull":         {reason: "a form of a sandboxed frame", path: "/do", change: changes{posts, has("Origin", "null")}, want: http.StatusForbidden},
		"PostToken":        {reason: "the token is for the first page", path: "/do?token=" + o.token, change: changes{none, posts, has("Origin", o.address)}, want: http.StatusForbidden},
		"PostPage":         {reason: "a page is only read", change: changes{posts, has("Origin", o.address)}, want: http.StatusMethodNotAllowed},
		"TwoOriginsOneBad": {reason: "every one must be ours", change: changes{func(r *http.Request) { r.Header["Origin"] = []string{o.address, "https://evil.example"} }}, want: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.path
			if path == "" {
				path = "/"
			}
			answer := o.get(t, path, c.change...)
			if answer.StatusCode != c.want {
				t.Errorf("%s: %s is answered with %s, not %d", c.reason, path, answer.Status, c.want)
			}
			if got := answer.Header.Get("Content-Security-Policy"); got != policy {
				t.Errorf("Content-Security-Policy: %q", got)
			}
			if answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("it may be kept or guessed at: %v", answer.Header)
			}
			if answer.Header.Get("Set-Cookie") != "" {
				t.Error("only the token gets a cookie")
			}
			if body := read(t, answer.Body); strings.Contains(body, o.token) {
				t.Error("the answer contains the token")
			}
		})
	}
}

// TestRefusedRequestsEnd: a request that is refused doesn't keep its connection, even if its body
// never arrives.
func TestRefusedRequestsEnd(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	host := strings.TrimPrefix(o.address, "http://")
	for name, c := range map[string]struct{ request, want string }{
		"NoBody":       {"POST /do HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 403 "},
		"EndlessChunk": {"POST /do HTTP/1.1\r\nHost: " + host + "\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 403 "},
		"WrongHost":    {"POST /do HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 421 "},
		"Options":      {"OPTIONS * HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "HTTP/1.1 403 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if err := connection.SetDeadline(time.Now().Add(patient)); err != nil {
				t.Fatal(err)
			}
			if _, err := connection.Write([]byte(c.request)); err != nil {
				t.Fatal(err)
			}
			if answer := read(t, connection); !strings.HasPrefix(answer, c.want) || !strings.Contains(answer, "\r\nConnection: close\r\n") {
				t.Errorf("the answer is %q, not %s", answer, c.want)
			}
		})
	}
}

// TestBanner: every page says which cluster it shows, as text.
func TestBanner(t *testing.T) {
	t.Parallel()
	s := standIn(ask.Status{})
	s.options.Scope.Namespace = "shop"
	if got := string(s.banner()); !strings.Contains(got, `<p class="scope">namespace shop</p>`) {
		t.Error("in a pod there is no context:", got)
	}
	s.options.Context = "<b>lab"
	if got := string(s.banner()); !strings.Contains(got, `<p class="scope">context &lt;b&gt;lab, namespace shop</p>`) {
		t.Error("the context isn't shown:", got)
	}
}

func (o opened) port(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(o.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestTokenBecomesACookie: the token doesn't stay in the address, where the history and a
// screenshot would have it.
func TestTokenBecomesACookie(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	for path, want := range map[string]string{
		"/?token=" + o.token:                    "/",
		"/?q=web&token=" + o.token:              "/?q=web",
		"//evil.example/?token=" + o.token:      "/evil.example/",
		"/%5C%5Cevil.example/?token=" + o.token: "/%5C%5Cevil.example/",
	} {
		answer := o.get(t, path, func(r *http.Request) { r.Header.Del("Cookie") })
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != want {
			t.Errorf("%s: %s to %q, not to %q", path, answer.Status, answer.Header.Get("Location"), want)
		}
		cookies := answer.cookies
		if len(cookies) != 1 {
			t.Fatalf("%s: cookies %v", path, cookies)
		}
		c := cookies[0]
		if c.Name != "lockstep-ui-"+o.port(t) || c.Value != o.token || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("%s: the cookie is %v", path, c)
		}
	}
	if url := o.URL(address(strings.TrimPrefix(o.address, "http://"))); url != o.address+"/?token="+o.token || len(o.token) != 43 {
		t.Errorf("the address is %s", url)
	}
	if standIn(ask.Status{}).token == o.token {
		t.Error("two servers have the same token")
	}
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// TestVendored: what a browser runs is what was released, and its licence is beside it.
func TestVendored(t *testing.T) {
	t.Parallel()
	files := staticFiles()
	// npm idiomorph 0.8.0, dist/idiomorph.min.js.
	const want = "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96"
	if sum := sha256.Sum256([]byte(files["idiomorph.min.js"].content)); hex.EncodeToString(sum[:]) != want {
		t.Errorf("idiomorph.min.js has the hash %x", sum)
	}
	licence, err := os.ReadFile("static/idiomorph.LICENSE")
	if err != nil || !strings.Contains(string(licence), "Zero-Clause BSD") {
		t.Error("its licence is missing:", err)
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	types := map[string]string{"ui.css": "text/css", "ui.js": "text/javascript", "idiomorph.min.js": "text/javascript", "favicon.svg": "image/svg+xml"}
	page := read(t, o.get(t, "/").Body)
	for name, kind := range types {
		at := o.files[name].address
		if !strings.Contains(page, at) {
			t.Errorf("no page loads %s", at)
		}
		answer := o.get(t, at)
		if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(got, kind) {
			t.Errorf("%s: %s, %s", at, answer.Status, got)
		}
		if body := read(t, answer.Body); body != o.files[name].content || body == "" {
			t.Errorf("%s has another content", at)
		}
		if !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s is loaded again for each page", at)
		}
		if outdated := o.get(t, "/static/000000000000/"+name); outdated.StatusCode != http.StatusNotFound {
			t.Errorf("an address of other content: %s", outdated.Status)
		}
	}
	for _, forbidden := range []string{"<script>", "onclick=", "style="} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the policy forbids %q", forbidden)
		}
	}
}

func TestPagesAreCompressed(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	answer := o.get(t, "/", has("Accept-Encoding", "gzip, br"))
	if answer.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("it isn't compressed")
	}
	from, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain := read(t, o.get(t, "/", has("Accept-Encoding", "identity")).Body)
	if got := read(t, from); got != plain || !strings.HasSuffix(plain, "</html>") {
		t.Error("the compressed page is another one")
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	for path, want := range map[string]int{
		"/": http.StatusOK, "/?q=web&part=main": http.StatusOK, "/nowhere": http.StatusNotFound, "/workload/shop": http.StatusNotFound,
		"/workload/shop/deployment/": http.StatusNotFound, "/live": http.StatusBadRequest, "/live?at=https://evil.example/": http.StatusBadRequest,
		"/live?at=//evil.example/": http.StatusBadRequest, "/live?at=%zz": http.StatusBadRequest,
	} {
		if answer := o.get(t, path); answer.StatusCode != want {
			t.Errorf("%s: %s, not %d", path, answer.Status, want)
		}
	}
	if part := read(t, o.get(t, "/?part=main").Body); !strings.HasPrefix(part, "<main") || !strings.HasSuffix(part, "</main>") {
		t.Errorf("the part is %.80q", part)
	}
}

// TestProblems: what went wrong is a page too, and only a cluster that doesn't answer greys it out.
func TestProblems(t *testing.T) {
	t.Parallel()
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		err  error
		want int
		gone bool
	}{
		"Missing":      {apierrors.NewNotFound(deployments, "web"), http.StatusNotFound, false},
		"Forbidden":    {apierrors.NewForbidden(deployments, "web", errors.New("no role")), http.StatusForbidden, false},
		"Unauthorized": {apierrors.NewUnauthorized("expired"), http.StatusUnauthorized, false},
		"Slow":         {context.DeadlineExceeded, http.StatusServiceUnavailable, true},
		"Down":         {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, http.StatusServiceUnavailable, true},
		"Starting":     {apierrors.NewServiceUnavailable("starting"), http.StatusServiceUnavailable, true},
		"Proxy":        {apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", deployments, "", "bad gateway", 0, true), http.StatusServiceUnavailable, true},
		"Other":        {errors.New("a <b>mistake</b>"), http.StatusInternalServerError, false},
	} {
		p := problemPage(c.err)
		if p.status != c.want || (p.gone != "") != c.gone {
			t.Errorf("%s: status %d, gone %q", name, p.status, p.gone)
		}
		if strings.Contains(string(p.body), "<b>") {
			t.Errorf("%s: markup gets through: %s", name, p.body)
		}
	}
}

// TestServeEndsAtOnce: a live connection never ends by itself, and must not hold up the end.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(ask.Status{}))
	live := o.get(t, "/live?at=/")
	if event := nextEvent(t, live.Body); event.name != "page" {
		t.Fatalf("the first event is %+v", event)
	}
	o.stop()
	select {
	case err := <-o.ended:
		if err != nil {
			t.Error("the end that was asked for is an error:", err)
		}
	case <-time.After(patient):
		t.Fatal("the server goes on")
	}
}

func TestServeNeedsAnAddress(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	if err := standIn(ask.Status{}).serve(t.Context(), closed.Listener); err == nil {
		t.Error("a listener that is closed is not an error")
	}
}

// sent is a server-sent event.
type sent struct{ name, id, data string }

// nextEvent reads until an event is complete. Comments aren't events.
func nextEvent(t *testing.T, from io.Reader) sent {
	t.Helper()
	lines, ok := from.(*bufio.Reader)
	if !ok {
		lines = bufio.NewReader(from)
	}
	var e sent
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal("the connection ended:", err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data += value
		case "":
			if line == "\n" && e.name != "" {
				return e
			}
		}
	}
}
