package reloader_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// receiver is a listener for alerts, and for the requests of --webhook-url.
type receiver struct {
	url string
	// requests are the received ones: method, content type and body.
	requests chan string
}

// newReceiver answers each request with a status, when answer says so.
func newReceiver(t *testing.T, status int, answer <-chan struct{}) *receiver {
	t.Helper()
	all := &receiver{requests: make(chan string, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all.requests <- r.Method + " " + r.Header.Get("Content-Type") + " " + string(body)
		<-answer
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "an answer")
	}))
	t.Cleanup(server.Close)
	all.url = server.URL
	return all
}

// next waits for a request.
func (r *receiver) next(t *testing.T) string {
	t.Helper()
	select {
	case request := <-r.requests:
		return request
	case <-time.After(testkit.Patience):
		t.Fatal("no request")
		return ""
	}
}

func atOnce() <-chan struct{} {
	now := make(chan struct{})
	close(now)
	return now
}

// TestWebhookMode: each change of any source is one request, and nothing is reloaded. Every answer
// counts as a success.
func TestWebhookMode(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r, to := s.namespace(t, "webhook"), newReceiver(t, http.StatusInternalServerError, atOnce())
	config, secret := r.source(t, "configmap/c", "0", notes(ignore, "true")), r.secret(t, "unused", "0")
	o := r.add(t, app{notes: notes(auto, "true", configMapReload, "c", secretReload, "unused")})
	p := s.start(t, nil, "--namespaces="+r.name, "--webhook-url="+to.url)
	p.awaitReady(t, "[+] configmaps", "[+] secrets")
	r.patch(t, config, `{"metadata":{"labels":{"a":"b"}}}`)
	r.set(t, config, "1")
	r.set(t, secret, "1")
	for range 2 {
		if got, want := to.next(t), `POST application/json {"webhook":"update successful"}`; got != want {
			t.Errorf("the request is %s, want %s", got, want)
		}
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Count(p.log(), "an answer") == 2, "the answers aren't logged"
	})
	p.stop(t) // A request without an answer would be sent again.
	if len(to.requests) > 0 {
		t.Errorf("there are %d requests more", len(to.requests))
	}
	r.mustBeUntouched(t, o)
	if got := r.events(t, o); len(got) > 0 {
		t.Errorf("the events are %q", got)
	}
}

// TestAlerts: a reload is an alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r, to := s.namespace(t, "alerts"), newReceiver(t, http.StatusAccepted, atOnce())
	source, o := r.configMap(t, "c", "0"), r.add(t, app{notes: notes(auto, "true")})
	p := r.runWith(t, []string{"ALERT_ON_RELOAD=true", "ALERT_SINK=Teams", "ALERT_WEBHOOK_URL= " + to.url, "ALERT_ADDITIONAL_INFO=prod"})
	r.set(t, source, "1")
	r.awaitReloads(t, o, 1, mark("configmap/c", "1"))
	want := `POST application/json {"text":"prod : Changes detected in *c* of type *CONFIGMAP* in namespace *` + r.name + `*: reloaded *app* of type *Deployment* in namespace *` + r.name + `*"}`
	if got := to.next(t); got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
	p.stop(t)
	if strings.Contains(p.log(), "level=error") {
		t.Errorf("an accepted alert is logged as a failure:\n%s", p.log())
	}
}

// TestSilentReceiver: reloads don't wait for a receiver that never answers.
func TestSilentReceiver(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	answer := make(chan struct{})
	r, to := s.namespace(t, "alerts"), newReceiver(t, http.StatusOK, answer)
	source, o := r.configMap(t, "c", "0"), r.add(t, app{notes: notes(auto, "true")})
	r.runWith(t, []string{"ALERT_ON_RELOAD=true", "ALERT_WEBHOOK_URL=" + to.url})
	defer close(answer)
	r.set(t, source, "1")
	to.next(t)
	for turn, value := range []string{"2", "3"} {
		r.set(t, source, value)
		r.awaitReloads(t, o, int64(turn)+2, mark("configmap/c", value))
	}
}
