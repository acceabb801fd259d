package application

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
)

// Describe describes a notification or confirmation in words. It names the files with
// credentials and never shows their contents. full shows the arguments of commands;
// otherwise Describe shows only the program, because arguments often contain secrets.
func (h HTTP) Describe(spec string, asking, full bool) string {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "http", "https":
		return h.request(spec, asking)
	case "body", "metric":
		condition, words := cutURL(rest)
		return h.request(words, asking) + " until " + kind + " " + condition
	case "exec":
		return "command " + Command(rest, full)
	case "attempt":
		return "command " + Command(rest, full) + "; the agent ignores its failure"
	case "socket":
		socket, line, _ := strings.Cut(rest, ":")
		if !full {
			line, _, _ = strings.Cut(line, " ")
		}
		return fmt.Sprintf("line %q on the socket %s", line, socket)
	}
	return spec
}

// Command shows a command line, or only its program.
func Command(line string, full bool) string {
	args, err := argv.Split(line)
	switch {
	case err != nil && line != "":
		return "(unreadable)" // it may contain a password
	case full || len(args) <= 1:
		return line
	}
	return args[0] + " …"
}

// request describes a request.
func (h HTTP) request(words string, asking bool) string {
	o, err := h.parse(words)
	if err != nil {
		return "(unreadable)" // it may contain a password
	}
	if asking {
		o.Method, o.Body = "GET", ""
	}
	text := []string{o.Method + " " + o.Name(), "within " + o.Timeout.Round(time.Millisecond).String()}
	for _, part := range []struct{ what, value string }{
		{"user name from ", o.Credentials.UsernameFile},
		{"password from ", o.Credentials.PasswordFile},
		{"bearer token from ", o.Credentials.BearerFile},
		{"CA ", o.TLS.CAFile},
		{"client certificate ", o.TLS.CertFile},
		{"server name ", o.TLS.ServerName},
		{"socket ", o.UnixSocket},
	} {
		if part.value != "" {
			text = append(text, part.what+part.value)
		}
	}
	return strings.Join(append(text, hints(o)...), ", ")
}

// hints mention options whose values may be secret or are long.
func hints(o httpcall.Options) []string {
	var text []string
	for _, header := range o.Headers {
		name, _, _ := strings.Cut(header, ":")
		text = append(text, "header "+strings.TrimSpace(name))
	}
	if o.Credentials.Password != "" || o.Credentials.Username != "" {
		text = append(text, "basic authentication")
	}
	if o.Body != "" {
		text = append(text, fmt.Sprintf("a body of %d bytes", len(o.Body)))
	}
	if codes := o.Codes.String(); codes != "" && codes != "200-299" {
		text = append(text, "accepting "+codes)
	}
	if o.FollowOnHost {
		text = append(text, "following redirects on the same host")
	}
	if o.TLS.Insecure {
		text = append(text, "accepting any certificate")
	}
	return text
}
