package ui

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

const (
	// patience is how long a page waits for the cluster: a distant one needs seconds for a workload
	// with many sources.
	patience = 10 * time.Second
	// farewell is how long requests have to end when the server stops, or refuses them. Live
	// connections end at once.
	farewell = time.Second
)

// Options configure the server.
type Options struct {
	Reader *ask.Reader
	// Scope are the workloads of the overview.
	Scope ask.Scope
	// ReadOnly removes the actions.
	ReadOnly bool
	// Can returns which of the permissions the user lacks.
	Can func(context.Context, []access.Permission) (missing []access.Permission, err error)
	// Do runs a command of lockstep, as the user would.
	Do func(ctx context.Context, arguments []string) (output string, err error)
	// Program is how the user calls it in a command: "lockstep --context lab".
	Program string
	// Context is that of the kubeconfig, if there is one.
	Context string
}

// answers is what the pages ask of ask.Reader.
type answers interface {
	Workload(context.Context, kube.Kind, client.ObjectKey) (ask.Explanation, error)
	History(context.Context, kube.Kind, client.ObjectKey) (ask.History, error)
	Source(ctx context.Context, namespace string, id input.ID) (ask.SourceExplanation, error)
	Image(ctx context.Context, namespace, ref string) (ask.ImageExplanation, error)
}

// Server serves the pages to the user who has the token.
type Server struct {
	options Options
	answers answers
	board   *board
	token   string
	files   map[string]file
	// lives limits the live connections, and again is how often they make a page without a change.
	lives chan struct{}
	again time.Duration
	now   func() time.Time
	// grants are the user's permissions, and outcomes how actions went.
	grants   *grants
	outcomes outcomes
}

// New makes a server that serves nothing until Serve.
func New(o Options) *Server {
	return newServer(o, o.Reader, newBoard(o))
}

func newServer(o Options, from answers, b *board) *Server {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It never fails.
	return &Server{
		options: o, answers: from, board: b, now: o.Reader.Now,
		token: base64.RawURLEncoding.EncodeToString(secret),
		files: staticFiles(), lives: make(chan struct{}, mostLives), again: againEvery, grants: newGrants(o.Can, o.Reader.Now),
	}
}

// URL is what opens the pages: the address, with the token.
func (s *Server) URL(address net.Addr) string {
	return "http://" + address.String() + "/?" + url.Values{tokenParameter: {s.token}}.Encode()
}

// Serve serves the pages until the context ends, which isn't an error.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { s.board.run(ctx) })
	return s.serve(ctx, listener)
}

// serve answers requests until the context ends.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	g, err := newGuard(listener.Addr(), s.token)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           g.protect(s.routes()),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		// The guard answers "OPTIONS *" too.
		DisableGeneralOptionsHandler: true,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	err = server.Serve(listener)
	if !stop() {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve the pages on %s: %w", listener.Addr(), err)
}

// routes are the addresses.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/{hash}/{name}", http.HandlerFunc(s.serveStatic))
	mux.Handle("GET /live", http.HandlerFunc(s.serveLive))
	mux.Handle("POST /do", http.HandlerFunc(s.do))
	mux.Handle("GET /", compressed(http.HandlerFunc(s.servePage)))
	return mux
}

// pages are the views by their addresses. A part in braces has a name in request.path.
func (s *Server) pages() []route {
	return []route{
		{"/", s.viewOverview},
		{"/workload/{namespace}/{kind}/{name}", s.viewWorkload},
		{"/source/{namespace}/{kind}/{name}", s.viewSource},
		{"/image/{namespace}", s.viewImage},
	}
}

// route is the address of a view.
type route struct {
	pattern string
	view    view
}

// view makes a page. It only reads: a live connection calls it again at every change.
type view func(context.Context, request) (page, error)

// request is what a view gets.
type request struct {
	// path are the named parts of the address.
	path  map[string]string
	query url.Values
	now   time.Time
}

// page is what a view answers.
type page struct {
	title string
	// namespace is where the objects are that the page is about: changes there make it again.
	// By default it is that of the address; the controller's own objects count for every page.
	namespace string
	// object is the name of the object that the page is about, empty without one: events about it
	// make the page again.
	object string
	// ofBoard is true if the page shows nothing but what the board keeps.
	ofBoard bool
	// body is the content of <main>.
	body node
	// status is that of HTTP; 0 is 200.
	status int
	// gone says that the cluster doesn't answer, and is empty while it does.
	gone string
}

// errNoPage is the error for an address that isn't one of ours.
var errNoPage = errors.New("there is no such page")

// match returns the view of an address, and its named parts.
func (s *Server) match(address *url.URL) (view, map[string]string, bool) {
	parts := strings.Split(address.EscapedPath(), "/")
	for _, r := range s.pages() {
		if path, ok := r.match(parts); ok {
			return r.view, path, true
		}
	}
	return nil, nil, false
}

func (r route) match(parts []string) (path map[string]string, ok bool) {
	wanted := strings.Split(r.pattern, "/")
	if len(wanted) != len(parts) {
		return nil, false
	}
	path = map[string]string{}
	for i, want := range wanted {
		got, err := url.PathUnescape(parts[i])
		name, named := strings.CutPrefix(want, "{")
		switch {
		case err != nil, named && !isName(got), !named && got != want:
			return nil, false
		case named:
			path[strings.TrimSuffix(name, "}")] = got
		}
	}
	return path, true
}

// isName reports whether an object can have the name. The cluster answers others with an error.
func isName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

// make makes the page of an address, even if that is a page about what went wrong.
func (s *Server) make(ctx context.Context, address *url.URL) page {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := page{}, errNoPage
	view, path, found := s.match(address)
	switch namespace := path["namespace"]; {
	case found && namespace != "" && !s.covers(namespace):
		err = newScopeError(s.options.Scope.Namespace, namespace, s.shell())
	case found:
		p, err = view(ctx, request{path: path, query: address.Query(), now: s.now()})
	}
	if err != nil {
		p = problemPage(err)
	}
	if p.namespace == "" {
		p.namespace = path["namespace"]
	}
	p.object = path["name"]
	if p.gone == "" {
		p.gone = s.board.gone()
	}
	return p
}

// servePage writes the page of an address, or with part=main only what a script puts in its place.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	address, onlyMain := withoutPart(r.URL)
	p := s.make(r.Context(), address)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	html := p.main()
	if !onlyMain {
		html = s.frame(p)
	}
	// The browser may have left.
	_, _ = w.Write([]byte(html)) //nolint:gosec // el and text have escaped all of it.
}

// withoutPart is the address of the whole page.
func withoutPart(address *url.URL) (whole *url.URL, onlyMain bool) {
	query := address.Query()
	onlyMain = query.Get("part") == "main"
	query.Del("part")
	return &url.URL{Path: address.Path, RawPath: address.RawPath, RawQuery: query.Encode()}, onlyMain
}
