package notices_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// token is the secret part of every address.
const token = "webhook-t0ken"

// workloads is how many use one ConfigMap.
const workloads = 40

// receiver is an HTTP listener that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string
}

// newReceiver makes a listener that answers as given; nil accepts everything.
func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil || request.URL.Path != "/"+token {
			t.Errorf("a request to %s: %v", request.URL.Path, err)
		}
		r.mu.Lock()
		r.posts = append(r.posts, string(body))
		r.mu.Unlock()
		if answer != nil {
			answer(w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.posts...)
}

// await waits until a post contains all of the texts.
func (r *receiver) await(t *testing.T, texts ...string) string {
	t.Helper()
	found := ""
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		posts := r.seen()
		for _, post := range posts {
			missing := false
			for _, text := range texts {
				missing = missing || !strings.Contains(post, text)
			}
			if !missing {
				found = post
				return true, ""
			}
		}
		return false, fmt.Sprintf("no message has %q; the posts are %q", texts, posts)
	})
	return found
}

// address is where a target is sent to.
func (r *receiver) address() string { return r.URL + "/" + token }

// fleet is a world with Deployments that use the ConfigMap "app", and a file with targets.
func fleet(t *testing.T, targets string) (w *testkit.World, file string) {
	t.Helper()
	labtest.In(t, labtest.TierAll)
	w = testkit.NewWorld(t)
	w.Create(t, testkit.ConfigMap("app", "key", "1"))
	for n := range workloads {
		w.Create(t, testkit.Deployment(fmt.Sprintf("user-%02d", n), "app", ""))
	}
	file = filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, []byte(targets), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, file
}

// start runs the controller. Pods of a bare control plane never run, so nothing proves a version.
func start(t *testing.T, w *testkit.World, file string) *testkit.Controller {
	t.Helper()
	c := inprocess.StartReady(t, w, "--quiet", testkit.Quiet, "--ramp=false", "--max-rolling=0", "--notify-file", file)
	for n := range workloads {
		w.AwaitRecord(t, fmt.Sprintf("user-%02d", n))
	}
	return c
}

// change changes the ConfigMap, and waits until every Deployment has the change.
func change(t *testing.T, w *testkit.World) {
	t.Helper()
	w.SetConfig(t, "app", "key", "2")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &appsv1.DeploymentList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		rolled := 0
		for _, d := range list.Items {
			if strings.Contains(d.Spec.Template.Annotations[settings.Inputs], "configmap/app") {
				rolled++
			}
		}
		return rolled == workloads, fmt.Sprintf("%d of %d workloads are rolled out", rolled, workloads)
	})
}

// end ends the controller, and checks that nothing secret is in its log.
func end(t *testing.T, c *testkit.Controller) {
	t.Helper()
	c.Signal(t, syscall.SIGTERM)
	if code := c.ExitCode(t, testkit.Patience); code != 0 {
		t.Errorf("the controller ended with exit code %d", code)
	}
	if log := c.Stderr() + c.Stdout(); strings.Contains(log, token) || strings.Contains(log, "http://127.0.0.1") {
		t.Errorf("the log shows an address:\n%s", log)
	}
}

// TestNotifications: one message for a change that 40 workloads use, sent at the end at the latest;
// and receivers that are broken, that limit or that never answer delay no rollout.
func TestNotifications(t *testing.T) {
	t.Parallel()
	t.Run("OneMessage", func(t *testing.T) {
		t.Parallel()
		room, tenant := newReceiver(t, nil), newReceiver(t, nil)
		// Messages are gathered for longer than the test takes: the end sends them.
		w, file := fleet(t, fmt.Sprintf(`
batch: 10m
targets:
  room:   {slack: %s, prefix: "[prod]"}
  tenant: {webhook: %s, namespaces: ["*"], severity: [info], hmac: 0123456789abcdef}
routes: [{to: [room], severity: [info]}]
`, room.address(), tenant.address()))
		annotateNamespace(t, w, "tenant")
		c := start(t, w, file)
		change(t, w)
		awaitEvents(t, w, workloads)
		end(t, c)
		posts := room.seen()
		if len(posts) != 1 || !strings.Contains(posts[0], fmt.Sprintf("Reloaded in namespace %s", w.Namespace)) || !strings.Contains(posts[0], fmt.Sprintf(": %d objects", workloads)) || !strings.Contains(posts[0], " and 30 more: rolled out configmap/app ") {
			t.Errorf("the room got %q", posts)
		}
		posts = tenant.seen()
		var message struct {
			Count   int
			Objects []struct{ Namespace, Kind, Name string }
		}
		if len(posts) != 1 || json.Unmarshal([]byte(posts[0]), &message) != nil || message.Count != workloads || len(message.Objects) != workloads || message.Objects[0].Namespace != w.Namespace {
			t.Errorf("the tenant got %q", posts)
		}
	})
	t.Run("Receivers", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		t.Cleanup(sync.OnceFunc(func() { close(release) })) // before the listeners close
		broken := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		limits := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		silent := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		t.Cleanup(sync.OnceFunc(func() { silent.CloseClientConnections() }))
		good := newReceiver(t, nil)
		w, file := fleet(t, fmt.Sprintf(`
batch: 0s
targets:
  broken: {discord: %s}
  limits: {googleChat: %s}
  silent: {teams: %s}
  good:   {webhook: %s}
`, broken.address(), limits.address(), silent.address(), good.address()))
		c := start(t, w, file)
		w.Annotate(t, "user-00", settings.Quiet, "soon") // a mistake, of which everybody is notified
		for _, r := range []*receiver{broken, limits, silent, good} {
			r.await(t, "InvalidAnnotation in namespace "+w.Namespace)
		}
		w.Annotate(t, "user-00", settings.Quiet)
		change(t, w)
		if seen := silent.seen(); len(seen) == 0 || len(good.seen()) == 0 {
			t.Errorf("the silent receiver got %q", seen)
		}
		end(t, c)
		for _, want := range []string{
			"notify broken: it answered 500 Internal Server Error; Lockstep sends the messages again",
			"notify limits: it answered 429 Too Many Requests; Lockstep sends the messages again",
		} {
			if log := c.Stderr(); !strings.Contains(log, want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}

// awaitEvents waits until the API server has an event for each rollout: an event is announced
// before the next one, and to everybody at once.
func awaitEvents(t *testing.T, w *testkit.World, count int) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &corev1.EventList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		rollouts := 0
		for _, e := range list.Items {
			if e.Reason == "Reloaded" {
				rollouts++
			}
		}
		return rollouts == count, fmt.Sprintf("there are events of %d rollouts", rollouts)
	})
}

func annotateNamespace(t *testing.T, w *testkit.World, target string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"lockstep.dev/notify":%q}}}`, target)
	if err := w.Client.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// TestNotifyTest: the command sends one message with the targets of a file or of a Secret, and says
// what the receiver answered, never where it is.
func TestNotifyTest(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	room := newReceiver(t, nil)
	broken := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	targets := fmt.Sprintf("targets:\n  room: {slack: %s}\n  broken: {slack: %s}\n  gone: {slack: http://127.0.0.1:1/%s}\n", room.address(), broken.address(), token)
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, []byte(targets), 0o600); err != nil {
		t.Fatal(err)
	}
	w := testkit.NewWorld(t)
	w.Create(t, testkit.Secret("receivers", "targets.yaml", targets), testkit.Secret("wrong", "targets.yaml", "targets: {room: {slack: "+token+"}}"))
	inCluster := []string{"--kubeconfig", w.Cluster.Kubeconfig(), "-n", w.Namespace, "--secret"}
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"File":       {[]string{"room", "-f", file}, 0, "sent a test message to room (slack)\n", ""},
		"Secret":     {append([]string{"room"}, append(inCluster, "receivers")...), 0, "sent a test message to room (slack)\n", ""},
		"Refused":    {[]string{"broken", "-f", file}, 1, "", "Error: notify broken: it answered 403 Forbidden\n"},
		"Gone":       {[]string{"gone", "-f", file}, 1, "", "connection refused"},
		"Unknown":    {[]string{"nobody", "-f", file}, 2, "", `target "nobody" is not known; known are broken, gone, room`},
		"NoTargets":  {[]string{"room"}, 2, "", "name the targets with either -f FILE or --secret NAME"},
		"BothPlaces": {[]string{"room", "-f", file, "--secret", "a"}, 2, "", "name the targets with either"},
		"NoFile":     {[]string{"room", "-f", file + "x"}, 2, "", "no such file"},
		"NoSecret":   {append([]string{"room"}, append(inCluster, "none")...), 1, "", `secrets "none" not found`},
		"NoKey":      {append([]string{"room", "--key", "other"}, append(inCluster, "receivers")...), 2, "", "has no key other"},
		"Mistake":    {append([]string{"room"}, append(inCluster, "wrong")...), 2, "", "secret/wrong: target room: slack: want a URL"},
		"NoName":     {[]string{"-f", file}, 2, "", "name of one target"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := inprocess.Run(t, append([]string{"notify", "test"}, c.args...)...)
			if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || strings.Contains(stderr, token) || strings.Contains(stderr, "127.0.0.1:"+strings.Split(broken.URL, ":")[2]) {
				t.Errorf("exit code %d, wrote %q and %q", code, stdout, stderr)
			}
		})
	}
	if posts := room.seen(); len(posts) != 2 || !strings.Contains(posts[0], "Test in namespace test") {
		t.Errorf("the room got %q", posts)
	}
}
