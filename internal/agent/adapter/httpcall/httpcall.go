// Package httpcall knows how to make one HTTP request to an application in the same pod:
// with credentials that are read from files each time, through TLS or a unix socket, within
// a time limit, and without secrets in errors.
package httpcall

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// Options describe the request.
type Options struct {
	URL    string
	Method string
	// Headers are "Name: value" lines.
	Headers []string
	Body    string

	Credentials Credentials
	TLS         TLS
	// UnixSocket is dialled instead of the URL's host.
	UnixSocket string
	// Codes are the accepted status codes; empty means 200 to 299.
	Codes   Codes
	Timeout time.Duration
	// FollowOnHost follows redirects to the URL's own host, for a predecessor whose client
	// followed them. The last answer counts.
	FollowOnHost bool
	// Proxied sends the request through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name,
	// for a predecessor whose client did. A loopback address is never proxied.
	Proxied bool
}

// Credentials are how the agent logs in.
type Credentials struct {
	// UsernameFile, PasswordFile and BearerFile are read for each request, so a rotated
	// credential is used at once.
	UsernameFile, PasswordFile, BearerFile string
	// Username and Password are for predecessors that accept them as values.
	Username, Password string
}

// TLS is how the server and the agent identify themselves.
type TLS struct {
	// CAFile verifies the server; CertFile and KeyFile identify the agent.
	CAFile, CertFile, KeyFile string
	ServerName                string
	// Insecure accepts any certificate.
	Insecure bool
}

// Validate reports every mistake in the options.
func (o Options) Validate() error {
	var mistakes []error
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "":
		mistakes = append(mistakes, fmt.Errorf("URL %q: want http://host:port/path", redact(o.URL)))
	case u.Scheme != "http" && u.Scheme != "https":
		mistakes = append(mistakes, fmt.Errorf("URL %q: want the scheme http or https", redact(o.URL)))
	}
	for _, h := range o.Headers {
		if name, _, ok := strings.Cut(h, ":"); !ok || strings.TrimSpace(name) == "" {
			mistakes = append(mistakes, errors.New("an HTTP header is not of the form Name: value"))
		}
	}
	if o.Timeout <= 0 {
		mistakes = append(mistakes, fmt.Errorf("HTTP timeout %s: want a positive time", o.Timeout))
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		mistakes = append(mistakes, errors.New("a client certificate requires both its file and its key file"))
	}
	return errors.Join(mistakes...)
}

// redact removes user information and query from a URL, because they may contain
// credentials.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable)"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

// Name is the target without secrets.
func (o Options) Name() string { return redact(o.URL) }

// bodyLimit bounds how much of an answer is read.
const bodyLimit = 4 << 20

// StatusError is an answer with a code that is not accepted.
type StatusError struct {
	Code int
	Text string
	// Location is where a redirect points, without user information and query.
	Location string
}

// Error shows the code but not the body, which may contain configuration.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("answered %d %s", e.Code, e.Text)
	if e.Location != "" {
		text += " and points to " + e.Location + ", which the agent does not follow: use that address"
	}
	return text
}

// NoAnswerError is a request without any answer: no process listens, or the time was over
// before the first byte of the answer.
type NoAnswerError struct{ Err error }

// Error returns the cause's text.
func (e *NoAnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// noAnswer marks the errors that don't show how the server judged the request. A connection
// that was cut after the request doesn't count: a server that crashes on a request behaves
// like this.
func noAnswer(err error) error {
	operation, isOperation := errors.AsType[*net.OpError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	if (isOperation && operation.Op == "dial") || (isNet && timeout.Timeout()) {
		return &NoAnswerError{Err: err}
	}
	return err
}

// Call makes the request once and returns the answer's body. A body that exceeds the limit
// is an error: a caller that searches it would miss the part that was cut off.
func Call(ctx context.Context, o Options) (string, error) {
	var text string
	err := inTime(ctx, o, func(body io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(body, bodyLimit+1))
		if err != nil {
			return fmt.Errorf("read the answer: %w", withoutURL(err))
		}
		if len(raw) > bodyLimit {
			return fmt.Errorf("the answer is larger than %d MiB", bodyLimit>>20)
		}
		text = string(raw)
		return nil
	})
	return text, err
}

// Probe makes the request once and checks only the code.
func Probe(ctx context.Context, o Options) error {
	return inTime(ctx, o, ignore)
}

// ignore doesn't read the body, which may be missing or endless.
func ignore(io.Reader) error { return nil }

// inTime cancels the request at the timeout.
func inTime(ctx context.Context, o Options, take func(body io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return o.named(exchange(ctx, o, take))
}

// named adds the request to an error.
func (o Options) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", o.method(), o.Name(), err)
}

// exchange sends the request and checks the code of the answer. If it is accepted, take
// reads the body.
func exchange(ctx context.Context, o Options, take func(body io.Reader) error) error {
	request, err := o.request(ctx)
	if err != nil {
		return err
	}
	transport, err := o.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: o.redirect}
	answer, err := client.Do(request)
	if err != nil {
		return noAnswer(withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }()
	if !o.Codes.Accept(answer.StatusCode) {
		return &StatusError{Code: answer.StatusCode, Text: http.StatusText(answer.StatusCode), Location: pointsTo(answer)}
	}
	return take(answer.Body)
}

// maxRedirects is the limit of the standard library's client.
const maxRedirects = 10

// redirect treats a redirect as the answer, unless it stays on the host and the options follow
// it. Following any other one would query another server, with this server's credentials.
func (o Options) redirect(next *http.Request, before []*http.Request) error {
	if !o.FollowOnHost || !strings.EqualFold(next.URL.Hostname(), before[0].URL.Hostname()) {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	}
	return nil
}

// pointsTo is the redirect's target without secrets.
func pointsTo(answer *http.Response) string {
	target, err := answer.Location()
	if err != nil {
		return ""
	}
	return redact(target.String())
}

// withoutURL removes the URL that net/http adds to its errors: it may contain a password.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func (o Options) method() string {
	if o.Method == "" {
		return http.MethodPost
	}
	return o.Method
}

func (o Options) request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, o.method(), o.URL, bytes.NewReader([]byte(o.Body)))
	if err != nil {
		return nil, withoutURL(err)
	}
	for _, h := range o.Headers {
		name, value, _ := strings.Cut(h, ":")
		request.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	return request, o.authorize(request)
}

func (o Options) authorize(request *http.Request) error {
	if o.Credentials.BearerFile != "" {
		token, err := readCredential(o.Credentials.BearerFile)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	user, password := o.Credentials.Username, o.Credentials.Password
	for file, into := range map[string]*string{o.Credentials.UsernameFile: &user, o.Credentials.PasswordFile: &password} {
		if file == "" {
			continue
		}
		value, err := readCredential(file)
		if err != nil {
			return err
		}
		*into = value
	}
	if user != "" || password != "" {
		request.SetBasicAuth(user, password)
	}
	return nil
}

func readCredential(file string) (string, error) {
	raw, err := plainfile.Read(file, plainfile.Small)
	if err != nil {
		return "", fmt.Errorf("read a credential: %w", err)
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}

func (o Options) transport() (*http.Transport, error) {
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{}
	t := &http.Transport{TLSClientConfig: config}
	if o.Proxied {
		t.Proxy = http.ProxyFromEnvironment
	}
	if o.UnixSocket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.UnixSocket)
		}
	}
	return t, nil
}

func (o Options) tls() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: o.TLS.ServerName,
		InsecureSkipVerify: o.TLS.Insecure, //nolint:gosec // only when the user says so
	}
	if o.TLS.CAFile != "" {
		pem, err := plainfile.Read(o.TLS.CAFile, plainfile.Small)
		if err != nil {
			return nil, fmt.Errorf("read the CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the CA file %s doesn't contain a certificate", o.TLS.CAFile)
		}
	}
	if o.TLS.CertFile == "" {
		return config, nil
	}
	cert, err := plainfile.Read(o.TLS.CertFile, plainfile.Small)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	key, err := plainfile.Read(o.TLS.KeyFile, plainfile.Small)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate's key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
