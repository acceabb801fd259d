// Package k8ssidecar turns the environment of kiwigrid's k8s-sidecar into the
// agent's configuration, without its holes: an object's directory stays below
// FOLDER, no URL in an object is fetched, and credentials go only to REQ_URL.
package k8ssidecar

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/syncrun"
)

// environment reads variables and gathers mistakes.
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
	return `In the place of kiwigrid/k8s-sidecar: keeps a directory equal to the ConfigMaps and Secrets with a label.

Usage:
  LABEL=… FOLDER=… lockstep-sync k8s-sidecar

Variables:
  LABEL, LABEL_VALUE           label of the objects, and its value; any value when there is none
  RESOURCE                     configmap (default), secret or both
  RESOURCE_NAME                names instead of a label: NAME, KIND/NAME or NAMESPACE/KIND/NAME, with commas
  NAMESPACE                    namespaces with commas, or ALL (default: the pod's own)
  FOLDER                       directory to publish into
  FOLDER_ANNOTATION            annotation with a directory below it (default k8s-sidecar-target-directory)
  UNIQUE_FILENAMES             true: names begin with namespace and object
  DEFAULT_FILE_MODE            octal mode of files (default 0644)
  METHOD                       LIST: publish once and exit; anything else watches
  REQ_URL, REQ_METHOD          request after a change (default method GET)
  REQ_PAYLOAD                  its body
  REQ_USERNAME, REQ_PASSWORD, REQ_USERNAME_FILE, REQ_PASSWORD_FILE
                               basic authentication
  REQ_TIMEOUT                  time limit of a request in seconds
  REQ_RETRY_TOTAL              tries before the agent is unhealthy (default 5)
  REQ_SKIP_INIT                true: no request for the first set
  REQ_SKIP_TLS_VERIFY          true: accept any certificate of REQ_URL
  SCRIPT                       program to run after a change
  HEALTH_PORT                  port of probes and metrics (default 8080); none with METHOD=LIST
  KUBECONFIG, SKIP_TLS_VERIFY  how the API server is reached
`
}

// Parse reads the original's environment; it takes no arguments.
func Parse(args []string, lookup func(string) (string, bool)) (syncrun.Config, error) {
	e := &environment{lookup: lookup}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return syncrun.Config{}, flag.ErrHelp
	}
	if len(args) > 0 {
		e.fail("unexpected argument %q: k8s-sidecar is configured by its environment", args[0])
	}
	c := syncrun.Default()
	c.Kube.Kubeconfig = e.get("KUBECONFIG", "")
	c.Kube.Insecure = e.flag("SKIP_TLS_VERIFY")
	c.Sync.OnDelete, c.Sync.InitialNotify = podsync.DeleteRemoves, podsync.NotifyAlways
	c.Volume.Overwrite = true
	e.sources(&c)
	e.files(&c)
	e.request(&c)
	if method := e.get("METHOD", "WATCH"); method == "LIST" {
		c.Sync.Once = true
	} else {
		c.HealthAddr = ":" + e.get("HEALTH_PORT", "8080")
	}
	return c, errors.Join(e.mistakes...)
}

func (e *environment) sources(c *syncrun.Config) {
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
	names := e.list("RESOURCE_NAME")
	if labels == "" && len(names) == 0 {
		e.fail("LABEL is missing")
	}
	// A name is looked for in every kind and namespace; nobody has one in all.
	c.OptionalNames = true
	for _, namespace := range e.namespaces() {
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

// nameFor reads name, configmap/name or namespace/configmap/name, and says
// whether this kind and namespace are meant.
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
	return []string{syncrun.OwnNamespace(e.lookup)}
}

func (e *environment) files(c *syncrun.Config) {
	c.Volume.Root = e.get("FOLDER", "")
	if c.Volume.Root == "" {
		e.fail("FOLDER is missing")
	}
	c.SubdirAnnotation = e.get("FOLDER_ANNOTATION", "k8s-sidecar-target-directory")
	// The original takes absolute directories. Below FOLDER they mean the same
	// here; an object that asks for another place is left out and reported.
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
	// Keys that name a URL were fetched with the reload's own credentials.
	c.Sync.Rules.Exclude = []string{"*.url"}
	c.Warnings = append(c.Warnings, "keys that end in .url are not fetched: put the content itself into the object")
}

func (e *environment) request(c *syncrun.Config) {
	h := &c.App.HTTP
	if url := e.get("REQ_URL", ""); url != "" {
		c.App.Notify = append(c.App.Notify, url)
	}
	h.Method, h.Body = e.get("REQ_METHOD", "GET"), e.get("REQ_PAYLOAD", "")
	if h.Body != "" {
		h.Headers = []string{"Content-Type: application/json"}
	}
	h.Username, h.Password = e.get("REQ_USERNAME", ""), e.get("REQ_PASSWORD", "")
	h.UsernameFile, h.PasswordFile = e.get("REQ_USERNAME_FILE", ""), e.get("REQ_PASSWORD_FILE", "")
	h.Insecure = e.flag("REQ_SKIP_TLS_VERIFY")
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
	if script := e.get("SCRIPT", ""); script != "" {
		c.App.Notify = append(c.App.Notify, "exec:'"+strings.ReplaceAll(script, "'", `'\''`)+"'")
	}
}
