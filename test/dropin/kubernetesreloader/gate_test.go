package kubernetesreloader_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/test/testkit"
)

// gate stands between the program and the API server: it notes every request,
// and answers some of them itself when a test asks for that.
type gate struct {
	proxy *httputil.ReverseProxy
	// line leads to the gate, and can be cut.
	line *testkit.Line
	// held is locked while the program hears of nothing.
	held sync.Mutex

	mu    sync.Mutex
	calls []call
	rules []*rule
}

// call is one request and the status of its answer.
type call struct {
	method, path string
	query        url.Values
	status       int
}

// rule answers the requests that it matches, as often as it has turns.
type rule struct {
	match  func(*http.Request) bool
	turns  int
	answer http.HandlerFunc
	// took counts the requests that were answered.
	took int
}

const always = math.MaxInt

func newGate(t *testing.T, config *rest.Config) *gate {
	t.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	g.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			g.note(r.Request, r.StatusCode)
			return nil
		},
		// A client that goes away while it watches is nothing to write about.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.line = testkit.NewLineTo(t, server.Listener.Addr().String())
	return g
}

// together makes changes of which the program hears at once, when all are made.
func (g *gate) together(writes func()) {
	g.held.Lock()
	defer g.held.Unlock()
	g.line.Freeze()
	defer g.line.Thaw()
	writes()
}

// close refuses connections, and ends those that there are.
func (g *gate) close() { g.line.Cut() }

// open lets the program reach the API server again.
func (g *gate) open() { g.line.Mend() }

// cut ends every connection at once, as a network that fails does.
func (g *gate) cut() {
	g.close()
	g.open()
}

// ServeHTTP answers by rule, or passes the request on.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := g.take(r); answer != nil {
		answer(w, r)
		return
	}
	g.proxy.ServeHTTP(w, r)
}

func (g *gate) take(r *http.Request) http.HandlerFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, rule := range g.rules {
		if rule.turns > 0 && rule.match(r) {
			rule.turns--
			rule.took++
			return rule.answer
		}
	}
	return nil
}

func (g *gate) note(r *http.Request, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, call{r.Method, r.URL.Path, r.URL.Query(), status})
}

// answer lets the gate answer matching requests that often.
func (g *gate) answer(match func(*http.Request) bool, turns int, with http.HandlerFunc) *rule {
	g.mu.Lock()
	defer g.mu.Unlock()
	ru := &rule{match: match, turns: turns, answer: with}
	g.rules = append(g.rules, ru)
	return ru
}

// lift ends a rule.
func (g *gate) lift(ru *rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ru.turns = 0
}

// took is how many requests a rule has answered.
func (g *gate) took(ru *rule) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ru.took
}

// seen lists the requests that the API server answered and that match.
func (g *gate) seen(match func(call) bool) []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []call
	for _, c := range g.calls {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

// patches matches writes to an object, by the end of its path.
func patches(object string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+object)
	}
}

// watches matches the watches of a resource.
func watches(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/"+resource)
	}
}

// status answers as the API server does when it refuses.
func status(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, statusText(code, reason))
	}
}

// gone begins a watch and ends it with the error of a resource version that is
// too old.
func gone(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"type":"ERROR","object":`+statusText(http.StatusGone, "Expired")+"}\n")
}

// loseAnswer passes the request on and ends the connection within the answer.
func (g *gate) loseAnswer(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	g.proxy.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

func statusText(code int, reason string) string {
	return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the gate says ` + reason +
		`","reason":"` + reason + `","code":` + strconv.Itoa(code) + `}`
}
