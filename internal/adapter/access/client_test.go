package access

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
		c, err := NewClient(t.Context(), config, client.Options{Mapper: mapper})
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
