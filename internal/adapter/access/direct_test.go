package access

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDirectClientReadsDates: a proxy says by a date when the next request may come, and the client sends it then.
func TestDirectClientReadsDates(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if requests++; requests == 1 {
			w.Header().Set("Retry-After", time.Now().UTC().Format(http.TimeFormat)) // at once
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"app"}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	c, err := NewDirectClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "app"}, &corev1.ConfigMap{}); err != nil || requests != 2 {
		t.Errorf("%d requests, error %v", requests, err)
	}
	if config.WrapTransport != nil {
		t.Error("the caller's configuration was changed")
	}
}
