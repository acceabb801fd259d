package reloader

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// receiver stands in for a chat or a webhook.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex
	posts []string // type and body
	said  []string // what was reported
}

// newReceiver answers each request with answer, or with 200.
func newReceiver(t *testing.T, answer func(w http.ResponseWriter, post int)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.posts = append(r.posts, request.Method+" "+request.Header.Get("Content-Type")+" "+string(body))
		n := len(r.posts)
		r.mu.Unlock()
		if answer != nil {
			answer(w, n)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, err.Error())
}

func (r *receiver) seen() (posts []string, said string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.posts...), strings.Join(r.said, "\n")
}

// eventually waits for a number of requests.
func (r *receiver) eventually(t *testing.T, posts int) {
	t.Helper()
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		got, said := r.seen()
		return len(got) >= posts, fmt.Sprintf("%d requests of %d; reported: %s", len(got), posts, said)
	})
}

func (r *receiver) options() notify.Options {
	return notify.Options{Now: time.Now, Report: r.report}
}

func (r *receiver) alerts(t *testing.T, a Alert) *notify.Notifier {
	t.Helper()
	a.On, a.URL = true, notice.Hidden(r.URL+"/secret")
	n, err := newAlerts(a, r.options())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// running runs a notifier until the end of the test.
func running(t *testing.T, n *notify.Notifier) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
}

func reload(workload string) announce.Event {
	e := reloader.Event{
		About:  corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: workload},
		Source: stakater.Source{Type: stakater.ConfigMap, Name: "app"}, Reason: reloader.Reloaded,
	}
	return announce.Event{About: &e.About, Reason: e.Reason, Note: alertText(e)}
}

// TestAlertPayloads: receivers of the original parse these bytes.
func TestAlertPayloads(t *testing.T) {
	t.Parallel()
	const (
		text  = "Changes detected in *app* of type *CONFIGMAP* in namespace *shop*: reloaded *web* of type *Deployment* in namespace *shop*"
		plain = "Changes detected in app of type CONFIGMAP in namespace shop: reloaded web of type Deployment in namespace shop"
	)
	for name, tc := range map[string]struct {
		alert Alert
		want  string
	}{
		"Slack":   {Alert{Sink: "slack"}, `POST application/json {"attachments":[{"color":"good","author_name":"Reloader","text":"` + text + `"}]}`},
		"Teams":   {Alert{Sink: "teams"}, `POST application/json {"text":"` + text + `"}`},
		"GChat":   {Alert{Sink: "gchat"}, `POST application/json {"text":"` + text + `"}`},
		"Raw":     {Alert{Sink: "raw"}, "POST text/plain " + plain},
		"Webhook": {Alert{Sink: "webhook"}, "POST text/plain " + plain},
		"None":    {Alert{}, "POST text/plain " + plain},
		"Info":    {Alert{Sink: "teams", Info: `prod "eu"`}, `POST application/json {"text":"prod \"eu\" : ` + text + `"}`},
		"RawInfo": {Alert{Info: "*prod*"}, "POST text/plain prod : " + plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, nil)
			n := r.alerts(t, tc.alert)
			n.Announce(reload("web"))
			n.Flush(t.Context())
			posts, said := r.seen()
			if diff := cmp.Diff([]string{tc.want}, posts); diff != "" || said != "" {
				t.Errorf("reported %q, requests (-want +got):\n%s", said, diff)
			}
		})
	}
}

// TestAlertAnswers: which answers are a success, and that none of the messages tells the address.
func TestAlertAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		answer func(w http.ResponseWriter, post int)
		posts  int
		want   string
	}{
		"Accepted": {"Teams answers 202", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted) }, 2, ""},
		"Refused":  {"it would be refused again", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNotFound) }, 2, "notify ALERT_WEBHOOK_URL: it answered 404 Not Found; the messages are dropped; check the webhook"},
		"Redirect": {"the message is for this receiver only", func(w http.ResponseWriter, _ int) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 2, "notify ALERT_WEBHOOK_URL: it answered 307 Temporary Redirect; the messages are dropped; check the webhook"},
		"Error": {"it is sent again, and the order stays", func(w http.ResponseWriter, post int) {
			if post == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}, 3, "notify ALERT_WEBHOOK_URL: it answered 500 Internal Server Error; Lockstep sends the messages again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, tc.answer)
			n := r.alerts(t, Alert{})
			running(t, n)
			n.Announce(reload("first"))
			n.Announce(reload("second"))
			r.eventually(t, tc.posts)
			posts, said := r.seen()
			if said != tc.want {
				t.Errorf("%s: reported %q, want %q", tc.reason, said, tc.want)
			}
			last := len(posts) - 1
			if !strings.Contains(posts[last-1], "first") || !strings.Contains(posts[last], "second") {
				t.Errorf("%s: requests %q", tc.reason, posts)
			}
		})
	}
}

// TestAlertsOfABurst: each reload is a message, in order, and none waits for a second.
func TestAlertsOfABurst(t *testing.T) {
	t.Parallel()
	const burst = 400
	r := newReceiver(t, nil)
	n := r.alerts(t, Alert{Sink: sinkSlack})
	running(t, n)
	for i := range burst {
		n.Announce(reload(fmt.Sprintf("web-%d", i)))
	}
	r.eventually(t, burst)
	posts, _ := r.seen()
	for i, post := range posts {
		if !strings.Contains(post, fmt.Sprintf("*web-%d*", i)) {
			t.Fatalf("request %d is %s", i, post)
		}
	}
}

// TestAlertsNeverWait: a receiver that hangs delays nothing, and what waits for it is bounded.
func TestAlertsNeverWait(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, int) { <-release })
	n := r.alerts(t, Alert{})
	running(t, n)
	n.Announce(reload("first"))
	r.eventually(t, 1)
	for i := range 2000 { // It would hang here.
		n.Announce(reload(fmt.Sprintf("web-%d", i)))
	}
	close(release)
	r.eventually(t, 500)
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		posts, _ := r.seen()
		return strings.Contains(posts[len(posts)-1], " web-1999 "), "the last message is " + posts[len(posts)-1]
	})
	if posts, _ := r.seen(); len(posts) > 502 {
		t.Errorf("%d messages were kept", len(posts))
	}
}

// TestAlertProxy: it is the only proxy.
func TestAlertProxy(t *testing.T) {
	t.Parallel()
	direct, err := through("")
	if err != nil || direct.Proxy != nil {
		t.Errorf("without a proxy, %v: a proxy of the environment may be used", err)
	}
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	t.Cleanup(proxy.Close)
	n, err := newAlerts(Alert{On: true, URL: "http://hooks.invalid/secret", Proxy: notice.Hidden(strings.TrimPrefix(proxy.URL, "http://"))}, notify.Options{Now: time.Now, Report: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	n.Announce(reload("web"))
	n.Flush(t.Context())
	select {
	case got := <-asked:
		if got != "http://hooks.invalid/secret" {
			t.Errorf("the proxy was asked for %s", got)
		}
	default:
		t.Error("the proxy was not asked")
	}
}

// TestNoAlerts: why none are sent is an error, which doesn't show an address.
func TestNoAlerts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		alert Alert
		want  string
	}{
		"Off":   {Alert{URL: "https://hooks.example/secret"}, "<nil>"},
		"NoURL": {Alert{On: true}, "ALERT_ON_RELOAD is true, but ALERT_WEBHOOK_URL is not set"},
		"Proxy": {Alert{On: true, URL: "https://hooks.example/secret", Proxy: "http://user:secret@"}, "ALERT_WEBHOOK_PROXY is not a URL"},
	} {
		n, err := newAlerts(tc.alert, notify.Options{})
		if got := fmt.Sprint(err); n != nil || got != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		n.Announce(reload("web")) // A nil notifier notifies nobody.
	}
}

// TestWebhook: any answer is a success; a request without one is sent again.
func TestWebhook(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, post int) {
		switch post {
		case 1:
			panic(http.ErrAbortHandler) // It closes the connection.
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("x", 5000))
		default:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		}
	})
	var mu sync.Mutex
	var answers []string
	o := r.options()
	o.Answered = func(status int, body []byte) {
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, fmt.Sprint(status, " ", len(body)))
	}
	webhook := newWebhook(notice.Hidden(r.URL+"/secret"), o)
	running(t, webhook)
	call(webhook)
	call(webhook)
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return len(answers) == 2, fmt.Sprintf("answers %q", answers)
	})
	posts, said := r.seen()
	same := `POST application/json {"webhook":"update successful"}`
	if diff := cmp.Diff([]string{same, same, same}, posts); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"500 1024", "302 0"}, answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(said, "notify --webhook-url: ") || strings.Contains(said, "secret") {
		t.Errorf("reported %q", said)
	}
}
