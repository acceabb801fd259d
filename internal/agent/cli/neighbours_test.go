package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// slowApplication answers its reloads when it is let.
type slowApplication struct {
	*httptest.Server

	mu      sync.Mutex
	reloads int
	asked   int
	done    bool
	let     chan int
}

// newSlowApplication serves /reload, which waits for a code in let, and
// /version, which tells whether a reload has ended.
func newSlowApplication(t *testing.T) *slowApplication {
	t.Helper()
	s := &slowApplication{let: make(chan int, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("/reload", func(w http.ResponseWriter, r *http.Request) {
		s.count(&s.reloads)
		select {
		case code := <-s.let:
			s.mu.Lock()
			s.done = code == http.StatusOK
			s.mu.Unlock()
			w.WriteHeader(code)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		s.count(&s.asked)
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprint(w, "done=", s.done)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *slowApplication) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func (s *slowApplication) counted() (reloads, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads, s.asked
}

// brief is a time limit that a slow machine keeps for sending a request, and that an
// application exceeds when the test holds its answer.
const brief = "500ms"

// A reload that takes many times its time limit is sent once, asked about, and
// not rolled back; health is red while it hangs, and green when it is done.
func TestSlowReload(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	app := newSlowApplication(t)
	a := agentkit.Run(t, "--directory="+source, "--notify="+app.URL+"/reload timeout="+brief, "--confirm=body:done=true@"+app.URL+"/version",
		"--roll-back", "--max-failures=3", "--retry=50ms", "--initial-notify=never")
	a.WantFiles(map[string]string{"a": "1"})
	agentkit.Write(t, filepath.Join(source, "a"), "2")
	body := a.WantProbe("/healthz/application", http.StatusServiceUnavailable)
	if !strings.Contains(body, "sent, not answered within "+brief) {
		t.Errorf("health says %s", body)
	}
	if reloads, _ := app.counted(); reloads != 1 {
		t.Errorf("sent %d times", reloads)
	}
	app.let <- http.StatusOK
	a.WantProbe("/healthz/application", http.StatusOK)
	a.WantConfirmed()
	a.WantFiles(map[string]string{"a": "2"})
	if reloads, asked := app.counted(); reloads != 1 || asked == 0 {
		t.Errorf("sent %d times, asked %d times", reloads, asked)
	}
}

// A late no counts, and the set goes back.
func TestSlowRefusal(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	app := newSlowApplication(t)
	a := agentkit.Run(t, "--directory="+source, "--notify="+app.URL+"/reload timeout="+brief, "--roll-back", "--max-failures=2", "--retry=50ms", "--initial-notify=never")
	a.WantFiles(map[string]string{"a": "1"})
	agentkit.Write(t, filepath.Join(source, "a"), "2")
	a.WantProbe("/healthz/application", http.StatusServiceUnavailable)
	a.WantFiles(map[string]string{"a": "2"})
	app.let <- http.StatusInternalServerError
	app.let <- http.StatusOK // to the set that is put back
	a.WantFiles(map[string]string{"a": "1"})
	a.WantProbe("/healthz/application", http.StatusOK)
}

// A redirect is the answer, and nobody else gets the key; the second address
// gets nothing of the first.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	source, token := t.TempDir(), filepath.Join(t.TempDir(), "token")
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	agentkit.Write(t, token, "for-the-first")
	var mu sync.Mutex
	seen := map[string]string{}
	listen := func(name string, handler http.HandlerFunc) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen[name] = r.Header.Get("Authorization") + r.Header.Get("X-API-Key")
			mu.Unlock()
			handler(w, r)
		}))
		t.Cleanup(server.Close)
		return server
	}
	ok := func(http.ResponseWriter, *http.Request) {}
	elsewhere := listen("elsewhere", ok)
	second := listen("second", http.RedirectHandler(elsewhere.URL+"/x?token=secret", http.StatusTemporaryRedirect).ServeHTTP)
	first := listen("first", ok)
	a := agentkit.Run(t, "--directory="+source, "--notify="+first.URL, "--notify="+second.URL, "--http-bearer-file="+token, "--http-header=X-API-Key: key",
		"--initial-notify=always")
	a.WantFiles(map[string]string{"a": "1"})
	a.WantStatus("a redirect", func(s podsync.Status) bool {
		return strings.Contains(s.Message, "answered 307 Temporary Redirect and points to "+elsewhere.URL+"/x,")
	})
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(seen); got != "map[first:Bearer for-the-firstkey second:]" {
		t.Errorf("the servers saw %s", got)
	}
	if strings.Contains(a.Stderr(), "secret") {
		t.Errorf("the log shows what a redirect carried:\n%s", a.Stderr())
	}
}

// What a failing command printed is in the status file with its mode, and
// nowhere else: not in the log, also when the agent ends because of it.
func TestOutputIsInTheStatusOnly(t *testing.T) {
	t.Parallel()
	const secret = "line-with-password"
	for name, args := range map[string][]string{
		"notify":      {"--notify=exec:sh -c 'echo " + secret + "; exit 1'", "--initial-notify=always", "--max-failures=1"},
		"confirm":     {"--confirm=exec:sh -c 'echo " + secret + "; exit 1'", "--initial-notify=always", "--confirm-timeout=" + brief, "--max-failures=1"},
		"check, once": {"--check=sh -c 'echo " + secret + "; exit 1'", "--once"},
		"check":       {"--check=sh -c 'echo " + secret + "; exit 1'", "--", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := t.TempDir()
			agentkit.Write(t, filepath.Join(source, "a"), "1")
			run := agentkit.Run
			if slices.Contains(args, "--") {
				run = agentkit.Start
			}
			a := run(t, append([]string{"--directory=" + source, "--file-mode=0640"}, args...)...)
			if strings.HasPrefix(name, "check") {
				if code := a.ExitCode(t, agentkit.Patience); code != 1 || !strings.Contains(a.Stderr(), "to see its output, run") {
					t.Errorf("code %d: %s", code, a.Stderr())
				}
			} else {
				a.WantProbe("/healthz", http.StatusServiceUnavailable)
				for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
					if _, body := a.Probe(path); strings.Contains(body, secret) {
						t.Errorf("%s shows it: %s", path, body)
					}
				}
			}
			file := filepath.Join(a.Root, "..lockstep", "status.json")
			labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
				text := agentkit.Read(file)
				return strings.Contains(text, secret), "the status is " + text
			})
			a.WantLog("exit status 1")
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v (%v)", info.Mode(), err)
			}
			if strings.Contains(a.Stderr(), secret) {
				t.Errorf("the log is\n%s", a.Stderr())
			}
		})
	}
}

// An agent that only watches knows of no earlier one: it tells the application
// at its start, which may be a restart.
func TestARestartWithoutARootTellsAgain(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	for n := 1; n <= 2; n++ {
		a := agentkit.InProcess(t, agentkit.Call{Args: []string{"--directory=" + source, "--notify=" + server.URL}})
		labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == n, fmt.Sprint(app.count(), a.Stderr()) })
		a.Stop(t)
		agentkit.Write(t, filepath.Join(source, "a"), "2") // nobody looks
	}
}

// The application's own files in a published directory outlive the next publish.
func TestFilesOfTheApplication(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "conf.d", "a"), "1")
	a := agentkit.Run(t, "--directory="+source, "--keep-old=0")
	a.WantFiles(map[string]string{"conf.d/a": "1"})
	agentkit.Write(t, filepath.Join(a.Root, "conf.d", "mine"), "mine")
	agentkit.Write(t, filepath.Join(source, "conf.d", "a"), "2")
	a.WantFiles(map[string]string{"conf.d/a": "2", "conf.d/mine": "mine"})
}

// What another program wrote into a published file while the agent was down is put
// back at its start, and the application is told.
func TestDriftIsPutBackAtAStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1", "b": "1"})
	for _, layout := range []string{"links", "exchange", "files"} {
		t.Run(layout, func(t *testing.T) {
			app := &reloads{answer: always(http.StatusOK)}
			server := httptest.NewServer(app)
			defer server.Close()
			args := []string{"--kubeconfig=" + c.lab.Kubeconfig(), "--configmap=" + c.namespace + "/app", "--layout=" + layout, "--notify=" + server.URL}
			a := agentkit.Run(t, args...)
			a.WantFiles(map[string]string{"a": "1", "b": "1"})
			a.WantProbe("/startupz", http.StatusOK)
			a.Stop(t)
			if err := os.WriteFile(filepath.Join(a.Root, "a"), []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
			a = agentkit.RunIn(t, a.Root, args...)
			a.WantFiles(map[string]string{"a": "1", "b": "1"})
			a.WantLog("the published files have changed: generation ")
			labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == 1, a.Stderr() })
		})
	}
}

// An init container without a check has published a set that the application
// does not take. The agent with the check does not start the application on it.
func TestNoChildOnAnUncheckedSet(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "bad")
	root := agentkit.NewRoot(t)
	// A process of its own: one that this process starts at the same moment would inherit the lock.
	a := agentkit.StartIn(t, root, "--directory="+source, "--once")
	if code := a.ExitCode(t, agentkit.Patience); code != 0 {
		t.Fatalf("code %d: %s", code, a.Stderr())
	}
	check := "--check=sh -c '! grep -q bad {dir}/a'"
	a = agentkit.StartIn(t, root, "--directory="+source, check, "--", "sh", "-c", "echo started; exec sleep 1000")
	if code := a.ExitCode(t, agentkit.Patience); code != 1 || a.Stdout() != "" || !strings.Contains(a.Stderr(), "the check refused the first set") {
		t.Errorf("code %d, the application said %q: %s", code, a.Stdout(), a.Stderr())
	}
	agentkit.Write(t, filepath.Join(source, "a"), "good")
	a = agentkit.StartIn(t, root, "--directory="+source, check, "--", "sh", "-c", "echo started; exec sleep 1000")
	a.WantOutput("started")
	a.Stop(t)
}
