package notice

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// mostTargets and mostRoutes limit a targets file.
	mostTargets = 64
	mostRoutes  = 256
	// usualBatch is the time that messages are gathered for; longestBatch limits it.
	usualBatch   = 5 * time.Second
	longestBatch = 10 * time.Minute
	// shortestHMAC is a key that can't be guessed.
	shortestHMAC = 16
	// pagerDutyURL is PagerDuty's address outside of the service region EU.
	pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"
	// alertsPath is where an Alertmanager takes alerts.
	alertsPath = "/api/v2/alerts"
)

// file is a targets file.
type file struct {
	Targets map[string]target `yaml:"targets"`
	Routes  []route           `yaml:"routes"`
	Batch   string            `yaml:"batch"`
}

// addresses are the kinds of targets. Exactly one is given.
type addresses struct {
	Slack        Hidden `yaml:"slack"`
	Teams        Hidden `yaml:"teams"`
	GoogleChat   Hidden `yaml:"googleChat"`
	Discord      Hidden `yaml:"discord"`
	Alertmanager Hidden `yaml:"alertmanager"`
	PagerDuty    Hidden `yaml:"pagerduty"`
	Webhook      Hidden `yaml:"webhook"`
}

type target struct {
	addresses `yaml:",inline"`

	URL        Hidden            `yaml:"url"`
	Token      Hidden            `yaml:"token"`
	CA         string            `yaml:"ca"`
	Headers    map[string]Hidden `yaml:"headers"`
	HMAC       Hidden            `yaml:"hmac"`
	Template   string            `yaml:"template"`
	Prefix     string            `yaml:"prefix"`
	Namespaces []string          `yaml:"namespaces"`
	Severity   []string          `yaml:"severity"`
}

type route struct {
	To        []string `yaml:"to"`
	Reason    []string `yaml:"reason"`
	Severity  []string `yaml:"severity"`
	Namespace []string `yaml:"namespace"`
}

// Parse reads a targets file. Its errors name lines, targets and fields, never a value.
func Parse(text []byte) (Config, error) {
	var f file
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, withoutValues(err)
	}
	if len(f.Targets) == 0 {
		return Config{}, errors.New("targets: list at least one")
	}
	if len(f.Targets) > mostTargets || len(f.Routes) > mostRoutes {
		return Config{}, fmt.Errorf("at most %d targets and %d routes are allowed", mostTargets, mostRoutes)
	}
	c := Config{Targets: map[string]Target{}, Batch: usualBatch}
	if f.Batch != "" {
		batch, err := time.ParseDuration(f.Batch)
		if err != nil || batch < 0 || batch > longestBatch {
			return Config{}, fmt.Errorf("batch: want a duration of at most %s, such as 5s", longestBatch)
		}
		c.Batch = batch
	}
	for _, name := range slices.Sorted(maps.Keys(f.Targets)) {
		if !targetName().MatchString(name) {
			return Config{}, errors.New("targets: a name consists of up to 63 lower-case letters, digits and hyphens; one doesn't")
		}
		t, err := f.Targets[name].parse(name)
		if err != nil {
			return Config{}, fmt.Errorf("target %s: %w", name, err)
		}
		c.Targets[name] = t
	}
	for i, r := range f.Routes {
		parsed, err := r.parse(c)
		if err != nil {
			return Config{}, fmt.Errorf("route %d: %w", i+1, err)
		}
		c.Routes = append(c.Routes, parsed)
	}
	if len(f.Routes) == 0 {
		c.Routes = c.everyShared()
	}
	return c, nil
}

// everyShared is the route of a file without routes: warnings and errors go to every target that
// isn't reserved for the namespaces that choose it.
func (c Config) everyShared() []Route {
	var to []string
	for name, t := range c.Targets {
		if t.IsShared() {
			to = append(to, name)
		}
	}
	return []Route{{To: to, Severities: usual()}}
}

func targetName() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`) }

// withoutValues keeps the lines of a YAML error, and drops what it quotes: a URL that is given in
// a wrong place is still a secret.
func withoutValues(err error) error {
	messages := []string{err.Error()}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		messages = wrong.Errors
	}
	var lines []string
	for _, message := range messages {
		line := "it"
		if at := regexp.MustCompile(`\bline \d+: `).FindString(message); at != "" {
			line = strings.TrimSuffix(at, ": ")
		}
		switch {
		case strings.Contains(message, "not found in type"):
			lines = append(lines, line+" has an unknown field")
		case strings.Contains(message, "already defined"):
			lines = append(lines, line+" sets a field twice")
		case strings.Contains(message, "cannot unmarshal"):
			lines = append(lines, line+" has a value of the wrong type")
		default:
			lines = append(lines, line+" isn't YAML")
		}
	}
	return errors.New(strings.Join(lines, "; "))
}

// kinds are the addresses by kind.
func (a addresses) kinds() map[Kind]Hidden {
	all := map[Kind]Hidden{
		Slack: a.Slack, Teams: a.Teams, GoogleChat: a.GoogleChat, Discord: a.Discord,
		Alertmanager: a.Alertmanager, PagerDuty: a.PagerDuty, Webhook: a.Webhook,
	}
	maps.DeleteFunc(all, func(_ Kind, address Hidden) bool { return address == "" })
	return all
}

func (t target) parse(name string) (Target, error) {
	kinds := t.kinds()
	if len(kinds) != 1 {
		return Target{}, errors.New("set exactly one of slack, teams, googleChat, discord, alertmanager, pagerduty and webhook")
	}
	parsed := Target{
		Name: name, Token: t.Token, HMAC: t.HMAC, Headers: t.Headers, CA: t.CA,
		Prefix: t.Prefix, Template: t.Template, Namespaces: t.Namespaces,
	}
	for kind, address := range kinds {
		parsed.Kind, parsed.URL = kind, address
	}
	if field := t.unused(parsed.Kind); field != "" {
		return Target{}, fmt.Errorf("%s has no effect with %s", field, parsed.Kind)
	}
	if parsed.Kind == PagerDuty {
		parsed.Key, parsed.URL = parsed.URL, cmp.Or(t.URL, pagerDutyURL)
	}
	address, err := url.Parse(string(parsed.URL))
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		field := string(parsed.Kind)
		if parsed.Kind == PagerDuty {
			field = "url"
		}
		return Target{}, fmt.Errorf("%s: want a URL that begins with https:// or http://", field)
	}
	if parsed.Kind == Alertmanager && !strings.HasSuffix(address.Path, alertsPath) {
		parsed.URL = Hidden(address.JoinPath(alertsPath).String())
	}
	return parsed, t.check(&parsed)
}

// unused is a field that has no effect with this kind of target.
func (t target) unused(kind Kind) string {
	isChat := slices.Contains([]Kind{Slack, Teams, GoogleChat, Discord}, kind)
	for _, field := range []struct {
		name        string
		given, used bool
	}{
		{"prefix", t.Prefix != "", isChat},
		{"url", t.URL != "", kind == PagerDuty},
		{"token", t.Token != "", kind == Alertmanager || kind == Webhook},
		{"headers", len(t.Headers) > 0, kind == Webhook || kind == Alertmanager},
		{"hmac", t.HMAC != "", kind == Webhook},
		{"template", t.Template != "", kind == Webhook},
		{"severity", len(t.Severity) > 0, len(t.Namespaces) > 0},
	} {
		if field.given && !field.used {
			if field.name == "severity" {
				return "severity without namespaces"
			}
			return field.name
		}
	}
	return ""
}

// check finds mistakes in the fields, and fills in the severities.
func (t target) check(parsed *Target) error {
	if t.HMAC != "" && len(t.HMAC) < shortestHMAC {
		return fmt.Errorf("hmac: want at least %d characters", shortestHMAC)
	}
	if t.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.CA)) {
		return errors.New("ca: want certificates in PEM form")
	}
	for name, value := range t.Headers {
		if !isHeader(name, string(value)) {
			return errors.New("headers: one entry isn't a header that can be set")
		}
	}
	if !isLine(string(t.Token)) {
		return errors.New("token: it contains characters that a header can't contain")
	}
	if unknown := unknownField(t.Template); unknown {
		return errors.New("template: it uses an unknown field; known fields: " + strings.Join(fieldNames(), ", "))
	}
	if !arePatterns(t.Namespaces) {
		return errors.New("namespaces: one entry isn't a valid pattern")
	}
	var err error
	parsed.Severities, err = severities(t.Severity)
	return err
}

// isHeader reports whether the header can be set. Some are the client's own.
func isHeader(name, value string) bool {
	own := []string{"host", "content-length", "content-type", "transfer-encoding", "connection", strings.ToLower(signatureHeader)}
	return regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(name) && isLine(value) && !slices.Contains(own, strings.ToLower(name))
}

// isLine reports whether a header can have the value.
func isLine(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func arePatterns(patterns []string) bool {
	return !slices.ContainsFunc(patterns, func(pattern string) bool {
		_, err := path.Match(pattern, "")
		return err != nil || pattern == ""
	})
}

// severities are the given ones, or the usual ones.
func severities(given []string) ([]Severity, error) {
	if len(given) == 0 {
		return usual(), nil
	}
	var all []Severity
	for _, text := range given {
		if !slices.Contains(Severities(), Severity(text)) {
			return nil, errors.New("severity: want info, warning or error")
		}
		all = append(all, Severity(text))
	}
	return all, nil
}

func (r route) parse(c Config) (Route, error) {
	parsed := Route{To: r.To, Namespaces: r.Namespace}
	if len(r.To) == 0 {
		return Route{}, errors.New("to: list at least one target")
	}
	for _, name := range r.To {
		if _, known := c.Targets[name]; !known {
			return Route{}, errors.New("to: one entry isn't the name of a target")
		}
	}
	for _, reason := range r.Reason {
		if input.MeaningOf(input.Reason(reason)) == "" {
			return Route{}, errors.New("reason: one entry isn't a Lockstep reason, such as VersionStopped")
		}
		parsed.Reasons = append(parsed.Reasons, input.Reason(reason))
	}
	if !arePatterns(r.Namespace) {
		return Route{}, errors.New("namespace: one entry isn't a valid pattern")
	}
	var err error
	parsed.Severities, err = severities(r.Severity)
	if len(r.Severity) == 0 && len(r.Reason) > 0 {
		parsed.Severities = Severities() // The reasons say what is wanted.
	}
	return parsed, err
}
