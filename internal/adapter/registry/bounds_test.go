package registry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// zipped sends a body as a bomb does: small on the way, and large afterwards.
func zipped(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // The client waits for the beginning only so long.
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	for _, part := range parts {
		_, _ = io.WriteString(z, part)
	}
	_ = z.Close()
}

// index is an index with this many images, each written as text.
func index(images int, text string) string {
	return `{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[` + strings.TrimSuffix(strings.Repeat(text+",", images), ",") + `]}`
}

// TestBounds: what a registry sends beyond a bound is refused, in words that name the bound, and
// counted. No tag of it is handed on that is longer than a tag may be.
func TestBounds(t *testing.T) {
	t.Parallel()
	megabyte := strings.Repeat("x", 1<<20)
	entry := fmt.Sprintf(`{"digest":%q,"platform":{"os":"linux","architecture":"arm64"}}`, somewhere)
	next := func(w http.ResponseWriter, page int) {
		w.Header().Set("Link", fmt.Sprintf(`</v2/app/tags/list?last=%d>; rel="next"`, page))
	}
	manifest := func(text string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Docker-Content-Digest", sum(text))
			_, _ = io.WriteString(w, text)
		}
	}
	for _, c := range []struct {
		reason, spec string
		answer       func(w http.ResponseWriter, r *http.Request, calls int)
		want         string
		bounds       []registry.Bound
		most         int // requests
	}{
		{"a list without an end, of huge tags, compressed", "*", func(w http.ResponseWriter, _ *http.Request, calls int) {
			next(w, calls)
			zipped(w, `{"tags":["`, strings.Repeat(megabyte, 7), `"]}`)
		}, "the list exceeds the limit of 16777216 bytes; 0 tags on 3 pages so far", []registry.Bound{registry.TagLength, registry.TagLength, registry.ListBytes}, 3},
		{"a page without an end", "*", func(w http.ResponseWriter, _ *http.Request, _ int) {
			zipped(w, slices.Repeat([]string{strings.Repeat(" ", 1<<20)}, 20)...)
		}, "the list exceeds the limit of 16777216 bytes", []registry.Bound{registry.ListBytes}, 1},
		{"a page that is one number", "*", func(w http.ResponseWriter, _ *http.Request, _ int) {
			zipped(w, append([]string{`{"n":`}, slices.Repeat([]string{strings.Repeat("1", 1<<20)}, 20)...)...)
		}, "the list exceeds the limit of 16777216 bytes", []registry.Bound{registry.ListBytes}, 1},
		{"too many tags", "*", func(w http.ResponseWriter, _ *http.Request, calls int) {
			next(w, calls)
			zipped(w, `{"tags":[`, strings.TrimSuffix(strings.Repeat(`"1.2",`, 100_001), ","), `]}`)
		}, "the list exceeds the limit of 500000 tags", []registry.Bound{registry.ListTags}, 5},
		{"pages without an end", "*", func(w http.ResponseWriter, _ *http.Request, calls int) {
			next(w, calls)
			fmt.Fprintf(w, `{"tags":["%d"]}`, calls)
		}, "the list exceeds the limit of 2000 pages; 2000 tags so far", []registry.Bound{registry.ListPages}, 2000},
		{"a manifest without an end", "1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			zipped(w, slices.Repeat([]string{megabyte}, 8)...)
		}, "the answer is longer than 4194304 bytes", []registry.Bound{registry.BodyBytes}, 2},
		{"an index of too many images", "1", manifest(index(257, entry)), "the index exceeds the limit of 256 images", []registry.Bound{registry.Platforms}, 2},
		{"an index of a million empty images", "1", manifest(index(1_000_000, `{}`)), "the index exceeds the limit of 256 images", []registry.Bound{registry.Platforms}, 2},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			var (
				calls  int
				bounds []registry.Bound
			)
			address, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					calls++
					c.answer(w, r, calls)
				}
			})
			r := registry.NewClient(registry.Options{
				Hosts: map[string]registry.Host{address: {PlainHTTP: true}}, Exceeded: func(b registry.Bound) { bounds = append(bounds, b) },
				Timeout: 10 * time.Minute, // parsing takes long with the race detector beside others
			})
			q := ask(t, nil, "%s/app:%s", address, c.spec)
			q.read = true
			_, err := resolve(t.Context(), r, q)
			if registry.KindOf(err) != registry.TooLarge || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if !cmp.Equal(bounds, c.bounds) {
				t.Errorf("bounds %v, want %v", bounds, c.bounds)
			}
			if calls > c.most {
				t.Errorf("%d requests, want at most %d", calls, c.most)
			}
		})
	}
}

// TestLongTags: tags beyond the specification's limit are left out, and the others are used. So are
// the tags of a page that escapes every character.
func TestLongTags(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", 128)
	escaped := strings.Repeat(`\u0062`, 128)
	address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			fmt.Fprintf(w, `{"name": {"a": [1, "\"", {}]}, "tags": [ "1.0" , "%s", "%s", "%s", "%s", "%s\"", "1.1"]}`,
				longest, longest+"a", escaped, escaped+`\u0062`, strings.Repeat(`\\`, 5000))
		}
	})
	var tags []string
	count, err := r.Tags(t.Context(), keychain.Credential{}, tagspec.Repository{Host: address, Path: "app"}, "", func(tag string) { tags = append(tags, tag) })
	if want := (registry.Count{Tags: 4, TooLong: 3}); err != nil || count != want {
		t.Errorf("%+v, error %v, want %+v", count, err, want)
	}
	if want := []string{"1.0", longest, strings.Repeat("b", 128), "1.1"}; !cmp.Equal(tags, want) {
		t.Errorf("got %q, want %q", tags, want)
	}
}

// TestManyTags: 100,000 tags are well within the bounds.
func TestManyTags(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&page, `,"v1.%d.0-build.20240131"`, i)
	}
	address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			zipped(w, `{"tags":[`, page.String()[1:], `]}`)
		}
	})
	n := 0
	count, err := r.Tags(t.Context(), keychain.Credential{}, tagspec.Repository{Host: address, Path: "app"}, "", func(string) { n++ })
	if err != nil || n != 100_000 || count.Tags != n {
		t.Errorf("%d tags, %+v, error %v", n, count, err)
	}
}

// TestWordsOfARegistry: whatever it writes, an error doesn't hold on to more than a line of it.
func TestWordsOfARegistry(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("looong", 5000)
	for reason, answer := range map[string]http.HandlerFunc{
		"a status": func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 404 "+long+"\r\nContent-Length: 0\r\n\r\n")
		},
		"a message": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"errors":[{"message":%q}]}`, long)
		},
		"a digest": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Docker-Content-Digest", long) },
		"a redirect": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "%"+long)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a scheme": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", long+"://x/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a challenge": func(w http.ResponseWriter, _ *http.Request) { challenge(w, long+" x") },
		"a realm":     func(w http.ResponseWriter, _ *http.Request) { challenge(w, `Bearer realm="http://x/`+long+`"`) },
		"a realm's scheme": func(w http.ResponseWriter, _ *http.Request) {
			challenge(w, `Bearer realm="`+long[:2000]+`://x/"`)
		},
		"a service": func(w http.ResponseWriter, _ *http.Request) {
			challenge(w, `Bearer realm="http://x/",service="`+long+`"`)
		},
		"a header": func(w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 200 OK\r\n"+long+"\r\n\r\n") },
	} {
		address, r := serve(t, answer)
		_, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:1", address))
		if err == nil || len(err.Error()) > 700 {
			t.Errorf("%s: error of %d bytes: %.800v", reason, len(fmt.Sprint(err)), err)
		}
	}
}

func challenge(w http.ResponseWriter, text string) {
	w.Header().Set("WWW-Authenticate", text)
	w.WriteHeader(http.StatusUnauthorized)
}

// raw answers with what net/http would not write.
func raw(w http.ResponseWriter, text string) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(connection, text)
	_ = connection.Close()
}

// TestLimitOfOneCredential: a registry that has enough of one credential is still asked with another
// one, and anonymously.
func TestLimitOfOneCredential(t *testing.T) {
	t.Parallel()
	greedy, modest := known{{Username: "greedy", Password: "a"}}, known{{Username: "modest", Password: "b"}}
	for reason, limit := range map[string]func(http.ResponseWriter){
		"too many requests": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"unavailable": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"none left": func(w http.ResponseWriter) {
			w.Header().Set("RateLimit-Remaining", "0")
			w.Header().Set("RateLimit-Reset", "120")
			w.Header().Set("Docker-Content-Digest", somewhere)
		},
	} {
		asked := map[string]int{}
		address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				challenge(w, `Basic realm="x"`)
				return
			}
			user, _, _ := r.BasicAuth()
			asked[user]++
			if user == "greedy" {
				limit(w)
				return
			}
			w.Header().Set("Docker-Content-Digest", somewhere)
		})
		q := func(as known) wanted { return ask(t, as, "%s/app:1", address) }
		_, _ = resolve(t.Context(), r, q(greedy))
		if _, err := resolve(t.Context(), r, q(greedy)); registry.KindOf(err) != registry.Limited {
			t.Errorf("%s: the second question of the same credential: %v", reason, err)
		}
		mustResolve(t, r, q(modest))
		mustResolve(t, r, q(nil))
		if want := map[string]int{"greedy": 1, "modest": 1, "": 1}; !cmp.Equal(asked, want) {
			t.Errorf("%s: requests %v, want %v", reason, asked, want)
		}
	}
}

// slowly is a transport whose bodies block, after a part that each allows.
type slowly struct {
	size    int // of each body, unless the host is "small.example" or begins with "sized"
	allowed int // bytes before it blocks
	proceed chan struct{}

	mu   sync.Mutex
	read map[string]int // by host
}

func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if r.URL.Path != "/v2/" {
		size := s.size
		if r.URL.Host == "small.example" {
			size = 100
		}
		if strings.HasPrefix(r.URL.Host, "sized") {
			size = 100 << 10
			response.ContentLength = int64(size)
		}
		response.Body = &slowBody{slowly: s, host: r.URL.Host, ctx: r.Context(), left: size}
		s.count(r.URL.Host, 0)
	}
	return response, nil
}

func (s *slowly) count(host string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[host] += n
}

// beyond counts the bodies of which more than n bytes were read.
func (s *slowly) beyond(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := 0
	for _, read := range s.read {
		if read > n {
			found++
		}
	}
	return found
}

type slowBody struct {
	*slowly

	host string
	ctx  context.Context // that of its request
	read int
	left int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read >= b.allowed && b.left > 0 {
		select {
		case <-b.proceed:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n := min(len(p), b.left, 4096)
	if b.read < b.allowed {
		n = min(n, b.allowed-b.read)
	}
	if n == 0 {
		return 0, io.EOF
	}
	b.read, b.left = b.read+n, b.left-n
	b.count(b.host, n)
	return copy(p, bytes.Repeat([]byte(" "), n)), nil
}

func (*slowBody) Close() error { return nil }

// TestSlotsAreFreedByTheEndOfABody: nine lists of one registry, of which eight don't end.
func TestSlotsAreFreedByTheEndOfABody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{size: 10, allowed: 5, proceed: make(chan struct{}), read: map[string]int{}}
		var requests int
		r := registry.NewClient(registry.Options{Transport: s, Observe: func(q registry.Request) {
			if q.Kind == registry.TagsRequest {
				s.mu.Lock()
				defer s.mu.Unlock()
				requests++
			}
		}})
		var asking sync.WaitGroup
		for i := range 9 {
			asking.Go(func() {
				_, _ = r.Tags(t.Context(), keychain.Credential{}, tagspec.Repository{Host: "r.example", Path: fmt.Sprint("app", i)}, "", func(string) {})
			})
		}
		synctest.Wait()
		if requests != 8 {
			t.Errorf("%d requests while no body has ended, want 8", requests)
		}
		close(s.proceed)
		asking.Wait()
		if requests != 9 {
			t.Errorf("%d requests in the end, want 9", requests)
		}
	})
}

// TestLargeBodiesWaitForRoom: eight manifests of up to 4 MiB are read at the same time, from whatever
// registries. One more waits, and says so when it has waited too long. A small one doesn't wait, and
// one whose length is known takes only that much room.
func TestLargeBodiesWaitForRoom(t *testing.T) {
	t.Parallel()
	const small = 68 << 10 // with what is read to reuse a connection
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{size: 4 << 20, allowed: small + 4096, proceed: make(chan struct{}), read: map[string]int{}}
		var bounds []registry.Bound
		r := registry.NewClient(registry.Options{Transport: s, Exceeded: func(b registry.Bound) { bounds = append(bounds, b) }})
		read := func(ctx context.Context, host string) error {
			_, err := r.Image(ctx, keychain.Credential{}, tagspec.Repository{Host: host, Path: "app"}, somewhere)
			return err
		}
		var asking sync.WaitGroup
		begin := func(host string) { asking.Go(func() { _ = read(t.Context(), host) }) }
		for i := range 7 {
			begin(fmt.Sprintf("r%d.example", i))
		}
		for i := range 20 {
			begin(fmt.Sprintf("sized%d.example", i))
		}
		synctest.Wait()
		if got := s.beyond(small); got != 27 {
			t.Errorf("%d bodies are being read, want 27", got)
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := read(hurried, "r7.example"); registry.KindOf(err) != registry.Limited || !strings.Contains(err.Error(), "an answer of more than 65536 bytes has to wait") {
			t.Errorf("an eighth large body beside the others: %v", err)
		}
		if got := s.beyond(small); got != 27 || !cmp.Equal(bounds, []registry.Bound{registry.InFlight}) {
			t.Errorf("%d large bodies are being read, want 27; bounds %v", got, bounds)
		}
		if err := read(t.Context(), "small.example"); registry.KindOf(err) != registry.Untrue {
			t.Errorf("a small body: %v", err)
		}
		asking.Wait() // They take too long, and give up their room.
		close(s.proceed)
		if err := read(t.Context(), "r7.example"); registry.KindOf(err) != registry.Untrue {
			t.Errorf("a large body afterwards: %v", err)
		}
	})
}

// TestHosts: registries beyond the bound are not asked, until others are no longer in use.
func TestHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var forgotten []string
		r := registry.NewClient(registry.Options{
			Transport: &slowly{size: 10, allowed: 10, read: map[string]int{}}, Interval: time.Minute,
			Forgotten: func(host string) { forgotten = append(forgotten, host) },
		})
		ping := func(i int) error { return r.Ping(t.Context(), fmt.Sprintf("r%d.example", i)) }
		for i := range 256 {
			if err := ping(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := ping(256); registry.KindOf(err) != registry.TooLarge || !strings.Contains(err.Error(), "r256.example is not queried: the limit of 256 registries is reached") {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(5 * time.Minute)
		if err := ping(0); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		if err := ping(256); err != nil {
			t.Errorf("one more, after the others have been idle: %v", err)
		}
		if len(forgotten) != 255 || slices.Contains(forgotten, "r0.example") {
			t.Errorf("%d are forgotten: %v", len(forgotten), forgotten)
		}
	})
}
