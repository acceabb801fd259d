package objectwatch_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

// The library spaces its own error messages by a clock that is not the
// bubble's.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// sink remembers what it was given and which values it still holds.
type sink struct {
	mu      sync.Mutex
	objects map[string]string // name to the digest of its one value
	pins    map[filemap.Digest]int
	calls   []string
	full    bool
	failure string
	well    int // how often it was told that the source recovered
}

func newSink() *sink { return &sink{objects: map[string]string{}, pins: map[filemap.Digest]int{}} }

func (s *sink) Keep(value []byte) (filemap.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest := filemap.Digest(sha256.Sum256(value))
	if s.full {
		return digest, errors.New("no space left")
	}
	s.pins[digest]++
	return digest, nil
}

func (s *sink) Unpin(entries []filemap.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpin(entries)
}

func (s *sink) unpin(entries []filemap.Entry) {
	for _, e := range entries {
		if s.pins[e.Digest]--; s.pins[e.Digest] == 0 {
			delete(s.pins, e.Digest)
		}
	}
}

func (s *sink) put(o filemap.Object) {
	s.objects[o.Name] = ""
	for _, e := range o.Entries {
		s.objects[o.Name] += e.Digest.String()
	}
	s.unpin(o.Entries)
}

func (s *sink) Put(_ string, o filemap.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "put "+o.Name)
	s.put(o)
}

func (s *sink) Replace(_ string, objects []filemap.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.failure = append(s.calls, fmt.Sprint("replace ", len(objects))), ""
	s.objects = map[string]string{}
	for _, o := range objects {
		s.put(o)
	}
}

func (s *sink) Remove(_ string, ref filemap.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "remove "+ref.Name)
	delete(s.objects, ref.Name)
}

func (s *sink) Failed(_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err.Error()
}

func (s *sink) Recovered(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = ""
	s.well++
}

// want compares the objects that the sink knows, and that nothing else is held.
func (s *sink) want(t *testing.T, want map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	digests := map[string]string{}
	for name, value := range want {
		digests[name] = filemap.Digest(sha256.Sum256([]byte(value))).String()
	}
	if diff := cmp.Diff(digests, s.objects); diff != "" {
		t.Errorf("objects -want +got\n%s\nafter %v", diff, s.calls)
	}
	if len(s.pins) > 0 {
		t.Errorf("%d values are still held", len(s.pins))
	}
}

// server is an API server that lives in the bubble's time. Each request is
// answered by the next handler; the last one stays.
type server struct {
	mu       sync.Mutex
	lists    []http.HandlerFunc
	watches  []http.HandlerFunc
	requests []string
	tokens   []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("sendInitialEvents") == "true" { // an older server
		answer(w, http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	}
	s.mu.Lock()
	kind, handlers := "list", &s.lists
	if q.Get("watch") != "" {
		kind, handlers = "watch "+q.Get("resourceVersion"), &s.watches
	}
	if next := q.Get("continue"); next != "" {
		kind += " " + next
	}
	s.requests = append(s.requests, kind)
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	handler := (*handlers)[0]
	if len(*handlers) > 1 {
		*handlers = (*handlers)[1:]
	}
	s.mu.Unlock()
	handler(w, r)
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body))
}

func configMap(name, version, value string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","resourceVersion":%q},"data":{"k":%q}}`, name, version, value)
}

// page answers with a list at version 10.
func page(next string, items ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"` + next + `"},"items":[`
		for i, item := range items {
			if i > 0 {
				body += ","
			}
			body += item
		}
		answer(w, http.StatusOK, body+"]}")
	}
}

func failing(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code))
	}
}

// stream sends events and stays open for a while, as a watch does until its
// timeout.
func stream(open time.Duration, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		for _, e := range events {
			_, _ = w.Write([]byte(e + "\n"))
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(open):
		}
	}
}

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + `}` }

// pipes is a network inside the bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours, nil
}

const stall = 20 * time.Second

// follow starts a watcher in the bubble.
func follow(t *testing.T, s *server, to objectwatch.Sink, config *rest.Config) *objectwatch.Watcher {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn, 10), closed: make(chan struct{})}
	srv := &http.Server{Handler: s}
	go func() { _ = srv.Serve(network) }()
	config.Host, config.Dial, config.QPS = "http://api", network.dial, -1
	w, err := objectwatch.New(config, objectwatch.Options{
		Selectors: []objectwatch.Selector{{Kind: filemap.ConfigMap, Namespace: "ns", Labels: "x=y"}}, Stall: stall,
	}, to, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		close(network.closed)
		_ = srv.Close()
	})
	return w
}

// after lets time pass in the bubble.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAWatchIsResumedWhereItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			lists: []http.HandlerFunc{page("", configMap("a", "5", "1"))},
			watches: []http.HandlerFunc{
				stream(10*time.Second, event("MODIFIED", configMap("a", "11", "2")), event("ADDED", configMap("b", "12", "x"))),
				stream(10*time.Second, event("BOOKMARK", configMap("", "20", "")), event("DELETED", configMap("b", "21", "x"))),
				stream(time.Hour),
			},
		}
		to := newSink()
		follow(t, s, to, &rest.Config{})
		after(5 * time.Second)
		to.want(t, map[string]string{"a": "2", "b": "x"})
		after(12 * time.Second)
		to.want(t, map[string]string{"a": "2"})
		after(10 * time.Second)
		if diff := cmp.Diff([]string{"list", "watch 10", "watch 12", "watch 21"}, s.seen()); diff != "" {
			t.Errorf("requests -want +got\n%s", diff)
		}
	})
}

// A version that the server has forgotten means a list, in which deleted
// objects are missing.
func TestAnExpiredVersionIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			lists: []http.HandlerFunc{page("", configMap("a", "5", "1"), configMap("b", "6", "1")), page("", configMap("a", "9", "2"))},
			watches: []http.HandlerFunc{
				stream(5*time.Second, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`),
				stream(time.Hour),
			},
		}
		to := newSink()
		follow(t, s, to, &rest.Config{})
		after(15 * time.Second)
		to.want(t, map[string]string{"a": "2"})
	})
}

// healthy says whether every source was heard of within the deadline.
func healthy(w *objectwatch.Watcher) bool {
	_, age := w.Age()
	return age <= stall
}

func TestSignsOfLife(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		watch http.HandlerFunc
		want  bool
	}{
		"ended by the server": {"a quiet watch proves itself by ending", stream(stall / 2), true},
		"bookmarks": {"an event is one", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(event("BOOKMARK", configMap("", "20", "")) + "\n"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(stall / 2):
				}
			}
		}, true},
		"a body that never comes": {"that a stream could be opened says nothing", stream(time.Hour), false},
		"no answer":               {"a black hole", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false},
		"refused":                 {"an error is no sign of a working watch", failing(http.StatusForbidden, "Forbidden"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{
					lists:   []http.HandlerFunc{page("", configMap("a", "5", "1")), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
					watches: []http.HandlerFunc{c.watch},
				}
				w := follow(t, s, newSink(), &rest.Config{})
				after(stall / 2)
				if !healthy(w) {
					t.Error("unhealthy from the start")
				}
				// Looked at often: opening a stream again must not make it well.
				for range 40 {
					after(7 * time.Second)
					if _, age := w.Age(); age > stall && c.want {
						t.Fatalf("%s: nothing heard for %s", c.why, age)
					}
				}
				if got := healthy(w); got != c.want {
					t.Errorf("%s: healthy is %v\n%v", c.why, got, s.seen())
				}
			})
		})
	}
}

// A dead watch is well again with the first event.
func TestAStalledWatchRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			lists: []http.HandlerFunc{page("", configMap("a", "5", "1"))},
			watches: []http.HandlerFunc{
				stream(time.Hour), stream(time.Hour), stream(time.Hour, event("MODIFIED", configMap("a", "11", "2"))),
			},
		}
		to := newSink()
		w := follow(t, s, to, &rest.Config{})
		after(stall + 5*time.Second)
		if healthy(w) {
			t.Error("a stream without a body is healthy")
		}
		after(stall)
		to.want(t, map[string]string{"a": "2"})
		if !healthy(w) {
			t.Errorf("an event came and it is still unhealthy: %v", s.seen())
		}
	})
}

// A source whose watch failed and was opened again, without a list, is well.
func TestAWatchThatRecoversWithoutAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			lists:   []http.HandlerFunc{page("", configMap("a", "5", "1"))},
			watches: []http.HandlerFunc{failing(http.StatusTooManyRequests, "TooManyRequests"), stream(time.Hour)},
		}
		to := newSink()
		follow(t, s, to, &rest.Config{})
		after(15 * time.Second)
		if diff := cmp.Diff([]string{"list", "watch 10", "watch 10"}, s.seen()); diff != "" {
			t.Fatalf("requests -want +got\n%s", diff)
		}
		to.wantFailure(t, "")
	})
}

// As long as a source cannot be stored it is not well, whatever can be opened.
func TestASourceThatCannotBeStored(t *testing.T) {
	for name, streamed := range map[string]bool{"listed": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{
					lists:   []http.HandlerFunc{page("", configMap("a", "5", "1"))},
					watches: []http.HandlerFunc{stream(time.Hour, event("ADDED", configMap("a", "5", "1")))},
				}
				to := newSink()
				to.full = true
				if streamed {
					followStreaming(t, s, to)
				} else {
					follow(t, s, to, &rest.Config{})
				}
				after(time.Second)
				after(5 * time.Minute)
				to.wantFailure(t, "no space left")
				if to.well > 0 {
					t.Errorf("it was well %d times in between", to.well)
				}
			})
		})
	}
}

// wantFailure compares what the sink was last told of the source.
func (s *sink) wantFailure(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.failure == "") != (want == "") || !strings.Contains(s.failure, want) {
		t.Errorf("the source failed with %q, want %q", s.failure, want)
	}
}

// Values of objects that never reach the sink are let go.
func TestValuesOfObjectsThatAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		lists, watches []http.HandlerFunc
		full           bool
	}{
		"a later page fails": {
			lists:   []http.HandlerFunc{page("more", configMap("a", "5", "rotated away")), failing(http.StatusInternalServerError, "InternalError"), page("", configMap("a", "6", "1"))},
			watches: []http.HandlerFunc{stream(time.Hour)},
		},
		"the disk was full": {
			lists:   []http.HandlerFunc{page("", configMap("a", "5", "1"))},
			watches: []http.HandlerFunc{stream(time.Hour)}, full: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := newSink()
				to.full = c.full
				follow(t, &server{lists: c.lists, watches: c.watches}, to, &rest.Config{})
				after(time.Second)
				to.mu.Lock()
				to.full = false
				to.mu.Unlock()
				after(stall)
				to.want(t, map[string]string{"a": "1"})
			})
		})
	}
}

// A streamed list that is cut before its end gives nothing to the sink and
// holds nothing afterwards.
func TestACutStreamedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		initial := []http.HandlerFunc{
			stream(time.Second, event("ADDED", configMap("a", "5", "rotated away"))),
			stream(time.Hour, event("ADDED", configMap("a", "6", "1")),
				`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}}`),
		}
		var mu sync.Mutex
		streaming := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			next := initial[0]
			if len(initial) > 1 {
				initial = initial[1:]
			}
			mu.Unlock()
			next(w, r)
		}
		to := newSink()
		network := &server{lists: []http.HandlerFunc{failing(http.StatusInternalServerError, "InternalError")}, watches: []http.HandlerFunc{streaming}}
		followStreaming(t, network, to)
		after(15 * time.Second)
		to.want(t, map[string]string{"a": "1"})
	})
}

// followStreaming is follow with a server that can stream lists.
func followStreaming(t *testing.T, s *server, to objectwatch.Sink) {
	t.Helper()
	config := &rest.Config{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			q := r.URL.Query()
			q.Del("sendInitialEvents")
			r.URL.RawQuery = q.Encode()
			return next.RoundTrip(r)
		})
	})
	follow(t, s, to, config)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The token file is read again, so that a rotated token is used.
func TestTokenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		s := &server{lists: []http.HandlerFunc{page("")}, watches: []http.HandlerFunc{stream(5 * time.Second)}}
		follow(t, s, newSink(), &rest.Config{BearerTokenFile: file})
		after(3 * time.Second)
		write("two")
		after(3 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		used := map[string]bool{}
		for _, token := range s.tokens {
			used[token] = true
		}
		if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, []string{"Bearer one", "Bearer two"}) || s.tokens[len(s.tokens)-1] != "Bearer two" {
			t.Errorf("tokens %v", got)
		}
	})
}
