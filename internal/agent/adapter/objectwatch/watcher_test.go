package objectwatch_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

const stall = 20 * time.Second

// follow starts a watcher in the bubble.
func follow(t *testing.T, s *server, to objectwatch.Sink, config *rest.Config) *objectwatch.Watcher {
	t.Helper()
	return followWith(t, s, to, config, "")
}

// followWith is follow with an annotation in which objects name directories.
func followWith(t *testing.T, s *server, to objectwatch.Sink, config *rest.Config, annotation string) *objectwatch.Watcher {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn, 10), closed: make(chan struct{})}
	srv := &http.Server{Handler: s}
	go func() { _ = srv.Serve(network) }()
	config.Host, config.Dial, config.QPS = "http://api", network.dial, -1
	w, err := objectwatch.New(config, objectwatch.Options{
		Selectors: []objectwatch.Selector{{Kind: filemap.ConfigMap, Namespace: "ns", Labels: "x=y"}}, Stall: stall, SubdirAnnotation: annotation,
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

// A proxy before the API server says by a date when the next request may come. A request waits no longer than for an answer.
func TestADateIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", time.Now().Add(stall/2).UTC().Format(http.TimeFormat))
			failing(http.StatusTooManyRequests, "TooManyRequests")(w, r)
		}
		s := &server{lists: []http.HandlerFunc{later, page("", configMap("a", "5", "1"))}, watches: []http.HandlerFunc{stream(time.Hour)}}
		to := newSink()
		follow(t, s, to, &rest.Config{})
		after(stall/2 - 2*time.Second)
		if diff := cmp.Diff([]string{"list"}, s.seen()); diff != "" {
			t.Errorf("requests before the date -want +got\n%s", diff)
		}
		after(4 * time.Second)
		to.want(t, map[string]string{"a": "1"})
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

// The values of an object that does not fit are not kept. The server is asked for everything
// again when they fit, and not before.
func TestAnObjectThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 5000)
		s := &server{
			lists:   []http.HandlerFunc{page("", configMap("a", "5", "1"), configMap("large", "6", large))},
			watches: []http.HandlerFunc{stream(stall / 2)},
		}
		to := newSink()
		to.limit = 4096
		follow(t, s, to, &rest.Config{})
		after(10 * stall)
		to.want(t, map[string]string{"a": "1"})
		if to.omitted["large"] != 8192 {
			t.Errorf("omitted %v, want the large one in blocks", to.omitted)
		}
		if lists := strings.Count(strings.Join(s.seen(), " "), "list"); lists != 1 {
			t.Errorf("%d lists while nothing fits: %v", lists, s.seen())
		}
		to.mu.Lock()
		to.limit, to.fits = 8192, true
		to.mu.Unlock()
		after(2 * stall)
		to.want(t, map[string]string{"a": "1", "large": large})
		to.wantFailure(t, "")
	})
}

// Of an object only its identity, its age and a short directory stay in memory.
func TestALongAnnotationIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		item := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"5","creationTimestamp":"2026-01-02T03:04:05Z",` +
			`"annotations":{"dir":"` + strings.Repeat("d/", 100_000) + `"}},"data":{"k":"1"}}`
		got := make(chan filemap.Object, 1)
		to := &passing{sink: newSink(), got: got}
		followWith(t, &server{lists: []http.HandlerFunc{page("", item)}, watches: []http.HandlerFunc{stream(time.Hour)}}, to, &rest.Config{}, "dir")
		object := <-got
		if len(object.Subdir) != filemap.MaxSubdir+1 {
			t.Errorf("%d bytes of the annotation stay", len(object.Subdir))
		}
		if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !object.Created.Equal(want) {
			t.Errorf("created %s, want %s", object.Created, want)
		}
	})
}

// passing is a sink that shows the objects it is given.
type passing struct {
	*sink

	got chan<- filemap.Object
}

func (p *passing) Replace(source string, objects []filemap.Object) {
	p.sink.Replace(source, objects)
	p.got <- objects[0]
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

// A server that refuses to stream a list, because of its age or of a missing permission to
// watch, may still list: only that decides whether the source can be read.
func TestARefusedStreamIsListed(t *testing.T) {
	for name, refusal := range map[string]http.HandlerFunc{
		"too old":             failing(http.StatusUnprocessableEntity, "Invalid"),
		"watch not permitted": failing(http.StatusForbidden, "Forbidden"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{lists: []http.HandlerFunc{page("", configMap("a", "5", "1"))}, watches: []http.HandlerFunc{refusal, stream(time.Hour)}}
				to := newSink()
				followStreaming(t, s, to)
				after(5 * time.Second)
				to.want(t, map[string]string{"a": "1"})
				to.mu.Lock()
				defer to.mu.Unlock()
				if to.failed > 0 {
					t.Errorf("%d failures were reported, the last one %q", to.failed, to.failure)
				}
			})
		})
	}
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

// The token file is read again: an agent whose token is no longer valid is unhealthy, and
// goes on with the new one.
func TestTokenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		var refused atomic.Value
		refused.Store("")
		checked := func(next http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				handler := next
				if r.Header.Get("Authorization") == refused.Load() {
					handler = failing(http.StatusUnauthorized, "Unauthorized")
				}
				handler(w, r)
			}
		}
		s := &server{
			lists:   []http.HandlerFunc{checked(page("", configMap("a", "5", "1")))},
			watches: []http.HandlerFunc{checked(stream(5*time.Second, event("BOOKMARK", configMap("", "20", ""))))},
		}
		to := newSink()
		w := follow(t, s, to, &rest.Config{BearerTokenFile: file})
		after(3 * time.Second)
		refused.Store("Bearer one")
		after(40 * time.Second)
		to.wantFailure(t, "list configmap/")
		if healthy(w) {
			t.Error("healthy without access")
		}
		write("two")
		after(3 * time.Minute)
		to.wantFailure(t, "")
		if !healthy(w) {
			t.Error("unhealthy with the new token")
		}
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
