package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/core/crowd"
	"github.com/lockstep-dev/lockstep/internal/core/notification"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// maxBody limits a notification.
	maxBody = 1 << 20
	// atOnce limits how many notifications with a secret are read concurrently. Those with a
	// signature can only be checked after their body was read. They have as many slots of their
	// own, so they never use the slots of callers with a secret.
	atOnce = 8
	// bodyTimeout limits how long the body of an unchecked notification may take.
	bodyTimeout = 3 * time.Second
	// maxConnections limits the connections of callers that haven't sent a secret.
	maxConnections = 256
	// pause is the Retry-After for senders that should try again.
	pause = "1"
)

// Result is the outcome of a notification.
type Result string

// The results.
const (
	// Checked is a push to a watched repository: its registry is checked now.
	Checked Result = "Checked"
	// Ignored doesn't name a watched repository, or isn't about a push.
	Ignored Result = "Ignored"
	// Unauthorized has neither a secret nor a signature made with one.
	Unauthorized Result = "Unauthorized"
	// TooLarge has a body that isn't read to its end.
	TooLarge Result = "TooLarge"
	// Invalid doesn't have the expected format.
	Invalid Result = "Invalid"
	// NotLeading reached a replica that does not query registries.
	NotLeading Result = "NotLeading"
	// Unavailable came while too many others were being read, was too slow, or the secrets cannot
	// be read.
	Unavailable Result = "Unavailable"
)

// Options of the endpoint.
type Options struct {
	// SecretFile contains the secrets. It is read for each notification, so changes apply
	// immediately.
	SecretFile string
	// Leads reports whether this process queries registries.
	Leads func() bool
	// Check checks a repository in its registry; false if it isn't watched.
	Check func(tagspec.Repository) bool
	// Notified is called with each notification. It must return quickly.
	Notified func(format string, result Result)
	Log      logr.Logger
}

// NewServer makes a server whose connections cannot be held open. It serves POST /FORMAT and, for
// senders that can neither sign nor set a header, POST /FORMAT/SECRET.
func NewServer(o Options) *http.Server {
	e := &endpoint{
		Options: o, reading: make(chan struct{}, atOnce),
		unchecked: crowd.New[*http.ResponseController](atOnce), strangers: crowd.New[net.Conn](maxConnections),
	}
	mux := http.NewServeMux()
	for _, format := range notification.Formats() {
		serve := func(w http.ResponseWriter, r *http.Request) {
			result, text := e.take(w, r, format)
			o.Notified(format.Name, result)
			answer(w, result, text)
		}
		mux.HandleFunc("POST /"+format.Name, serve)
		mux.HandleFunc("POST /"+format.Name+"/{token}", serve)
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog:  log.New(io.Discard, "", 0), // It would log what strangers send.
		ConnState: e.connection,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
}

// endpoint receives notifications.
type endpoint struct {
	Options
	reading chan struct{} // the slots of callers with a secret

	mu sync.Mutex
	// unchecked are the requests with an unchecked signature that are being read, and strangers
	// the connections on which no secret was sent, both by address. When there are too many, the
	// oldest of the address with the most ends: a genuine body is read at once, and a slow one
	// makes room.
	unchecked *crowd.Crowd[*http.ResponseController]
	strangers *crowd.Crowd[net.Conn]
	said      string // the last logged problem with the secrets
}

// take reads a notification, and checks the repositories that it names. The text is for the
// sender, and doesn't quote anything.
func (e *endpoint) take(w http.ResponseWriter, r *http.Request, format notification.Format) (Result, string) {
	secrets, err := ReadSecrets(e.SecretFile)
	if e.tell(err); err != nil {
		return Unavailable, "the secrets cannot be read; see the log"
	}
	proven, signature := secrets.have(tokenOf(r)), r.Header.Get(signatureHeader)
	if !proven && signature == "" {
		return Unauthorized, "sign the body (" + signatureHeader + "), or send a secret as a bearer token or at the end of the path"
	}
	leave, entered := e.enter(w, r, proven)
	if !entered {
		return Unavailable, "too many notifications at a time"
	}
	defer leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return TooLarge, fmt.Sprintf("a notification has at most %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Unavailable, "the body did not arrive in time; send a secret as a bearer token to avoid competing with unauthenticated requests"
	}
	if err != nil {
		return Invalid, "the body ended too early"
	}
	if !proven && !secrets.signed(body, signature) {
		return Unauthorized, "the signature does not match a known secret"
	}
	if !e.Leads() {
		return NotLeading, "another replica queries the registries"
	}
	repositories, err := format.Repositories(body, r.URL.Query().Get("registry"))
	if err != nil {
		return Invalid, err.Error()
	}
	return e.check(format, repositories)
}

func (e *endpoint) check(format notification.Format, repositories []tagspec.Repository) (Result, string) {
	checked := 0
	for _, repository := range repositories {
		watched := e.Check(repository)
		e.Log.V(1).Info("a registry reports a push", "repository", repository.String(), "format", format.Name, "watched", watched)
		if watched {
			checked++
		}
	}
	text := fmt.Sprintf("checking %d of %d repositories", checked, len(repositories))
	if checked == 0 {
		return Ignored, text
	}
	return Checked, text
}

// tell logs a problem with the secrets, once until it changes.
func (e *endpoint) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if text != "" && text != e.said {
		e.Log.Error(err, "cannot use the webhook secrets; refusing push notifications")
	}
	e.said = text
}

func answer(w http.ResponseWriter, result Result, text string) {
	status := http.StatusAccepted
	switch result {
	case Checked, Ignored:
	case Unauthorized:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	case TooLarge:
		status = http.StatusRequestEntityTooLarge
	case Invalid:
		status = http.StatusBadRequest
	case NotLeading, Unavailable:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", pause)
	}
	if status != http.StatusAccepted {
		// The server then doesn't wait for the rest of the body, and a Service can send the next
		// attempt to another replica.
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text) //nolint:gosec // It is plain text, and quotes nothing.
}
