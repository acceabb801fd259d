package application

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = time.Minute

// brief is a time limit within which even a slow machine sends a request. An application
// exceeds it when the test holds back its response.
const brief = 500 * time.Millisecond

// child takes note of what it is told.
type child struct{ signals []unix.Signal }

func (c *child) Notify(sig unix.Signal) error {
	c.signals = append(c.signals, sig)
	return nil
}
func (c *child) Restart(context.Context) error { return errors.New("restarted") }
func (c *child) PID() int                      { return 0 }

func settings(c Child) Settings {
	o := httpcall.Options{Method: "POST", Timeout: patience}
	return Settings{HTTP: HTTP{First: o, Others: o}, Timeout: patience, Parent: process.NewParent(), Child: c}
}

func TestNotifiers(t *testing.T) {
	var method string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { method = r.Method }))
	defer server.Close()
	c := &child{}
	release := podsync.Delivery{Generation: "g1", Dir: "/d", Changed: []string{"a", "b"}}
	for spec, want := range map[string]struct {
		acknowledged bool
		err          string
	}{
		server.URL:          {true, ""},
		"signal:USR1":       {false, ""},
		"signal:USR1@child": {false, ""},
		"restart":           {false, "restarted"},
		"exec:test {generation} = g1 -a {dir} = /d":                                                   {true, ""},
		`exec:sh -c 'test "$LOCKSTEP_CHANGED_FILES" = "a` + "\n" + `b" -a $LOCKSTEP_GENERATION = g1'`: {true, ""},
		"exec:sh -c 'echo first; echo the reason; exit 1'":                                            {false, "run sh: exit status 1"},
		"socket:/does/not/exist:reload":                                                               {false, "send reload to the socket /does/not/exist"},
		"signal:HUP@pidfile:/does/not/exist":                                                          {false, "no such file"},
	} {
		notifier, err := NewNotifier(spec, settings(c))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		acknowledged, err := notifier.Notify(t.Context(), release)
		if acknowledged && err == nil != want.acknowledged || (err == nil) != (want.err == "") || (err != nil && !strings.Contains(err.Error(), want.err)) {
			t.Errorf("%s: acknowledged %v, error %v", spec, acknowledged, err)
		}
	}
	if method != "POST" || len(c.signals) != 2 || c.signals[0] != unix.SIGUSR1 {
		t.Errorf("method %s, signals %v", method, c.signals)
	}
}

// cutOff ends the time in the middle of a question.
type cutOff struct {
	probe

	at  int
	cut func()
}

func (c *cutOff) ask(ctx context.Context, release podsync.Delivery, baseline string) (bool, error) {
	if c.at--; c.at == 0 {
		c.cut()
	}
	return c.probe.ask(ctx, release, baseline)
}

func TestConfirmers(t *testing.T) {
	var answers atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("# TYPE ok gauge\nok 1\nversion=7 " + r.Method + "\n"))
	}))
	defer server.Close()
	for spec, want := range map[string]string{
		server.URL:                                  "",
		"body:version=7 GET@" + server.URL:          "",
		"body:version=8@" + server.URL:              "does not match",
		"metric:ok==1@" + server.URL:                "",
		"metric:ok==0@" + server.URL:                "the metric ok is not == 0",
		"metric:none==0@" + server.URL:              "there is no metric none",
		"exec:true":                                 "",
		"exec:sh -c 'echo not yet; exit 1'":         "run sh: exit status 1",
		"exec:test {generation} = g1 -a {dir} = /d": "",
		`exec:sh -c 'test $LOCKSTEP_GENERATION = g1 -a $LOCKSTEP_DIR = /d'`: "",
	} {
		confirmer, err := NewConfirmer(spec, patience, settings(nil))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		// A right answer comes at the third time at the latest, and a wrong one
		// is still the reason when the fifth question gets none.
		ctx, cancel := context.WithCancel(t.Context())
		confirmer.probe = &cutOff{probe: confirmer.probe, at: 5, cut: cancel}
		err = confirmer.Confirm(ctx, podsync.Delivery{Generation: "g1", Dir: "/d"}, "")
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v", spec, err)
		}
	}
}

// A dead child has no workers. Its number is 0, which is the parent of PID 1.
func TestWorkersOfADeadChild(t *testing.T) {
	confirmer, err := NewConfirmer("workers:child", time.Millisecond, settings(&child{}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = confirmer.Baseline(t.Context())
	if _, unreachable := errors.AsType[*podsync.UnreachableError](err); !unreachable {
		t.Errorf("error %v, want one that says that it cannot be asked", err)
	}
	if err := confirmer.Confirm(t.Context(), podsync.Delivery{}, "[12]"); err == nil {
		t.Error("it is confirmed")
	}
}

// A signal is only on its way when it is sent: the metrics that are asked for at
// once are those from before. A reload that fails must not look confirmed.
func TestAMetricIsComparedWithBefore(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		after  []string
		want   string
	}{
		"reloaded":       {"success_time 7\n", []string{"success_time 7\n", "success_time 8\n"}, ""},
		"failed":         {"success_time 7\n", []string{"success_time 7\n", "success_time 7\n"}, "the metric success_time is not > before"},
		"every sample":   {"success_time{a=\"1\"} 7\nsuccess_time{a=\"2\"} 7\n", []string{"success_time{a=\"1\"} 8\nsuccess_time{a=\"2\"} 7\n"}, "is not > before"},
		"first":          {"", []string{"success_time 1\n"}, ""},
		"started again":  {"success_time NaN\n", []string{"success_time 1\n"}, ""},
		"not there":      {"", []string{""}, "there is no metric success_time"},
		"another metric": {"success_time_2 7\nsuccess_time 7\n", []string{"success_time_2 8\nsuccess_time 7\n"}, "is not > before"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := append([]string{c.before}, c.after...)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(answers[0]))
				answers = answers[min(1, len(answers)-1):]
			}))
			defer server.Close()
			confirmer, err := NewConfirmer("metric:success_time>before@"+server.URL, patience, settings(nil))
			if err != nil {
				t.Fatal(err)
			}
			baseline, err := confirmer.Baseline(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			confirmer.probe = &cutOff{probe: confirmer.probe, at: 4, cut: cancel}
			err = confirmer.Confirm(ctx, podsync.Delivery{}, baseline)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// An agent that was started again between telling and asking has nothing to
// compare with, and must not confirm for that.
func TestNothingToCompareWith(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x 1\n")) }))
	defer server.Close()
	workers := process.NewChild(process.NewParent(), process.ChildOptions{Args: []string{"sh", "-c", "sleep 1000; :"}, StopSignal: unix.SIGTERM, Grace: time.Minute})
	if err := workers.Start(); err != nil {
		t.Fatal(err)
	}
	defer workers.Stop(t.Context())
	labtest.Eventually(t, patience, func() (bool, string) {
		return len(process.ChildrenOf(workers.PID())) > 0, "the child hasn't started a worker"
	})
	for _, spec := range []string{"metric:x>before@" + server.URL, "workers:child"} {
		confirmer, err := NewConfirmer(spec, patience, settings(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := confirmer.Confirm(t.Context(), podsync.Delivery{}, ""); err == nil || !strings.Contains(err.Error(), "the state before the reload is not known") {
			t.Errorf("%s: error %v", spec, err)
		}
	}
}

// The kernel refuses to start a program with a variable of more than 128 KiB.
func TestManyChangedFiles(t *testing.T) {
	release := podsync.Delivery{Generation: "g1", Dir: "/d"}
	for n := range 5000 {
		release.Changed = append(release.Changed, "directory/with/a/long/name/file-"+strconv.Itoa(n))
	}
	notifier, err := NewNotifier(`exec:sh -c 'test -z "$LOCKSTEP_CHANGED_FILES" -a $LOCKSTEP_GENERATION = g1'`, settings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notifier.Notify(t.Context(), release); err != nil {
		t.Error(err)
	}
}

// An application that could not be asked is told apart from one that refuses.
func TestUnreachable(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/starting":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/hangs":
			<-stop
		case "/dies":
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	defer close(stop)
	closed := httptest.NewServer(nil)
	closed.Close()
	for spec, want := range map[string]bool{
		closed.URL:                       true,
		server.URL + "/starting":         true,
		server.URL + "/hangs":            false, // it was told; see TestASlowReloadIsTold
		server.URL + "/refuses":          false,
		server.URL + "/dies":             false,
		"socket:/does/not/exist:reload":  true,
		"signal:HUP@pidfile:/not/there":  true,
		"signal:HUP@name:lockstep-never": true,
		"exec:false":                     false,
	} {
		s := settings(nil)
		if strings.HasSuffix(spec, "/hangs") {
			s.HTTP.Others.Timeout = brief
		}
		notifier, err := NewNotifier(spec, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = notifier.Notify(t.Context(), podsync.Delivery{})
		if _, unreachable := errors.AsType[*podsync.UnreachableError](err); err == nil || unreachable != want {
			t.Errorf("%s: %v, unreachable is %v", spec, err, unreachable)
		}
	}
}

// A request that was sent and not answered in time is one that the application
// was told of, and its answer can still be had.
func TestASlowReloadIsTold(t *testing.T) {
	for answer, wantErr := range map[int]bool{http.StatusOK: false, http.StatusInternalServerError: true} {
		release, requests := make(chan struct{}), atomic.Int32{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			<-release
			w.WriteHeader(answer)
		}))
		s := settings(nil)
		s.HTTP.Others.Timeout = brief
		notifier, err := NewNotifier(server.URL, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = notifier.Notify(t.Context(), podsync.Delivery{})
		late, told := errors.AsType[*podsync.UnansweredError](err)
		if !told || late.Patience != s.HTTP.Others.Timeout {
			t.Fatalf("error %v", err)
		}
		close(release)
		if err := <-late.Answer; (err != nil) != wantErr || requests.Load() != 1 {
			t.Errorf("late answer %d: error %v after %d requests", answer, err, requests.Load())
		}
		late.Abandon()
		server.Close()
	}
}

// A line on a socket that gets no answer in time was sent.
func TestASlowSocketIsTold(t *testing.T) {
	socket := t.TempDir() + "/s"
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := settings(nil)
	s.Timeout = brief
	notifier, err := NewNotifier("socket:"+socket+":reload", s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notifier.Notify(t.Context(), podsync.Delivery{}); err != nil {
		t.Errorf("error %v", err)
	}
}

// What lies behind the part of an answer that is read is not absent.
func TestMetricsBeyondTheLimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("other 1\n"), 1<<20))
		_, _ = w.Write([]byte("errors 1\n"))
	}))
	defer server.Close()
	for _, spec := range []string{"metric:errors==1@", "metric:errors>before@", "body:none@"} {
		confirmer, err := NewConfirmer(spec+server.URL, time.Millisecond, settings(nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = confirmer.probe.ask(t.Context(), podsync.Delivery{}, compared); err == nil || !strings.Contains(err.Error(), "the answer is larger than 4 MiB") {
			t.Errorf("%s: error %v", spec, err)
		}
	}
	confirmer, err := NewConfirmer(server.URL, patience, settings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := confirmer.Confirm(t.Context(), podsync.Delivery{}, ""); err != nil {
		t.Errorf("a code needs no body: %v", err)
	}
}

// What was given for one address reaches no other: each has its own.
func TestEachAddressHasItsOwnCredentials(t *testing.T) {
	token, other := t.TempDir()+"/token", t.TempDir()+"/other"
	for file, content := range map[string]string{token: "for-the-first", other: "for-the-second"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	listen := func(name string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen[name+r.URL.Path] = r.Method + " " + r.Header.Get("Authorization") + r.Header.Get("X-Key")
			w.WriteHeader(http.StatusAccepted)
		}))
		t.Cleanup(server.Close)
		return server
	}
	first, second, third := listen("first"), listen("second"), listen("third")
	s := settings(nil)
	s.HTTP.First = httpcall.Options{URL: first.URL + "/reload", Method: "PUT", Headers: []string{"X-Key: key"}, Credentials: httpcall.Credentials{BearerFile: token}, Timeout: patience}
	for _, spec := range []string{first.URL + "/reload", first.URL + "/again", second.URL, third.URL + "/x method=PATCH codes=202 bearer-file=" + other + " header='X-Key: its own'"} {
		notifier, err := NewNotifier(spec, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := notifier.Notify(t.Context(), podsync.Delivery{}); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for _, spec := range []string{first.URL + "/asked", second.URL + "/asked", "body:^$@" + third.URL + "/asked bearer-file=" + other} {
		confirmer, err := NewConfirmer(spec, patience, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := confirmer.Confirm(t.Context(), podsync.Delivery{}, ""); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	want := map[string]string{
		"first/reload": "PUT Bearer for-the-firstkey", "first/again": "PUT Bearer for-the-firstkey", "first/asked": "GET Bearer for-the-firstkey",
		"second/": "POST ", "second/asked": "GET ", "third/x": "PATCH Bearer for-the-secondits own", "third/asked": "GET Bearer for-the-second",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what the servers saw: -want +got\n%s", diff)
	}
}

// The same name on another socket is another server.
func TestASocketIsPartOfTheServer(t *testing.T) {
	const token, reload = "/token", "http://localhost/reload"
	for name, c := range map[string]struct {
		first, own string // the socket of the flags, and the one behind the first address
		spec, want string
	}{
		"the first":                     {"", "", reload, token},
		"another path":                  {"/a", "", "http://localhost/x", token},
		"the same socket":               {"/a", "", reload + " unix-socket=/a", token},
		"another socket":                {"/a", "", reload + " unix-socket=/b", ""},
		"a socket instead of a port":    {"", "", reload + " unix-socket=/b", ""},
		"a port instead of a socket":    {"/a", "", reload + " unix-socket=", ""},
		"another socket and its token":  {"/a", "", reload + " unix-socket=/b bearer-file=/its", "/its"},
		"the first with its own socket": {"", "/a", reload + " unix-socket=/a", token},
		"a port, the first on a socket": {"", "/a", reload, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := HTTP{First: httpcall.Options{URL: reload, Credentials: httpcall.Credentials{BearerFile: token}, UnixSocket: c.first}, OwnSocket: c.own}
			if o, _ := h.parse(c.spec); o.Credentials.BearerFile != c.want {
				t.Errorf("the token is from %q, want %q", o.Credentials.BearerFile, c.want)
			}
		})
	}
	for spec, want := range map[string]string{
		reload: "", reload + " method=PUT unix-socket='/a b'": "/a b", "body:^ok unix-socket=/x$@" + reload + " unix-socket=/a": "/a", "exec:x unix-socket=/a": "",
		reload + " header='X: a@http://b' unix-socket=/a": "/a",
	} {
		if got := Socket(spec); got != want {
			t.Errorf("%s: socket %q, want %q", spec, got, want)
		}
	}
}

// A mistake in an option is one line that shows no value.
func TestMistakesInOptions(t *testing.T) {
	for spec, want := range map[string]string{
		"http://h/ bearer=hunter2":  `http://h/ has no option "bearer": want one of method, header,`,
		"http://h/ timeout=hunter2": "timeout of http://h/: want a time such as 10s",
		"http://h/ hunter2":         "an option of http://h/ is not of the form NAME=VALUE",
		"http://h/ timeout=0s":      "HTTP timeout 0s: want a positive time",
		"http://h/ cert=/c":         "a client certificate requires both its file and its key file",
	} {
		if _, err := NewNotifier(spec, settings(nil)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", spec, err)
		}
	}
}

// Two masters are a mistake that no waiting fixes, and not an application that
// is starting.
func TestBaselineOfAnAmbiguousProcess(t *testing.T) {
	name := "twins" + strconv.Itoa(os.Getpid())
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Args[0] = name
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	}
	confirmer, err := NewConfirmer("workers:name:"+name, time.Second, settings(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = confirmer.Baseline(t.Context())
	if err == nil || !strings.Contains(err.Error(), "2 processes match") {
		t.Fatalf("error %v", err)
	}
	if _, unreachable := errors.AsType[*podsync.UnreachableError](err); unreachable {
		t.Errorf("%v counts as an application that is starting", err)
	}
}

func TestParseReloads(t *testing.T) {
	for answer, want := range map[string]struct {
		reloads reloads
		ok      bool
	}{
		"#<PID> <type> <reloads>\n21225 master 3 [failed: 1] 0d00h 2.6\n# workers\n2 worker 0 0d 2.6\n": {reloads{3, 1}, true},
		"1 master 2 0d00h 2.2\n": {reloads{2, 0}, true},
		"1 worker 2\n":           {reloads{}, false},
		"1 master x\n":           {reloads{}, false},
		"":                       {reloads{}, false},
	} {
		if got, ok := parseReloads(answer); got != want.reloads || ok != want.ok {
			t.Errorf("%q: %+v %v", answer, got, ok)
		}
	}
}

func FuzzSpecs(f *testing.F) {
	for _, s := range []string{"http://h/", "signal:HUP@name:x", "exec:a b", "socket:/a:b", "restart", "body:x@http://h", "metric:a==1@http://h", "metric:a>before@http://h", "workers:child", "haproxy:/s", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if notifier, err := NewNotifier(spec, settings(&child{})); err == nil && notifier == nil {
			t.Errorf("%q: neither a notifier nor an error", spec)
		}
		if c, err := NewConfirmer(spec, time.Second, settings(&child{})); err == nil && c == nil {
			t.Errorf("%q: neither a confirmer nor an error", spec)
		}
	})
}
