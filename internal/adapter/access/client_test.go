package access

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// TestWindow: a server can send only a little data ahead of a watch. The server here sends
// as much as the client accepts, and the test doesn't read the watch.
func TestWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const chunk = 16 << 10
		var sent atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("the request came by %s, want HTTP/2", r.Proto)
			}
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				n, _ := w.Write(make([]byte, chunk))
				sent.Add(int64(n))
			}
		}))
		network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		_ = server.Listener.Close()
		server.Listener, server.EnableHTTP2 = network, true
		server.StartTLS()
		defer server.Close()

		config := &rest.Config{Host: server.URL, Dial: network.dial}
		config.Wrap(retryafter.InSeconds) // as the command line does, and the client once more
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		c, err := NewClient(t.Context(), config, client.Options{Mapper: configMaps()})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(t.Context(), &corev1.ConfigMapList{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()

		synctest.Wait() // until the server can't send any more
		if got := sent.Load(); got == 0 || got > 2*streamWindow {
			t.Errorf("%d KiB were sent ahead, want some and at most twice the window of %d KiB", got>>10, streamWindow>>10)
		}
	})
}

// TestPagesAreBounded: after many small objects, a page has large ones only. The client doesn't
// read it to its end, and asks again for few of them. It misses none.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	sizes := slices.Concat(slices.Repeat([]int{10}, 36), slices.Repeat([]int{900_000}, 30))
	var limits []int // The client asks for one page at a time.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limits = append(limits, limit)
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
		for i := from; i < min(from+limit, len(sizes)); i++ {
			list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}, Data: map[string]string{"a": strings.Repeat("x", sizes[i])}})
		}
		if from+limit < len(sizes) {
			list.Continue = strconv.Itoa(from + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	c, err := NewClient(t.Context(), &rest.Config{Host: server.URL}, client.Options{Mapper: configMaps()})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = pages.Each(t.Context(), c, &corev1.ConfigMapList{}, func(o client.Object) bool {
		if o.GetName() != strconv.Itoa(seen) {
			t.Errorf("object %s comes after %d others", o.GetName(), seen)
		}
		seen++
		return true
	})
	if err != nil || seen != len(sizes) {
		t.Errorf("%d of %d objects and the error %v", seen, len(sizes), err)
	}
	if want := []int{4, 32, 256, 4}; len(limits) < len(want) || !slices.Equal(limits[:len(want)], want) || slices.Max(limits[len(want):]) > 4 {
		t.Errorf("the limits are %v, want %v and then small ones", limits, want)
	}
}

func configMaps() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

// pipes is a network inside the bubble. The bubble can't see that a real connection waits.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours, nil
}
