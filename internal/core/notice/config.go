package notice

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Kind is a kind of target.
type Kind string

// The kinds, as the targets file spells them.
const (
	Slack        Kind = "slack"
	Teams        Kind = "teams"
	GoogleChat   Kind = "googleChat"
	Discord      Kind = "discord"
	Alertmanager Kind = "alertmanager"
	PagerDuty    Kind = "pagerduty"
	Webhook      Kind = "webhook"
)

// Target is where messages are sent.
type Target struct {
	Name string
	Kind Kind
	URL  Hidden
	// Key is PagerDuty's routing key; Token is a bearer token; HMAC signs the body.
	Key, Token, HMAC Hidden
	Headers          map[string]Hidden
	// CA has further certificates to trust (PEM).
	CA string
	// Prefix begins a message for people.
	Prefix string
	// Template is the body of a webhook; empty for the message as JSON.
	Template string
	// Namespaces may choose the target, and then get the Severities. They are patterns.
	Namespaces []string
	Severities []Severity
	// Plain sends one line for each notice.
	Plain bool
	// Body, unless it is nil, makes the body of a request from the text of a notice. Each notice
	// is a request of its own.
	Body func(text string) []byte
}

// IsShared reports whether the target isn't reserved for namespaces that choose it.
func (t Target) IsShared() bool { return len(t.Namespaces) == 0 }

// Route says which notices go to which targets.
type Route struct {
	To         []string
	Reasons    []input.Reason
	Severities []Severity
	// Namespaces are patterns; empty means all.
	Namespaces []string
}

// takes reports whether the route is for the notice.
func (r Route) takes(n Notice) bool {
	return (len(r.Reasons) == 0 || slices.Contains(r.Reasons, n.Reason)) &&
		slices.Contains(r.Severities, n.Severity) &&
		(len(r.Namespaces) == 0 || matches(r.Namespaces, n.Namespace))
}

// matches reports whether a pattern stands for the namespace. Parse has checked the patterns.
func matches(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return ok && err == nil
	})
}

// Config is the content of a targets file.
type Config struct {
	Targets map[string]Target
	Routes  []Route
	// Batch is how long warnings and errors are gathered for one message.
	Batch time.Duration
}

// Plain is the configuration with one Slack webhook that gets a line for every notice.
func Plain(url Hidden, prefix string) Config {
	c := Each(Target{Name: "Slack", Kind: Slack, URL: url, Prefix: prefix, Plain: true})
	c.Batch = time.Second
	return c
}

// Each is the configuration with one webhook that gets a request for every notice, at once.
func Each(t Target) Config {
	return Config{
		Targets: map[string]Target{t.Name: t},
		Routes:  []Route{{To: []string{t.Name}, Severities: Severities()}},
	}
}

// usual are the severities that are sent unless a route or target names others.
func usual() []Severity { return []Severity{Warning, Error} }

// For lists the targets of a notice in the order of their names. Chosen is the target that its
// namespace has chosen; one that isn't allowed is ignored.
func (c Config) For(n Notice, chosen string) []string {
	to := map[string]bool{}
	for _, route := range c.Routes {
		if route.takes(n) {
			for _, name := range route.To {
				to[name] = true
			}
		}
	}
	if t, allowed := c.Targets[chosen], c.Allows(n.Namespace, chosen); allowed && slices.Contains(t.Severities, n.Severity) {
		to[chosen] = true
	}
	return slices.Sorted(maps.Keys(to))
}

// Allows reports whether the namespace may choose the target.
func (c Config) Allows(namespace, target string) bool {
	return matches(c.Targets[target].Namespaces, namespace)
}

// Problem says what is wrong with the namespace's choice, empty when nothing is. It doesn't list
// targets of others.
func (c Config) Problem(namespace, target string) string {
	if c.Allows(namespace, target) {
		return ""
	}
	var allowed []string
	for name := range c.Targets {
		if c.Allows(namespace, name) {
			allowed = append(allowed, name)
		}
	}
	slices.Sort(allowed)
	if len(allowed) == 0 {
		return "this namespace isn't allowed to choose a notification target"
	}
	return "this namespace is allowed to choose the notification target " + strings.Join(allowed, " or ")
}

func number(n int) string { return strconv.Itoa(n) }
