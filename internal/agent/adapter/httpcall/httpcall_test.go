package httpcall_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
)

const patience = time.Minute

func options(url string) httpcall.Options {
	return httpcall.Options{URL: url, Timeout: patience}
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCallSendsWhatItIsTold(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got = fmt.Sprintf("%s %s %s|%s:%s|%s", r.Method, r.URL.Path, r.Header.Get("X-Scope"), user, password, body)
		fmt.Fprint(w, "answer")
	}))
	defer server.Close()
	o := options(server.URL + "/reload")
	o.Method, o.Headers, o.Body = http.MethodPut, []string{"X-Scope: a"}, "now"
	o.Credentials.UsernameFile, o.Credentials.PasswordFile = file(t, "me\n"), file(t, "pass word\n")
	answer, err := httpcall.Call(t.Context(), o)
	if err != nil || answer != "answer" || got != "PUT /reload a|me:pass word|now" {
		t.Errorf("answer %q, error %v, server saw %q", answer, err, got)
	}
}

func TestBearerFileIsReadEachTime(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	o := options(server.URL)
	o.Credentials.BearerFile = file(t, "first")
	for _, token := range []string{"first", "rotated"} {
		if err := os.WriteFile(o.Credentials.BearerFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := httpcall.Call(t.Context(), o); err != nil || got != "Bearer "+token {
			t.Errorf("server saw %q, error %v", got, err)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		codes  string
		answer int
		ok     bool
	}{{"", 204, true}, {"", 302, false}, {"", 500, false}, {"200", 204, false}, {"200,500-599", 503, true}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.answer) }))
		o := options(server.URL)
		if c.codes != "" {
			codes, err := httpcall.ParseCodes(c.codes)
			if err != nil {
				t.Fatal(err)
			}
			o.Codes = codes
		}
		_, err := httpcall.Call(t.Context(), o)
		server.Close()
		var status *httpcall.StatusError
		if (err == nil) != c.ok || (!c.ok && !errors.As(err, &status)) {
			t.Errorf("codes %q, answer %d: error %v", c.codes, c.answer, err)
		}
	}
}

// A redirect is the answer: nobody else is asked, and nobody else gets the
// credentials.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/elsewhere?token=hunter2", code))
		o := options(server.URL)
		o.Headers = []string{"X-API-Key: hunter2"}
		_, err := httpcall.Call(t.Context(), o)
		for _, err := range []error{err, httpcall.Send(t.Context(), o), httpcall.Probe(t.Context(), o)} {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(code)) || !strings.Contains(err.Error(), "points to "+other.URL+"/elsewhere,") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%d: error %v", code, err)
			}
		}
		server.Close()
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d requests reached the other address", n)
	}
}

// For a predecessor whose client followed redirects, the last answer on the same host counts.
// A 307 repeats the request, and a 302 becomes a GET, as in any client.
func TestRedirectsOnTheSameHost(t *testing.T) {
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		if n, _ := fmt.Sscanf(r.URL.RawQuery, "code=%d", &code); n == 1 {
			http.Redirect(w, r, r.URL.Path+"/", code)
			return
		}
		switch r.URL.Path {
		case "/loop/":
			http.Redirect(w, r, "/loop/", http.StatusFound)
			return
		case "/broken/":
			w.WriteHeader(http.StatusInternalServerError)
		}
		got.Store(r.Method + " " + r.URL.Path)
	}))
	defer server.Close()
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1) // the same server, but another name
	mux := http.NewServeMux()
	mux.Handle("/port", http.RedirectHandler(server.URL+"/reload/", http.StatusTemporaryRedirect))
	mux.Handle("/name", http.RedirectHandler(named+"/reload/?token=hunter2", http.StatusTemporaryRedirect))
	other := httptest.NewServer(mux)
	defer other.Close()
	for name, c := range map[string]struct{ url, got, err string }{
		"repeated":            {server.URL + "/reload?code=307", "POST /reload/", ""},
		"repeated for good":   {server.URL + "/reload?code=308", "POST /reload/", ""},
		"a GET":               {server.URL + "/reload?code=302", "GET /reload/", ""},
		"the last answer":     {server.URL + "/broken?code=307", "POST /broken/", "answered 500"},
		"for ever":            {server.URL + "/loop/", "", "redirected more than 10 times"},
		"another port":        {other.URL + "/port", "POST /reload/", ""},
		"another host's name": {other.URL + "/name", "", "answered 307 Temporary Redirect and points to " + named + "/reload/, which the agent does not follow"},
	} {
		got.Store("")
		o := options(c.url)
		o.FollowOnHost = true
		err := httpcall.Send(t.Context(), o)
		if got.Load() != c.got || (err == nil) != (c.err == "") || (err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hunter2"))) {
			t.Errorf("%s: the server saw %q, want %q; error %v, want %q", name, got.Load(), c.got, err, c.err)
		}
	}
}

// A request that was sent is not rolled back when the time is over; one that
// nobody took is.
func TestSend(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	o := options(server.URL)
	o.Timeout = 500 * time.Millisecond // even a slow machine sends a request in that time
	err := httpcall.Send(t.Context(), o)
	late, ok := errors.AsType[*httpcall.UnansweredError](err)
	if !ok || !strings.Contains(err.Error(), "sent, not answered within 500ms") {
		t.Fatalf("error %v", err)
	}
	close(release)
	if err := <-late.Answer; err == nil || !strings.Contains(err.Error(), "answered 418") {
		t.Errorf("late answer %v", err)
	}
	server.Close()
	err = httpcall.Send(t.Context(), o)
	if _, silent := errors.AsType[*httpcall.NoAnswerError](err); !silent {
		t.Errorf("the server is closed: error %v, want a NoAnswerError", err)
	}
}

// The code is the answer. A body that does not end changes nothing, and is not read
// for ever.
func TestTheCodeIsTheAnswer(t *testing.T) {
	for name, call := range map[string]func(context.Context, httpcall.Options) error{"Send": httpcall.Send, "Probe": httpcall.Probe} {
		left := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(left)
		}))
		o := options(server.URL)
		o.Timeout = 2 * time.Second
		if err := call(t.Context(), o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-left:
		case <-time.After(patience):
			t.Errorf("%s: the body is still read", name)
		}
		server.CloseClientConnections()
		server.Close()
	}
}

func TestAHangingServerIsLeftAfterTheTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	o := options(server.URL)
	o.Timeout = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := httpcall.Call(ctx, o); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("error %v, and the test's own patience: %v", err, ctx.Err())
	}
}

// Every attempt must give its connection back, or a retried reload leaks
// descriptors for as long as the application is broken.
func TestConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{}, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	for range 20 {
		if _, err := httpcall.Call(t.Context(), options(server.URL)); err == nil {
			t.Fatal("500 was accepted")
		}
	}
	for range 20 {
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatal("a connection stays open")
		}
	}
}

func TestTLSAndClientCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.TLS.PeerCertificates))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	o := options(server.URL)
	if _, err := httpcall.Call(t.Context(), o); err == nil {
		t.Error("an unknown authority was accepted")
	}
	o.TLS.CAFile, o.TLS.CertFile = file(t, string(cert)), file(t, string(cert))
	o.TLS.KeyFile = file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	if answer, err := httpcall.Call(t.Context(), o); err != nil || answer != "1" {
		t.Errorf("answer %q, error %v", answer, err)
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "by socket") })}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	o := options("http://localhost/x")
	o.UnixSocket = socket
	if answer, err := httpcall.Call(t.Context(), o); err != nil || answer != "by socket" {
		t.Errorf("answer %q, error %v", answer, err)
	}
}

func TestNothingSecretInErrors(t *testing.T) {
	for _, url := range []string{"http://user:hunter2@127.0.0.1:1/x?token=hunter2", "ftp://user:hunter2@h/", "http://%zz:hunter2@h"} {
		o := options(url)
		o.Credentials.Password = "hunter2"
		_, err := httpcall.Call(t.Context(), o)
		for _, text := range []string{fmt.Sprint(err), fmt.Sprint(o.Validate()), o.Name()} {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s shows the password", text)
			}
		}
	}
}

func TestValidateJoins(t *testing.T) {
	err := httpcall.Options{URL: "localhost:9090", Headers: []string{"x"}, TLS: httpcall.TLS{CertFile: "c"}}.Validate()
	for _, want := range []string{"URL", "header", "timeout", "client certificate"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestAsk(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		line := make([]byte, 100)
		n, _ := conn.Read(line)
		fmt.Fprintf(conn, "you said %s", line[:n])
		conn.Close()
	}()
	if answer, err := httpcall.Ask(t.Context(), socket, "show proc", patience); err != nil || answer != "you said show proc\n" {
		t.Errorf("answer %q, error %v", answer, err)
	}
}

// A line may hold a password.
func TestAskShowsTheFirstWordOnly(t *testing.T) {
	_, err := httpcall.Ask(t.Context(), filepath.Join(t.TempDir(), "s"), "auth hunter2\tmore", patience)
	if err == nil || !strings.Contains(err.Error(), "send auth … to the socket") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseCodes(f *testing.F) {
	for _, s := range []string{"200", "200-299,304", "", "1", "300-200", "200-", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		codes, err := httpcall.ParseCodes(s)
		if err != nil {
			return
		}
		for _, r := range codes {
			if r.First < 100 || r.Last > 599 || r.First > r.Last || !codes.Accept(r.First) {
				t.Errorf("%q became %v", s, codes)
			}
		}
	})
}
