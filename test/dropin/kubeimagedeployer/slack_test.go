package kubeimagedeployer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// secretPath is the part of the webhook that must not be shown.
const secretPath = "/services/T0/B0/webhook-token"

// webhook stands in for Slack, which cannot be had.
type webhook struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	h := &webhook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body) != 1 || r.URL.Path != secretPath {
			t.Errorf("a post of %v to %s: %v", body, r.URL.Path, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.posts = append(h.posts, body["text"])
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *webhook) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.NewReplacer("&gt;", ">", "&lt;", "<", "&amp;", "&").Replace(strings.Join(h.posts, ""))
}

func (h *webhook) await(t *testing.T, text string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Contains(h.text(), text), "Slack was not told " + text + ", but " + h.text()
	})
}

// TestSlack: what was rolled out and what failed is told, with the prefix; a failure that
// goes on is told once; what is left is told at the end; the webhook and the credentials
// are in no log and in no message.
func TestSlack(t *testing.T) {
	t.Parallel()
	s, hook := newSite(t), newWebhook(t)
	first := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"), s.deployment("broken", "missing:1"))
	r := s.start(t, "SLACK_WEBHOOK="+hook.URL+secretPath, "SLACK_MSG_PREFIX=[prod]")
	s.awaitImages(t, "web", "app="+first)
	hook.await(t, "```[prod][")
	hook.await(t, "][info] Deployment "+s.Namespace+"/web: rolled out image/app unknown -> ")
	hook.await(t, "][error] Deployment "+s.Namespace+"/broken: annotation "+s.key+"/app: digest of "+s.at("missing:1"))
	s.fence(t)
	s.setImage(t, "web", "by-hand")
	s.awaitImages(t, "web", "app="+first)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // that the API server has answered
		n := strings.Count(r.Stderr(), s.Namespace+"/web verb=roll")
		return n == 2, fmt.Sprintf("the log shows %d rollouts, want 2:\n%s", n, r.Stderr())
	})
	stop(t, r)
	if n := strings.Count(hook.text(), "/web: rolled out"); n != 2 {
		t.Errorf("%d messages of rollouts, want 2: the last one was sent before the end\n%s", n, hook.text())
	}
	if n := strings.Count(hook.text(), "/broken: "); n != 1 {
		t.Errorf("the broken image is told %d times, want once", n)
	}
	for _, secret := range []string{"webhook-token", "lab-password", "bGFi"} {
		if strings.Contains(r.Stderr()+r.Stdout()+hook.text(), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}
