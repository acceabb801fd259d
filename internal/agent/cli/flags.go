package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/httpcall"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/core/preset"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// flags are the values of the native command line before they become a
// configuration.
type flags struct {
	base run.Config

	sources          sourceFlags
	files            fileFlags
	app              appFlags
	install          string
	log              logOptions
	logLevel         string
	helpAll, version bool
}

// sourceFlags select the objects to follow.
type sourceFlags struct {
	configMaps, secrets, selectors, namespaces []string
	kinds                                      []string
	onDelete                                   string
}

// fileFlags configure how objects become files.
type fileFlags struct {
	items             []string
	collision, layout string
	fileMode, dirMode string
	maxSize           string
}

// appFlags configure how the application is notified.
type appFlags struct {
	preset            string
	choice            preset.Choice
	noCheck           bool
	initialNotify     string
	stopSignal, codes string
}

func newFlags() *flags {
	return &flags{base: run.Default()}
}

// bind defines every flag. run.Default sets the defaults.
func (f *flags) bind(fs *pflag.FlagSet) {
	f.bindSources(fs)
	f.bindFiles(fs)
	f.bindApplication(fs)
	f.bindHTTP(fs)
	f.bindTiming(fs)
	fs.StringVar(&f.base.Health.Value, "health-addr", "", "serve /healthz, /readyz, /startupz and /metrics on this address, for example :8080")
	fs.StringVar(&f.install, "install", "", "copy this program into a directory and exit")
	fs.StringVar(&f.log.format, "log-format", "text", "text or json")
	fs.StringVar(&f.logLevel, "log-level", "info", "minimum level to log: debug, info, warn or error")
	fs.BoolVar(&f.helpAll, "help-all", false, "show every flag")
}

func (f *flags) bindSources(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.sources.configMaps, "configmap", nil, "ConfigMap to follow, [NAMESPACE/]NAME; may be repeated")
	fs.StringArrayVar(&f.sources.secrets, "secret", nil, "Secret to follow, [NAMESPACE/]NAME; may be repeated")
	fs.StringArrayVar(&f.sources.selectors, "selector", nil, "label selector for objects to follow; may be repeated")
	fs.StringSliceVar(&f.sources.kinds, "selector-kinds", []string{"configmap"}, "kinds that --selector applies to: configmap (cm), secret")
	fs.StringSliceVar(&f.sources.namespaces, "namespace", nil, "namespaces for --selector, and the default namespace for names; * means all (default: the kubeconfig context's namespace, or the pod's own)")
	fs.StringArrayVar(&f.base.Directories, "directory", nil, "mounted volume or plain directory to follow; may be repeated")
	fs.StringVar(&f.base.Kube.Kubeconfig, "kubeconfig", "", commandline.KubeconfigUsage)
	fs.StringVar(&f.base.Kube.Context, "context", "", "kubeconfig context (default the current one)")
	fs.DurationVar(&f.base.Sync.Stall, "stall-deadline", f.base.Sync.Stall, "how long a source may be silent or unreadable before the agent is unhealthy")
	fs.BoolVar(&f.base.Sync.WaitForSources, "wait-for-sources", false, "wait for named objects that don't exist yet instead of exiting")
	fs.StringVar(&f.sources.onDelete, "on-delete", string(podsync.DeleteAuto), "what happens to a deleted object's files: keep, remove, or auto (keep for named objects, remove for selected ones)")
}

func (f *flags) bindFiles(fs *pflag.FlagSet) {
	v := &f.base.Volume
	fs.StringVar(&v.Root, "root", "", "directory to publish into; without it, the agent only watches --directory")
	fs.StringVar(&f.files.layout, "layout", string(volume.Links), "links (like the kubelet), exchange (real directories; the whole root changes in one step) or files (real directories, file by file; works in a mount point)")
	fs.StringVar(&f.files.fileMode, "file-mode", "0644", "file mode")
	fs.StringVar(&f.files.dirMode, "dir-mode", "0755", "directory mode")
	fs.IntVar(&v.UID, "uid", -1, "owner of the files; -1 keeps the agent's user; requires the CHOWN capability")
	fs.IntVar(&v.GID, "gid", -1, "group of the files and directories; -1 keeps the agent's group")
	fs.BoolVar(&v.Overwrite, "overwrite", false, "replace files of the same name that another program wrote")
	fs.BoolVar(&v.Durable, "durable", false, "sync files to disk before publishing")
	fs.DurationVar(&v.Grace, "keep-old", v.Grace, "how long a replaced set stays readable for programs that opened it")
	fs.StringArrayVar(&f.files.items, "item", nil, "path for one key, [OBJECT:]KEY=PATH; may be repeated")
	fs.StringVar(&f.base.Sync.Rules.Separator, "key-separator", "", "text in keys that becomes a slash in paths, for example __")
	fs.StringArrayVar(&f.base.Sync.Rules.Include, "include", nil, "publish only keys that match this glob; may be repeated")
	fs.StringArrayVar(&f.base.Sync.Rules.Exclude, "exclude", nil, "skip keys that match this glob; may be repeated")
	fs.StringVar(&f.files.collision, "collision", string(filemap.Refuse), "what to do when two sources contain the same file: error, prefix or first")
	fs.StringVar(&f.files.maxSize, "max-size", "256Mi", "maximum total size of the sources, counting each file in blocks of 4Ki; 0 means no limit")
	fs.StringVar(&f.base.SubdirAnnotation, "subdir-annotation", "", "annotation with which an object chooses a directory below the root")
	fs.BoolVar(&f.base.Sync.Once, "once", false, "publish once and exit, for init containers")
}

func (f *flags) bindApplication(fs *pflag.FlagSet) {
	a := &f.base.App
	fs.StringVar(&f.app.preset, "app", "", "preset for check, notify and confirm: "+strings.Join(preset.Names(), ", "))
	fs.StringVar(&f.app.choice.File, "app-file", "", "main configuration file below the root, for --app")
	fs.StringVar(&f.app.choice.URL, "app-url", "", "address of the application, for --app")
	fs.StringVar(&f.app.choice.Socket, "app-socket", "", "control socket of the application, for --app haproxy")
	fs.BoolVar(&f.app.noCheck, "no-check", false, "skip the preset's check")
	fs.StringVar(&a.Check, "check", "", "command that checks the staged files; {dir} is their directory")
	fs.DurationVar(&a.CheckTimeout, "check-timeout", a.CheckTimeout, "time limit for the check")
	fs.StringArrayVar(&a.Notify, "notify", nil, "URL [OPTION=VALUE…], signal:HUP[@name:X|@all:X|@pidfile:X], exec:COMMAND, socket:PATH:LINE or restart; in order, may be repeated")
	fs.DurationVar(&a.CommandTimeout, "notify-timeout", a.CommandTimeout, "time limit for commands and sockets in --notify")
	fs.StringVar(&a.Confirm, "confirm", "", "URL, body:REGEXP@URL, metric:NAME==NUMBER@URL, metric:NAME>before@URL (also != >= <= <), exec:COMMAND, workers:child|name:X, haproxy:SOCKET, or none")
	fs.DurationVar(&a.ConfirmTimeout, "confirm-timeout", a.ConfirmTimeout, "time limit for the confirmation")
	fs.StringVar(&f.app.initialNotify, "initial-notify", string(podsync.NotifyIfChanged), "notify the application of the first set: never, if-changed or always")
	fs.StringVar(&f.app.stopSignal, "stop-signal", "TERM", "signal that stops the child")
	fs.DurationVar(&f.base.Child.Grace, "stop-grace", f.base.Child.Grace, "time the child has to exit before the agent kills its process group")
}

func (f *flags) bindHTTP(fs *pflag.FlagSet) {
	h := &f.base.App.HTTP
	fs.StringVar(&h.Method, "http-method", h.Method, "method for the first URL; for other URLs, write this and the other --http options after the URL: --notify='URL method=PUT'")
	fs.StringArrayVar(&h.Headers, "http-header", nil, "header for HTTP requests to the first URL's server, Name: value; may be repeated")
	fs.StringVar(&h.Body, "http-body", "", "body of HTTP notifications to the first URL's server")
	fs.StringVar(&h.Credentials.UsernameFile, "http-username-file", "", "file with the user name for basic authentication")
	fs.StringVar(&h.Credentials.PasswordFile, "http-password-file", "", "file with the password for basic authentication")
	fs.StringVar(&h.Credentials.BearerFile, "http-bearer-file", "", "file with a bearer token")
	fs.StringVar(&h.TLS.CAFile, "http-ca", "", "file with the CA certificate that signed the server's certificate")
	fs.StringVar(&h.TLS.CertFile, "http-cert", "", "file with the client certificate")
	fs.StringVar(&h.TLS.KeyFile, "http-key", "", "file with the client certificate's key")
	fs.StringVar(&h.TLS.ServerName, "http-server-name", "", "name in the server's certificate, if it isn't the URL's host")
	fs.BoolVar(&h.TLS.Insecure, "http-insecure", false, "accept any server certificate")
	fs.StringVar(&h.UnixSocket, "http-unix-socket", "", "unix socket to dial instead of the URL's host")
	fs.StringVar(&f.app.codes, "http-codes", "200-299", "accepted status codes")
	fs.DurationVar(&h.Timeout, "http-timeout", h.Timeout, "how long to wait for an answer before it counts as a failure; a sent request stays open")
}

func (f *flags) bindTiming(fs *pflag.FlagSet) {
	t := &f.base.Sync.Timing
	fs.DurationVar(&t.Quiet, "quiet", t.Quiet, "how long the sources must be unchanged before a change is published")
	fs.DurationVar(&t.MaxWait, "max-wait", t.MaxWait, "maximum time to wait for quiet; 0 means no limit")
	fs.DurationVar(&t.MinInterval, "min-interval", t.MinInterval, "minimum time between two reloads")
	fs.DurationVar(&t.Retry, "retry", t.Retry, "pause after the first failed delivery; doubles with each failure")
	fs.DurationVar(&t.MaxRetry, "max-retry", t.MaxRetry, "maximum pause between attempts")
	fs.IntVar(&t.MaxFailures, "max-failures", t.MaxFailures, "failed deliveries in a row before the agent is unhealthy or rolls back")
	fs.DurationVar(&t.StartGrace, "start-grace", t.StartGrace, "how long an application that can't be reached counts as starting rather than failing")
	fs.BoolVar(&t.RollBack, "roll-back", false, "restore the previous set after --max-failures")
	fs.DurationVar(&f.base.Rescan, "rescan", f.base.Rescan, "how often the agent checks a --directory even without a change event")
	fs.DurationVar(&f.base.Poll, "poll", f.base.Poll, "how often the agent checks a --directory when the node has no inotify watches left")
}

// config turns the flags into a configuration. args is the child's command line.
func (f *flags) config(args []string, lookup func(string) (string, bool)) (run.Config, error) {
	c := f.base
	c.Child.Args = args
	c.Volume.Layout = volume.Layout(f.files.layout)
	c.Sync.Rules.Collision = filemap.Collision(f.files.collision)
	c.Sync.OnDelete, c.Sync.InitialNotify = podsync.OnDelete(f.sources.onDelete), podsync.InitialNotify(f.app.initialNotify)
	var mistakes []error
	for _, set := range []func(*run.Config) error{f.setModes, f.setMaxSize, f.setItems, f.setSignals, f.setSources(lookup), f.setPreset, f.setLog} {
		mistakes = append(mistakes, set(&c))
	}
	return c, errors.Join(mistakes...)
}

func (f *flags) setModes(c *run.Config) error {
	var mistakes []error
	for text, into := range map[*string]*fs.FileMode{&f.files.fileMode: &c.Volume.FileMode, &f.files.dirMode: &c.Volume.DirMode} {
		mode, err := strconv.ParseUint(*text, 8, 12)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("mode %q: want an octal number such as 0644", *text))
		}
		*into = fs.FileMode(mode)
	}
	return errors.Join(mistakes...)
}

func (f *flags) setMaxSize(c *run.Config) error {
	size, err := resource.ParseQuantity(f.files.maxSize)
	if err != nil || size.Sign() < 0 {
		return fmt.Errorf("--max-size %q: want a size such as 256Mi, or 0", f.files.maxSize)
	}
	c.Sync.Rules.MaxBytes = size.Value()
	return nil
}

func (f *flags) setItems(c *run.Config) error {
	var mistakes []error
	for _, s := range f.files.items {
		item, err := filemap.ParseItem(s)
		mistakes = append(mistakes, err)
		c.Sync.Rules.Items = append(c.Sync.Rules.Items, item)
	}
	return errors.Join(mistakes...)
}

func (f *flags) setSignals(c *run.Config) error {
	sig, err := process.ParseSignal(f.app.stopSignal)
	codes, err2 := httpcall.ParseCodes(f.app.codes)
	c.Child.StopSignal, c.App.HTTP.Codes = sig, codes
	return errors.Join(err, err2)
}

// setPreset fills in the settings that the user left out.
func (f *flags) setPreset(c *run.Config) error {
	if c.App.Confirm == "none" {
		defer func() { c.App.Confirm = "" }()
	}
	if f.app.preset == "" {
		return nil
	}
	choice := f.app.choice
	choice.Child = len(c.Child.Args) > 0
	p, err := preset.Resolve(f.app.preset, choice)
	if errors.Is(err, preset.ErrNoSocket) {
		return fmt.Errorf("%w: set it with --app-socket", err)
	}
	if err != nil {
		return err
	}
	if len(c.App.Notify) == 0 {
		c.App.Notify = p.Notify
	}
	if c.App.Confirm == "" {
		c.App.Confirm = p.Confirm
	}
	if c.App.Check != "" || f.app.noCheck {
		return nil
	}
	c.App.Check = p.Check
	return findChecker(f.app.preset, p.Check)
}

// findChecker refuses a check whose program is missing instead of skipping it silently: a
// sidecar image usually doesn't contain the application's own programs.
func findChecker(app, check string) error {
	args, err := argv.Split(check)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return fmt.Errorf("--app %s: this image doesn't contain the checker %s: run the agent as the application's parent "+
			"(--install), set another --check, or skip it with --no-check", app, args[0])
	}
	return nil
}

func (f *flags) setSources(lookup func(string) (string, bool)) func(*run.Config) error {
	return func(c *run.Config) error {
		if len(f.sources.configMaps)+len(f.sources.secrets)+len(f.sources.selectors) == 0 {
			return nil
		}
		files, err := commandline.Kubeconfig(f.base.Kube.Kubeconfig, lookup)
		if err != nil {
			return err
		}
		c.Kube.Kubeconfig = strings.Join(files, string(filepath.ListSeparator))
		namespaces := f.sources.namespaces
		if len(namespaces) == 0 {
			namespaces = []string{cmp.Or(c.Kube.Namespace(), run.OwnNamespace(lookup))}
		}
		var mistakes []error
		for kind, names := range map[filemap.Kind][]string{filemap.ConfigMap: f.sources.configMaps, filemap.Secret: f.sources.secrets} {
			for _, name := range names {
				s, err := named(kind, name, namespaces[0])
				mistakes = append(mistakes, err)
				c.Selectors = append(c.Selectors, s)
			}
		}
		selected, err := f.selected(namespaces)
		c.Selectors = append(c.Selectors, selected...)
		return errors.Join(append(mistakes, err)...)
	}
}

func named(kind filemap.Kind, name, namespace string) (objectwatch.Selector, error) {
	first, second, qualified := strings.Cut(name, "/")
	if !qualified {
		second, first = first, namespace
	}
	if first == "" || second == "" || first == "*" || strings.Contains(second, "/") {
		return objectwatch.Selector{}, fmt.Errorf("%s %q: want NAME or NAMESPACE/NAME", kind, name)
	}
	return objectwatch.Selector{Kind: kind, Namespace: first, Name: second}, nil
}

func (f *flags) selected(namespaces []string) ([]objectwatch.Selector, error) {
	var all []objectwatch.Selector
	var mistakes []error
	for _, called := range f.sources.kinds {
		kind, known := commandline.SourceKind(called)
		if !known {
			mistakes = append(mistakes, fmt.Errorf("--selector-kinds %q: want configmap (cm) or secret", called))
		}
		for _, labels := range f.sources.selectors {
			for _, namespace := range namespaces {
				if namespace == "*" {
					namespace = ""
				}
				all = append(all, objectwatch.Selector{Kind: filemap.Kind(kind), Namespace: namespace, Labels: labels})
			}
		}
	}
	return all, errors.Join(mistakes...)
}

func (f *flags) setLog(*run.Config) (err error) {
	f.log.level, err = commandline.LogLevel(f.logLevel)
	return err
}
