package webhook

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/core/notification"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// maxBody limits a notification, and atOnce how many are read concurrently.
	maxBody = 1 << 20
	atOnce  = 8
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
	// Unavailable came while too many others were being read, or the secrets cannot be read.
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

// NewServer makes a server whose connections cannot be held open.
func NewServer(o Options) *http.Server {
	return &http.Server{
		Handler: Handler(o), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // It would log what strangers send.
	}
}

// Handler serves POST /FORMAT and, for senders that can neither sign nor set a header, POST
// /FORMAT/SECRET.
func Handler(o Options) http.Handler {
	e := &endpoint{Options: o, reading: make(chan struct{}, atOnce)}
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
	return mux
}

// endpoint receives notifications.
type endpoint struct {
	Options
	reading chan struct{}

	mu   sync.Mutex
	said string // the last logged problem with the secrets
}

// take reads a notification, and checks the repositories that it names. The text is for the
// sender, and doesn't quote anything.
func (e *endpoint) take(w http.ResponseWriter, r *http.Request, format notification.Format) (Result, string) {
	secrets, err := ReadSecrets(e.SecretFile)
	if e.tell(err); err != nil {
		return Unavailable, "the secrets cannot be read; the log says why"
	}
	proven, signature := secrets.have(tokenOf(r)), r.Header.Get(signatureHeader)
	if !proven && signature == "" {
		return Unauthorized, "sign the body (" + signatureHeader + "), or send a secret as a bearer token or at the end of the path"
	}
	select {
	case e.reading <- struct{}{}:
		defer func() { <-e.reading }()
	default:
		return Unavailable, "too many notifications at a time"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return TooLarge, fmt.Sprintf("a notification has at most %d bytes", maxBody)
	}
	if err != nil {
		return Invalid, "the body has ended too early"
	}
	if !proven && !secrets.signed(body, signature) {
		return Unauthorized, "the signature is made with no secret that is known here"
	}
	if !e.Leads() {
		return NotLeading, "another replica asks the registries"
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
	text := fmt.Sprintf("%d of %d repositories are checked", checked, len(repositories))
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
		e.Log.Error(err, "notifications of registries are refused until the secrets can be read")
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
