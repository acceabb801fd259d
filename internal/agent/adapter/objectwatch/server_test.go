package objectwatch_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
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
	failed  int // how often it was told of a failure
	well    int // how often it was told that the source recovered
	limit   int64
	omitted map[string]int64
	fits    bool // what was omitted fits now
}

func newSink() *sink {
	return &sink{objects: map[string]string{}, pins: map[filemap.Digest]int{}, omitted: map[string]int64{}}
}

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

func (s *sink) Admit(_ string, _ filemap.Ref, weight int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit == 0 || weight <= s.limit
}

func (s *sink) Readmits(string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fits
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
	if o.Omitted > 0 {
		s.omitted[o.Name] = o.Omitted
		return
	}
	delete(s.omitted, o.Name)
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
	s.failed++
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

// wantFailure compares what the sink was last told of the source.
func (s *sink) wantFailure(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.failure == "") != (want == "") || !strings.Contains(s.failure, want) {
		t.Errorf("the source failed with %q, want %q", s.failure, want)
	}
}
