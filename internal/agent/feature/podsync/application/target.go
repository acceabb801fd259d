package application

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
)

// HTTP configures requests. The options for the first address don't apply to other servers:
// each further address has its own options.
type HTTP struct {
	// First are the options of the first address, which is its URL.
	First httpcall.Options
	// OwnSocket is the unix-socket that is written behind the first address.
	OwnSocket string
	// Others are the options of every other address, before its own.
	Others httpcall.Options
}

// forServer returns the options that apply to an address before its own. Two addresses are
// on the same server when scheme, host, port and socket match: another path shares the
// credentials, and the same name on another socket doesn't.
func (h HTTP) forServer(address string, options []string) httpcall.Options {
	socket, given := ownSocket(options)
	if !given {
		socket = h.First.UnixSocket
	}
	o := h.Others
	if origin(address) == origin(h.First.URL) && socket == cmp.Or(h.OwnSocket, h.First.UnixSocket) {
		o = h.First
	}
	o.URL = address
	return o
}

// ownSocket finds the socket among the options of an address.
func ownSocket(options []string) (socket string, given bool) {
	for _, option := range options {
		if value, ok := strings.CutPrefix(option, "unix-socket="); ok {
			socket, given = value, true
		}
	}
	return socket, given
}

// Request is the notification that requests a predecessor's URL, followed by NAME=VALUE
// options. Quotes and backslashes stay as they are, and blanks are escaped. ok is false when
// the URL doesn't begin with http: or https:, in any case.
func Request(address string, options ...string) (spec string, ok bool) {
	scheme, rest, _ := strings.Cut(address, ":")
	scheme = strings.ToLower(scheme)
	words := []string{scheme + ":" + argv.Quote(strings.ReplaceAll(rest, " ", "%20"))}
	for _, option := range options {
		words = append(words, argv.Quote(option))
	}
	return strings.Join(words, " "), scheme == "http" || scheme == "https"
}

// Socket is the unix-socket option of a notification or confirmation; empty when it has
// none.
func Socket(spec string) string {
	parts, err := argv.Split(request(spec))
	if err != nil {
		return ""
	}
	socket, _ := ownSocket(parts[1:])
	return socket
}

// origin is the server of an address. An address that can't be parsed matches no other.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "\x00" + address
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Address is the URL of a notification or confirmation, empty when it is not HTTP.
func Address(spec string) string {
	parts, err := argv.Split(request(spec))
	if err != nil {
		return ""
	}
	return parts[0]
}

// request is the URL with its options, empty when it is not HTTP.
func request(spec string) string {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "http", "https":
		return spec
	case "body", "metric":
		_, words := cutURL(rest)
		return words
	}
	return ""
}

// parse parses URL [NAME=VALUE…], split as a shell would.
func (h HTTP) parse(words string) (httpcall.Options, error) {
	parts, err := argv.Split(words)
	if err != nil {
		return httpcall.Options{}, fmt.Errorf("a URL and its options: %w", err)
	}
	o := h.forServer(parts[0], parts[1:])
	own := map[string]bool{}
	var mistakes []error
	for _, part := range parts[1:] {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("an option of %s is not of the form NAME=VALUE", o.Name()))
			continue
		}
		if name == "header" && !own[name] {
			o.Headers = nil // only its own headers, without the first address's
		}
		own[name] = true
		mistakes = append(mistakes, set(&o, name, value))
	}
	return o, errors.Join(append(mistakes, o.Validate())...)
}

// OptionNames are the options that may follow an address: the names of the --http- flags.
func OptionNames() []string {
	return []string{
		"method", "header", "body", "username-file", "password-file", "bearer-file", "ca", "cert", "key", "server-name", "insecure",
		"unix-socket", "codes", "timeout",
	}
}

// set sets one option. Its error doesn't show the value, which may be secret.
func set(o *httpcall.Options, name, value string) (err error) {
	texts := map[string]*string{
		"method": &o.Method, "body": &o.Body, "username-file": &o.Credentials.UsernameFile, "password-file": &o.Credentials.PasswordFile, "bearer-file": &o.Credentials.BearerFile,
		"ca": &o.TLS.CAFile, "cert": &o.TLS.CertFile, "key": &o.TLS.KeyFile, "server-name": &o.TLS.ServerName, "unix-socket": &o.UnixSocket,
	}
	if text, ok := texts[name]; ok {
		*text = value
		return nil
	}
	switch name {
	case "header":
		o.Headers = append(o.Headers, value)
	case "insecure":
		o.TLS.Insecure = value == "true"
	case "codes":
		o.Codes, err = httpcall.ParseCodes(value)
	case "timeout":
		if o.Timeout, err = time.ParseDuration(value); err != nil {
			err = fmt.Errorf("timeout of %s: want a time such as 10s", o.Name())
		}
	default:
		err = fmt.Errorf("%s has no option %q: want one of %s", o.Name(), name, strings.Join(OptionNames(), ", "))
	}
	return err
}
