package webhook_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// slots is how many bodies with an unchecked signature are read at once, and connections how many
// of strangers there are.
const (
	slots       = 8
	connections = 256
)

// caller is a connection whose body comes when the test sends it.
type caller struct {
	net.Conn
	answers *bufio.Reader
}

// call sends the head of a signed request from a loopback address, and returns when the server
// reads its body: it says "100 Continue" then.
func (d *desk) call(t *testing.T, from, signature string) caller {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	connection, err := dialer.DialContext(t.Context(), "tcp", d.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	c := caller{connection, bufio.NewReader(connection)}
	fmt.Fprintf(c, "POST /generic HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\nX-Hub-Signature-256: %s\r\n\r\n", len(body), signature)
	if got := c.status(t); got != http.StatusContinue {
		t.Fatalf("a body is not read: %d", got)
	}
	return c
}

// status reads the next answer.
func (c caller) status(t *testing.T) int {
	t.Helper()
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestStrangersTakeNoSlots: callers that never send the bodies they announced don't keep others
// out, whether these send a secret or sign the body.
func TestStrangersTakeNoSlots(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var strangers []caller
	for range slots {
		strangers = append(strangers, d.call(t, "127.0.0.2", sign("another-secret-another", body)))
	}
	for name, headers := range map[string][]string{"secret": {"Authorization", "Bearer " + secret}, "signature": {"X-Hub-Signature-256", sign(secret, body)}} {
		if got, text := d.send(t, http.MethodPost, "/generic", body, headers...); got.status != http.StatusAccepted {
			t.Errorf("%s: %d %q", name, got.status, text)
		}
	}
	// The signed body took the place of the first stranger.
	if got := strangers[0].status(t); got != http.StatusServiceUnavailable {
		t.Errorf("the slowest stranger gets %d", got)
	}
	fmt.Fprint(strangers[1], body)
	if got := strangers[1].status(t); got != http.StatusUnauthorized {
		t.Errorf("another stranger gets %d", got)
	}
}

// TestOneAddressPushesOutItsOwn: a signed body that takes its time is read to its end, however many
// bodies another address begins meanwhile.
func TestOneAddressPushesOutItsOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	genuine := d.call(t, "127.0.0.1", sign(secret, body))
	for range 3 * slots {
		d.call(t, "127.0.0.2", sign("another-secret-another", body))
	}
	fmt.Fprint(genuine, body)
	if got := genuine.status(t); got != http.StatusAccepted {
		t.Errorf("the genuine one gets %d", got)
	}
}

// pipes is a listener without a network, whose time a test controls.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve runs a server in the time of the test, until the returned function is called.
func (p pipes) serve(d *desk) (stop func()) {
	server := webhook.NewServer(webhook.Options{
		SecretFile: d.file, Leads: func() bool { return true }, Log: logr.Discard(),
		Check: func(tagspec.Repository) bool { return true }, Notified: func(string, webhook.Result) {},
	})
	go func() { _ = server.Serve(p) }()
	return func() {
		close(p)
		_ = server.Close()
	}
}

// connect makes a connection.
func (p pipes) connect() net.Conn {
	near, far := net.Pipe()
	p <- far
	return near
}

// ask announces a body, sends what there is of it, and returns the status line.
func (p pipes) ask(t *testing.T, header, sent string) string {
	t.Helper()
	c := p.connect()
	defer c.Close()
	go func() {
		fmt.Fprintf(c, "POST /generic HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n\r\n%s", len(body), header, sent)
	}()
	status, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(status)
}

// TestSilentConnections: connections on which nothing comes are bounded, and the oldest of them
// makes room for a caller with a secret.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes)
		defer listener.serve(d)()
		began := time.Now()
		var silent []net.Conn
		for range connections {
			c := listener.connect()
			defer c.Close()
			silent = append(silent, c)
		}
		if got := listener.ask(t, "Authorization: Bearer "+secret, body); got != "HTTP/1.1 202 Accepted" {
			t.Error(got)
		}
		if n, err := silent[0].Read(make([]byte, 1)); n > 0 || err == nil || time.Since(began) > 0 {
			t.Errorf("the oldest connection stays for %s: %d bytes, %v", time.Since(began), n, err)
		}
	})
}

// TestUncheckedBodiesEnd: a body with an unchecked signature that doesn't come ends long before one
// of a known caller.
func TestUncheckedBodiesEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes)
		defer listener.serve(d)()
		began := time.Now()
		if got := listener.ask(t, "X-Hub-Signature-256: "+sign(secret, body), ""); got != "HTTP/1.1 503 Service Unavailable" {
			t.Errorf("a signed body that does not come gets %q", got)
		}
		unchecked := time.Since(began)
		listener.ask(t, "Authorization: Bearer "+secret, "")
		if known := time.Since(began) - unchecked; unchecked*2 > known {
			t.Errorf("an unchecked body has %s, that of a known caller %s", unchecked, known)
		}
	})
}
