package run

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
)

// silent is an API server that accepts requests and doesn't answer, until it recovers.
type silent struct{ recovered atomic.Bool }

// RoundTrip implements http.RoundTripper.
func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.recovered.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	var answer any
	switch r.URL.Path {
	case "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	case "/api/v1":
		answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Namespaced: true, Kind: "Secret"}}}
	default:
		answer = corev1.Secret{
			TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
			Data:     map[string][]byte{"key": bytes.Repeat([]byte("k"), 32)},
		}
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, err
}

// TestKeyOfASilentServer: requests that aren't answered end, for discovery too. The log and readiness say so,
// and the next attempt after the recovery has the key.
func TestKeyOfASilentServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options client.Options
		want    string
	}{
		"Discovery": {client.Options{}, "secret lockstep-system/key: failed to get server groups: "},
		"Secret":    {client.Options{Mapper: FixedMapper(nil, "Secret")}, "the API server did not answer within 45s: read the installation key, secret lockstep-system/key: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &silent{}
				c, err := access.NewClient(t.Context(), &rest.Config{Host: "http://api.example", Transport: api}, tc.options)
				if err != nil {
					t.Fatal(err)
				}
				var lines []string
				log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
				p := newParts(&Options{Reload: true, Own: Own{Namespace: "lockstep-system", Key: "key"}, Now: time.Now}, c, log)
				read := make(chan []byte, 1)
				go func() {
					key, _ := p.installationKey(t.Context())
					read <- key
				}()
				time.Sleep(5 * time.Minute) // of the bubble
				synctest.Wait()
				if ready := p.ready(); ready.OK || !strings.Contains(ready.Checks[0].Detail, tc.want) {
					t.Errorf("not answered for five minutes: %+v, want %q", ready, tc.want)
				}
				if len(lines) != 1 || !strings.Contains(lines[0], tc.want) {
					t.Errorf("the log is %q, want one line with %q", lines, tc.want)
				}
				api.recovered.Store(true)
				if key := <-read; len(key) != 32 {
					t.Errorf("a key of %d bytes after the recovery", len(key))
				}
			})
		})
	}
}
