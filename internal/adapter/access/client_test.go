package access

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestWindow: what a server may send before anything was read stays small. The
// server here sends as much as it is let, to a watch that nobody reads.
func TestWindow(t *testing.T) {
	t.Parallel()
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
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	config := &rest.Config{Host: server.URL}
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

	labtest.Eventually(t, time.Minute, func() (bool, string) { return sent.Load() > 0, "nothing was sent" })
	// Settled when a whole second brought nothing more.
	for before := int64(0); before != sent.Load(); time.Sleep(time.Second) {
		before = sent.Load()
	}
	if got := sent.Load(); got > 2*streamWindow {
		t.Errorf("%d KiB were sent ahead, want at most twice the window of %d KiB", got>>10, streamWindow>>10)
	}
}
