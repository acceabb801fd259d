// Package run assembles one in-pod agent and runs it. It doesn't know flags: the native
// command line and those of predecessors become its Config.
package run

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

// Kube configures access to the API server. The zero value means in-cluster access with the
// pod's own service account.
type Kube struct {
	Kubeconfig string
	Overrides  clientcmdapi.Context
	Context    string
	Server     string
	Token      string
	Username   string
	Password   string
	CAFile     string
	CertFile   string
	KeyFile    string
	Insecure   bool
}

// App configures how the application is checked, notified and queried, in the syntax of the
// command line: see the package application.
type App struct {
	Check   string
	Notify  []string
	Confirm string
	// HTTP are the options of the first address among these; each other address is followed by
	// its own.
	HTTP httpcall.Options
	// CheckTimeout, CommandTimeout and ConfirmTimeout bound the three.
	CheckTimeout, CommandTimeout, ConfirmTimeout time.Duration
}

// Log configures the log format.
type Log struct {
	// Format is text or json.
	Format string
	Level  slog.Level
	// UTC writes times in UTC instead of local time.
	UTC bool
}

// Config is the configuration of one agent.
type Config struct {
	Kube        Kube
	Selectors   []objectwatch.Selector
	Directories []string
	// Volume is where files are published. An empty root means that another program publishes
	// and the agent only notifies.
	Volume volume.Options
	Sync   podsync.Options
	// OptionalNames lets named objects be missing: their files come and go with them.
	OptionalNames bool
	// SubdirAnnotation lets objects choose a directory below the root.
	SubdirAnnotation string
	App              App
	// Child is the application in subprocess mode; no arguments mean none.
	Child process.ChildOptions
	// Health is where probes and metrics are served; an empty value means nowhere. HealthOptional
	// lets the agent run without them when the port is taken.
	Health         listener.Address
	HealthOptional bool
	// Log is a predecessor's log format; an empty format means the command line's own.
	Log Log
	// Rescan and Poll are how often directories are scanned.
	Rescan, Poll time.Duration
	// Warnings are logged once at the start.
	Warnings []string
}

// Guard is the size limit for the predecessors' command lines, which had none. It only prevents
// that one object too many fills the node's disk.
const Guard = 1 << 30

// Default is the native configuration without sources.
func Default() Config {
	return Config{
		Volume: volume.DefaultOptions(""), Sync: podsync.DefaultOptions(),
		App: App{
			HTTP:         httpcall.Options{Method: "POST", Timeout: 10 * time.Second},
			CheckTimeout: 30 * time.Second, CommandTimeout: 30 * time.Second, ConfirmTimeout: 30 * time.Second,
		},
		Health: listener.Address{Setting: "--health-addr"},
		Child:  process.ChildOptions{StopSignal: 15, Grace: 25 * time.Second},
		Rescan: time.Minute, Poll: 5 * time.Second,
	}
}

// OwnNamespace is the pod's namespace: from the service account, the downward
// API's usual variable, or the kubeconfig's usual default.
func OwnNamespace(lookup func(string) (string, bool)) string {
	if raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(raw))
	}
	if namespace, ok := lookup("POD_NAMESPACE"); ok && namespace != "" {
		return namespace
	}
	return "default"
}

// complete fills in fields that follow from others.
func (c Config) complete() Config {
	c.Sync.Sources = nil
	c.Sync.Keyed = len(c.Directories) > 0
	for _, s := range c.Selectors {
		c.Sync.Sources = append(c.Sync.Sources, podsync.Source{Name: s.String(), Named: s.Name != "" && !c.OptionalNames})
		c.Sync.Keyed = c.Sync.Keyed || s.Kind != "configmap"
	}
	for _, d := range c.Directories {
		c.Sync.Sources = append(c.Sync.Sources, podsync.Source{Name: "directory " + d})
	}
	c.Sync.ReadOnly = c.Volume.Root == ""
	// Directories that are only watched may contain files of the same name: each keeps its own
	// path.
	c.Sync.Rules.Subdirs = c.SubdirAnnotation != "" || c.Sync.ReadOnly
	if n := c.namespaces(); n > 1 {
		c.Sync.Rules.Shared, c.Sync.Rules.Share = true, c.Sync.Rules.MaxBytes/n
	}
	c.Sync.Attributes = fmt.Sprintf("%o %o %d %d", c.Volume.FileMode, c.Volume.DirMode, c.Volume.UID, c.Volume.GID)
	return c
}

// fewest is how many namespaces it takes to use up the size limit, if the objects can come from
// that many.
const fewest = 4

// namespaces is from how many namespaces the objects can come, at most fewest.
func (c Config) namespaces() int64 {
	names := map[string]bool{}
	for _, s := range c.Selectors {
		if s.Namespace == "" {
			return fewest
		}
		names[s.Namespace] = true
	}
	return int64(min(len(names), fewest))
}

// Validate reports every mistake in the configuration.
func (c Config) Validate() error {
	c = c.complete()
	_, _, inWords := c.application(process.NewParent())
	mistakes := []error{c.Sync.Validate(), inWords, c.checkTimes(), c.checkPlaces()}
	if len(c.Selectors) > 0 {
		mistakes = append(mistakes, c.watchOptions().Validate())
	}
	switch {
	case c.Volume.Root != "":
		mistakes = append(mistakes, c.Volume.Validate())
	case len(c.Selectors) > 0:
		mistakes = append(mistakes, errors.New("the root directory is missing: set --root"))
	}
	if len(c.Child.Args) > 0 {
		mistakes = append(mistakes, c.Child.Validate())
		if c.Sync.Once {
			mistakes = append(mistakes, errors.New("--once exits after publishing and doesn't start a command: omit --once or the command after --"))
		}
	}
	if c.Health.Value != "" {
		mistakes = append(mistakes, c.Health.Check())
	}
	return errors.Join(mistakes...)
}

// checkPlaces detects a directory and a root that are inside one another: the agent would
// follow its own files, or publish into a directory that it follows.
func (c Config) checkPlaces() error {
	if c.Volume.Root == "" {
		return nil
	}
	root := resolved(c.Volume.Root)
	var mistakes []error
	for _, dir := range c.Directories {
		if place := resolved(dir); within(place, root) || within(root, place) {
			mistakes = append(mistakes, fmt.Errorf("--directory %s and --root %s contain one another: use separate directories", dir, c.Volume.Root))
		}
	}
	return errors.Join(mistakes...)
}

// resolved is a path without links, as far as it exists.
func resolved(name string) string {
	full, err := filepath.Abs(name)
	if err != nil {
		return filepath.Clean(name)
	}
	if place, err := filepath.EvalSymlinks(full); err == nil {
		return place
	}
	if parent := filepath.Dir(full); parent != full {
		return filepath.Join(resolved(parent), filepath.Base(full))
	}
	return full
}

func within(name, dir string) bool {
	relative, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(relative)
}

// checkTimes detects durations that must not be zero: a pause or a limit of zero would have
// no effect.
func (c Config) checkTimes() error {
	var mistakes []error
	for _, t := range []struct {
		flag string
		time time.Duration
	}{{"rescan", c.Rescan}, {"poll", c.Poll}, {"stall-deadline", c.Sync.Stall}, {"check-timeout", c.App.CheckTimeout}, {"notify-timeout", c.App.CommandTimeout}} {
		if t.time <= 0 {
			mistakes = append(mistakes, fmt.Errorf("--%s %s: want a positive time", t.flag, t.time))
		}
	}
	return errors.Join(mistakes...)
}

func (c Config) watchOptions() objectwatch.Options {
	return objectwatch.Options{Selectors: c.Selectors, Stall: c.Sync.Stall, SubdirAnnotation: c.SubdirAnnotation}
}

// restConfig configures access to the API server.
func (k Kube) restConfig() (*rest.Config, error) {
	config, err := k.load()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	// The server has its own fairness; a limit here would only delay the start.
	config.QPS = -1
	config.UserAgent = "lockstep-sync"
	return config, nil
}

// trusting accepts any certificate when the user requests it. The client refuses a CA next
// to that setting as a contradiction.
func (k Kube) trusting(config *rest.Config) *rest.Config {
	if config != nil && k.Insecure {
		config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	}
	return config
}

func (k Kube) load() (*rest.Config, error) {
	if k.Kubeconfig == "" && k.Server == "" {
		config, err := rest.InClusterConfig()
		return k.trusting(config), err
	}
	return k.loader().ClientConfig()
}

// Namespace is the namespace of the kubeconfig's context. It is empty when the context names
// none or the file can't be read, which the start reports.
func (k Kube) Namespace() string {
	if k.Kubeconfig == "" {
		return ""
	}
	config, err := k.loader().RawConfig()
	if err != nil {
		return ""
	}
	if context := config.Contexts[cmp.Or(k.Context, config.CurrentContext)]; context != nil {
		return context.Namespace
	}
	return ""
}

func (k Kube) loader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: k.Context, Context: k.Overrides,
		ClusterInfo: clientcmdapi.Cluster{Server: k.Server, CertificateAuthority: k.CAFile, InsecureSkipTLSVerify: k.Insecure},
		AuthInfo: clientcmdapi.AuthInfo{
			Token: k.Token, Username: k.Username, Password: k.Password, ClientCertificate: k.CertFile, ClientKey: k.KeyFile,
		},
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: k.Kubeconfig}
	if files := filepath.SplitList(k.Kubeconfig); len(files) > 1 { // as kubectl reads KUBECONFIG
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: files}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}
