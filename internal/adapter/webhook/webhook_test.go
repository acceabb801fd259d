package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	secret = "correct-horse-battery"
	older  = "staple-of-last-year"
	body   = `{"image":"r.example/app:1"}`
)

// desk is an endpoint that notes what it has checked.
type desk struct {
	server *httptest.Server
	file   string
	leads  bool

	mu       sync.Mutex // of those below; requests may end side by side
	checked  []string
	notified []string
	log      bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{file: filepath.Join(t.TempDir(), "secrets"), leads: true}
	d.share(t, older+"\n\n"+secret+"\n")
	server := webhook.NewServer(webhook.Options{
		SecretFile: d.file, Leads: func() bool { return d.leads },
		Check: func(r tagspec.Repository) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.checked = append(d.checked, r.String())
			return r.Path == "app"
		},
		Notified: func(format string, result webhook.Result) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.notified = append(d.notified, format+" "+string(result))
		},
		Log: funcr.New(func(_, args string) { fmt.Fprintln(&d.log, args) }, funcr.Options{Verbosity: 9}),
	})
	d.server = httptest.NewUnstartedServer(nil)
	d.server.Config = server
	d.server.Start()
	t.Cleanup(d.server.Close)
	return d
}

func (d *desk) share(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(d.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reply is what a request gets.
type reply struct {
	status int
	header http.Header
	closed bool // the connection is
}

// send makes a request with headers, given as names and values in turn.
func (d *desk) send(t *testing.T, method, path, body string, headers ...string) (reply, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, d.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := d.server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, response.Close}, string(text)
}

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// TestProof: who knows a secret is heard, in each of the three ways to show it; all
// others do nothing.
func TestProof(t *testing.T) {
	t.Parallel()
	const sha1 = "X-Hub-Signature"
	for name, c := range map[string]struct {
		path    string
		headers []string
		heard   bool
	}{
		"signed":                        {"/generic", []string{"X-Hub-Signature-256", sign(secret, body)}, true},
		"signed with the older one":     {"/generic", []string{"X-Hub-Signature-256", sign(older, body)}, true},
		"bearer":                        {"/generic", []string{"Authorization", "Bearer " + secret}, true},
		"in the path":                   {"/generic/" + secret, nil, true},
		"nothing":                       {"/generic", nil, false},
		"signed with another":           {"/generic", []string{"X-Hub-Signature-256", sign("another-secret-another", body)}, false},
		"signed with nothing":           {"/generic", []string{"X-Hub-Signature-256", sign("", body)}, false},
		"another body was signed":       {"/generic", []string{"X-Hub-Signature-256", sign(secret, body+" ")}, false},
		"half a signature":              {"/generic", []string{"X-Hub-Signature-256", sign(secret, body)[:30]}, false},
		"no signature":                  {"/generic", []string{"X-Hub-Signature-256", "sha256="}, false},
		"an older kind of signature":    {"/generic", []string{sha1, sign(secret, body)}, false},
		"another bearer":                {"/generic", []string{"Authorization", "Bearer " + secret + "x"}, false},
		"an empty bearer":               {"/generic", []string{"Authorization", "Bearer "}, false},
		"part of a bearer":              {"/generic", []string{"Authorization", "Bearer " + secret[:16]}, false},
		"basic":                         {"/generic", []string{"Authorization", "Basic " + secret}, false},
		"another token in the path":     {"/generic/guess", nil, false},
		"both secrets in the path":      {"/generic/" + older + "%0A%0A" + secret, nil, false},
		"bearer, and a wrong path":      {"/generic/guess", []string{"Authorization", "Bearer " + secret}, false},
		"bearer, and a wrong signature": {"/generic", []string{"Authorization", "Bearer " + secret, "X-Hub-Signature-256", "sha256=00"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			got, text := d.send(t, http.MethodPost, c.path, body, c.headers...)
			want, result := http.StatusUnauthorized, "Unauthorized"
			if c.heard {
				want, result = http.StatusAccepted, "Checked"
			}
			if got.status != want || (len(d.checked) == 1) != c.heard || fmt.Sprint(d.notified) != "[generic "+result+"]" {
				t.Errorf("%d %q; checked %q, counted %q", got.status, text, d.checked, d.notified)
			}
			if all := text + d.log.String(); strings.Contains(all, secret) || strings.Contains(all, older) || strings.Contains(all, "guess") {
				t.Errorf("a secret is told: %s", all)
			}
		})
	}
}

// TestRefused: what is no notification does nothing, and gets the code that says why.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, body string
		want               int
		counted            string
	}{
		"read":               {http.MethodGet, "/generic", "", http.StatusMethodNotAllowed, "[]"},
		"put":                {http.MethodPut, "/generic", body, http.StatusMethodNotAllowed, "[]"},
		"another path":       {http.MethodPost, "/", body, http.StatusNotFound, "[]"},
		"no such format":     {http.MethodPost, "/quay", body, http.StatusNotFound, "[]"},
		"no JSON":            {http.MethodPost, "/ghcr", "payload=%7B%7D", http.StatusBadRequest, "[ghcr Invalid]"},
		"another format":     {http.MethodPost, "/distribution", body, http.StatusBadRequest, "[distribution Invalid]"},
		"too large":          {http.MethodPost, "/generic", body + strings.Repeat(" ", 1<<20), http.StatusRequestEntityTooLarge, "[generic TooLarge]"},
		"a ping":             {http.MethodPost, "/ghcr", `{"zen":"x"}`, http.StatusAccepted, "[ghcr Ignored]"},
		"an unwatched image": {http.MethodPost, "/generic", `{"image":"r.example/other"}`, http.StatusAccepted, "[generic Ignored]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			got, text := d.send(t, c.method, c.path, c.body, "Authorization", "Bearer "+secret)
			if got.status != c.want || fmt.Sprint(d.notified) != c.counted {
				t.Errorf("%d %q, counted %q; want %d", got.status, text, d.notified, c.want)
			}
			if c.want >= 400 && len(d.checked) > 0 {
				t.Errorf("it has %q checked", d.checked)
			}
		})
	}
}

// TestForgedAndLarge: a stranger cannot have a body read to its end.
func TestForgedAndLarge(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	large := strings.Repeat("x", 2<<20)
	if got, _ := d.send(t, http.MethodPost, "/generic", large, "X-Hub-Signature-256", sign(secret, large)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("signed: %d", got.status)
	}
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	// A body is announced and never sent: the answer comes all the same.
	fmt.Fprint(connection, "POST /generic HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Bearer guess\r\n\r\n")
	answer := make([]byte, len("HTTP/1.1 401"))
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "HTTP/1.1 401" {
		t.Errorf("without a body: %q, %v", answer, err)
	}
	if len(d.checked) > 0 {
		t.Errorf("it has %q checked", d.checked)
	}
}

// TestNotLeading: a replica that asks no registries sends the sender to another one, and
// only tells it who is known.
func TestNotLeading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.leads = false
	if got, _ := d.send(t, http.MethodPost, "/generic", body); got.status != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", got.status)
	}
	got, _ := d.send(t, http.MethodPost, "/generic/"+secret, body)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !got.closed || len(d.checked) > 0 {
		t.Errorf("%d %v, checked %q", got.status, got.header, d.checked)
	}
	d.leads = true
	if got, _ := d.send(t, http.MethodPost, "/generic/"+secret, body); got.status != http.StatusAccepted {
		t.Errorf("the next attempt gets %d", got.status)
	}
}

// TestSecretsChange: a changed file counts from the next notification on; one that cannot
// be used lets no one in, and is told once.
func TestSecretsChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	try := func(token string, want int) {
		t.Helper()
		if got, text := d.send(t, http.MethodPost, "/generic/"+token, body); got.status != want {
			t.Errorf("%d %q, want %d", got.status, text, want)
		}
	}
	try(older, http.StatusAccepted)
	d.share(t, "a-newer-secret-than-that")
	try(older, http.StatusUnauthorized)
	try("a-newer-secret-than-that", http.StatusAccepted)
	for _, useless := range []string{"", "\n \n", "short-one\n" + secret} {
		d.share(t, useless)
		try(secret, http.StatusServiceUnavailable)
		try(secret, http.StatusServiceUnavailable)
	}
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
	try(secret, http.StatusServiceUnavailable)
	if n := strings.Count(d.log.String(), "cannot use the webhook secrets; refusing push notifications"); n != 3 || strings.Contains(d.log.String(), "short-one") {
		t.Errorf("told %d times:\n%s", n, d.log.String())
	}
}
