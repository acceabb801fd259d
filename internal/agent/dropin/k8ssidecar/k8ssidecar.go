// Package k8ssidecar translates the environment of kiwigrid's k8s-sidecar into the agent's
// configuration, without its security holes: an object's directory stays below FOLDER, URLs
// in objects aren't fetched, and credentials go only to REQ_URL.
package k8ssidecar

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

// Name is the program's executable, and Short what it does.
const (
	Name  = "k8s-sidecar"
	Short = "kiwigrid/k8s-sidecar: files from labeled ConfigMaps and Secrets"
)

// environment reads variables and collects mistakes.
type environment struct {
	lookup   func(string) (string, bool)
	mistakes []error
}

func (e *environment) get(name, otherwise string) string {
	if value, ok := e.lookup(name); ok && value != "" {
		return value
	}
	return otherwise
}

func (e *environment) flag(name string) bool {
	return strings.EqualFold(e.get(name, "false"), "true")
}

func (e *environment) fail(format string, args ...any) {
	e.mistakes = append(e.mistakes, fmt.Errorf(format, args...))
}

// Usage lists the variables.
func Usage() string {
	return `Replaces kiwigrid/k8s-sidecar: keeps a directory in sync with the ConfigMaps and Secrets with a label.

Usage:
  LABEL=… FOLDER=… lockstep-sync k8s-sidecar [--req-username-file FILE] [--req-password-file FILE]

Variables:
  LABEL, LABEL_VALUE           label of the objects, and its value; without a value, any value
  RESOURCE                     configmap (default), secret or both
  RESOURCE_NAME                names instead of a label: NAME, KIND/NAME or NAMESPACE/KIND/NAME, separated by commas; not with NAMESPACE=ALL
  NAMESPACE                    namespaces separated by commas, or ALL (default: the pod's own)
  FOLDER                       directory to publish into
  FOLDER_ANNOTATION            annotation that names a directory below FOLDER (default k8s-sidecar-target-directory)
  UNIQUE_FILENAMES             true: file names begin with the namespace and the object
  DEFAULT_FILE_MODE            octal file mode (default 0644)
  METHOD                       LIST: publish once and exit; anything else watches
  SCRIPT                       program to run after a change and before the request; failures are only logged
  REQ_URL, REQ_METHOD          request after a change: GET (default) or POST
  REQ_PAYLOAD                  JSON body of a POST
  REQ_USERNAME, REQ_PASSWORD, REQ_USERNAME_FILE, REQ_PASSWORD_FILE
                               basic authentication; the flags --req-username-file and --req-password-file win
  REQ_TIMEOUT                  how long to wait for an answer, in seconds (default 10)
  REQ_RETRY_TOTAL              attempts before /healthz/application is red (default 5)
  REQ_SKIP_INIT                true: skip the request for the first set
  REQ_SKIP_TLS_VERIFY          true: accept any certificate from REQ_URL
  HEALTH_PORT                  port for probes and metrics (default 8080, or none if that port is in use); none with METHOD=LIST
  LOG_LEVEL                    DEBUG, INFO (default), WARN, ERROR or CRITICAL
  LOG_FORMAT                   JSON (default) or LOGFMT
  LOG_TZ                       UTC: times are in UTC; otherwise local time
  KUBECONFIG, SKIP_TLS_VERIFY  how to reach the API server

Accepted and ignored:
  ` + strings.Join(unneeded(), ", ") + `

Refused:
  LOG_CONFIG                   a Python logging configuration: use LOG_LEVEL and LOG_FORMAT
`
}

// unneeded are variables that don't apply here: the agent doesn't poll or fetch, and uses
// its own pauses and deadlines.
func unneeded() []string {
	return []string{
		"SLEEP_TIME", "ERROR_THROTTLE_SLEEP", "WATCH_SERVER_TIMEOUT", "WATCH_CLIENT_TIMEOUT", "IGNORE_ALREADY_PROCESSED", "REQ_RETRY_CONNECT",
		"REQ_RETRY_READ", "REQ_RETRY_BACKOFF_FACTOR", "REQ_BASIC_AUTH_ENCODING", "ENABLE_5XX", "DISABLE_X509_STRICT_VERIFICATION",
	}
}

// Parse parses the original's environment and its two flags.
func Parse(args []string, lookup func(string) (string, bool)) (run.Config, error) {
	e := &environment{lookup: lookup}
	flags := flag.NewFlagSet(Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	user := flags.String("req-username-file", e.get("REQ_USERNAME_FILE", ""), "")
	password := flags.String("req-password-file", e.get("REQ_PASSWORD_FILE", ""), "")
	if err := flags.Parse(args); err != nil {
		return run.Config{}, err
	}
	if flags.NArg() > 0 {
		e.fail("unexpected argument %q: k8s-sidecar is configured by its environment", flags.Arg(0))
	}
	c := run.Default()
	c.Sync.Rules.MaxBytes = run.Guard
	c.Kube.Kubeconfig = e.get("KUBECONFIG", "")
	c.Kube.Insecure = e.flag("SKIP_TLS_VERIFY")
	c.Sync.OnDelete, c.Sync.InitialNotify = podsync.DeleteRemoves, podsync.NotifyAlways
	c.Sync.ApplicationApart = true
	// The application is unknown, and may not follow links.
	c.Volume.Overwrite, c.Volume.Layout = true, volume.Files
	c.App.HTTP.Credentials.UsernameFile, c.App.HTTP.Credentials.PasswordFile = *user, *password
	e.sources(&c)
	e.files(&c)
	e.request(&c)
	e.log(&c)
	if e.get("METHOD", "WATCH") == "LIST" {
		c.Sync.Once = true
	} else {
		// A pod often runs two of them, and the original continues without the port.
		c.Health = listener.Address{Value: ":" + e.get("HEALTH_PORT", "8080"), Setting: "HEALTH_PORT"}
		c.HealthOptional = e.get("HEALTH_PORT", "") == ""
	}
	return c, errors.Join(e.mistakes...)
}

// log configures the log format.
func (e *environment) log(c *run.Config) {
	levels := map[string]slog.Level{"DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "WARNING": slog.LevelWarn, "ERROR": slog.LevelError, "CRITICAL": slog.LevelError}
	level, known := levels[strings.ToUpper(e.get("LOG_LEVEL", "INFO"))]
	if !known {
		e.fail("LOG_LEVEL %q: want DEBUG, INFO, WARN, ERROR or CRITICAL", e.get("LOG_LEVEL", ""))
	}
	format, known := map[string]string{"JSON": "json", "LOGFMT": "text"}[strings.ToUpper(e.get("LOG_FORMAT", "JSON"))]
	if !known {
		e.fail("LOG_FORMAT %q: want JSON or LOGFMT", e.get("LOG_FORMAT", ""))
	}
	if e.get("LOG_CONFIG", "") != "" {
		e.fail("LOG_CONFIG is a Python logging configuration: use LOG_LEVEL and LOG_FORMAT")
	}
	c.Log = run.Log{Level: level, Format: format, UTC: strings.EqualFold(e.get("LOG_TZ", ""), "UTC")}
}

func (e *environment) sources(c *run.Config) {
	labels := e.get("LABEL", "")
	if value := e.get("LABEL_VALUE", ""); value != "" && labels != "" {
		labels += "=" + value
	}
	kinds := map[string][]filemap.Kind{
		"configmap": {filemap.ConfigMap}, "secret": {filemap.Secret}, "both": {filemap.ConfigMap, filemap.Secret},
	}[strings.ToLower(e.get("RESOURCE", "configmap"))]
	if kinds == nil {
		e.fail("RESOURCE %q: want configmap, secret or both", e.get("RESOURCE", ""))
	}
	names, namespaces := e.list("RESOURCE_NAME"), e.namespaces()
	if len(names) > 0 && namespaces[0] == "" {
		// The original reads single objects only in a known namespace.
		names, c.Warnings = nil, append(c.Warnings, "NAMESPACE=ALL: RESOURCE_NAME is ignored and the label decides; to follow single objects, list the namespaces")
	}
	if labels == "" && len(names) == 0 {
		e.fail("LABEL is missing")
	}
	// The agent searches a name in every kind and namespace; usually it exists in only one.
	c.OptionalNames = true
	for _, namespace := range namespaces {
		for _, kind := range kinds {
			c.Selectors = append(c.Selectors, selectors(kind, namespace, labels, names)...)
		}
	}
}

// selectors follow the names when there are any, as the original does.
func selectors(kind filemap.Kind, namespace, labels string, names []string) []objectwatch.Selector {
	if len(names) == 0 {
		return []objectwatch.Selector{{Kind: kind, Namespace: namespace, Labels: labels}}
	}
	var all []objectwatch.Selector
	for _, name := range names {
		if name, ok := nameFor(kind, namespace, name); ok {
			all = append(all, objectwatch.Selector{Kind: kind, Namespace: namespace, Name: name})
		}
	}
	return all
}

// nameFor parses name, configmap/name or namespace/configmap/name, and reports whether it
// refers to this kind and namespace.
func nameFor(kind filemap.Kind, namespace, s string) (name string, ok bool) {
	parts := strings.Split(s, "/")
	name = parts[len(parts)-1]
	if len(parts) > 1 && !strings.EqualFold(parts[len(parts)-2], string(kind)) {
		return "", false
	}
	return name, len(parts) < 3 || parts[0] == namespace
}

func (e *environment) list(name string) []string {
	var all []string
	for part := range strings.SplitSeq(e.get(name, ""), ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

func (e *environment) namespaces() []string {
	namespaces := e.list("NAMESPACE")
	if len(namespaces) == 1 && namespaces[0] == "ALL" {
		return []string{""}
	}
	if len(namespaces) > 0 {
		return namespaces
	}
	return []string{run.OwnNamespace(e.lookup)}
}

func (e *environment) files(c *run.Config) {
	c.Volume.Root = e.get("FOLDER", "")
	if c.Volume.Root == "" {
		e.fail("FOLDER is missing")
	}
	c.SubdirAnnotation = e.get("FOLDER_ANNOTATION", "k8s-sidecar-target-directory")
	// The original accepts absolute directories. Below FOLDER they mean the same here; an object
	// that requests another place is left out and reported.
	c.Sync.Rules.Root, c.Sync.Rules.LeaveOut = c.Volume.Root, true
	c.Sync.Rules.Collision = filemap.FirstWins
	if e.flag("UNIQUE_FILENAMES") {
		c.Sync.Rules.Collision = filemap.Prefix
	}
	if mode := e.get("DEFAULT_FILE_MODE", ""); mode != "" {
		bits, err := strconv.ParseUint(mode, 8, 12)
		if err != nil {
			e.fail("DEFAULT_FILE_MODE %q: want an octal number", mode)
		}
		c.Volume.FileMode = fs.FileMode(bits)
	}
	// The original fetched such URLs with the reload's own credentials.
	c.Sync.Rules.Exclude = []string{"*.url"}
	c.Warnings = append(c.Warnings, "URLs in keys that end in .url are not fetched: store the content itself in the object")
}

func (e *environment) request(c *run.Config) {
	if script := e.get("SCRIPT", ""); script != "" {
		c.App.Notify = append(c.App.Notify, "attempt:"+scriptCommand(script))
	}
	if url := e.get("REQ_URL", ""); url != "" {
		spec, ok := application.Request(strings.TrimSpace(url))
		if !ok {
			e.fail("REQ_URL: want http://host:port/path")
		}
		c.App.Notify = append(c.App.Notify, spec)
	}
	h := &c.App.HTTP
	h.Method = e.get("REQ_METHOD", http.MethodGet)
	if h.Method != http.MethodGet && h.Method != http.MethodPost {
		e.fail("REQ_METHOD %q: want GET or POST", h.Method)
	}
	if payload := e.get("REQ_PAYLOAD", ""); payload != "" && h.Method == http.MethodPost {
		h.Body, h.Headers = jsonBody(payload), []string{"Content-Type: application/json"}
	}
	h.Credentials.Username, h.Credentials.Password = e.get("REQ_USERNAME", ""), e.get("REQ_PASSWORD", "")
	h.TLS.Insecure = e.flag("REQ_SKIP_TLS_VERIFY")
	if seconds := e.get("REQ_TIMEOUT", ""); seconds != "" {
		n, err := strconv.ParseFloat(seconds, 64)
		if err != nil || n <= 0 {
			e.fail("REQ_TIMEOUT %q: want seconds", seconds)
		}
		h.Timeout = time.Duration(n * float64(time.Second))
	}
	if n, err := strconv.Atoi(e.get("REQ_RETRY_TOTAL", "5")); err == nil && n > 0 {
		c.Sync.Timing.MaxFailures = n
	}
	if e.flag("REQ_SKIP_INIT") {
		c.Sync.InitialNotify = podsync.NotifyNever
	}
}

// jsonBody is a payload as the original sends it: text that isn't JSON becomes a JSON
// string.
func jsonBody(payload string) string {
	if json.Valid([]byte(payload)) {
		return payload
	}
	quoted, err := json.Marshal(payload)
	if err != nil {
		return payload
	}
	return string(quoted)
}

// scriptCommand runs a script that is not executable with a shell, as the original does.
func scriptCommand(script string) string {
	quoted := argv.Quote(script)
	if info, err := os.Stat(script); err == nil && info.Mode().Perm()&0o111 == 0 {
		return "sh " + quoted
	}
	return quoted
}
