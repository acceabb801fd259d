// Package configcontroller translates the command line and the environment of
// k8s-config-controller into the agent's configuration. It has no behaviour of its own.
package configcontroller

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// Name is the program's executable, and Short what it does; ImageName and ImageShort are those
// of the script that its image starts.
const (
	Name       = "config-controller"
	Short      = "k8s-config-controller: files from a ConfigMap, and a reload request"
	ImageName  = "start-config-controller"
	ImageShort = "k8s-config-controller, as its image starts it"
)

// values are the original's flags.
type values struct {
	configMap, root, url, method string
	inCluster, alwaysHUP         bool
	healthAddr                   string
	kube                         run.Kube
	ownNamespace                 string
	usualKubeconfig              string // the kubeconfig that kubectl would use
}

// Parse parses the original's flags. A flag wins over its variable, and the variable over
// the image's default.
func Parse(args []string, lookup func(string) (string, bool)) (run.Config, error) {
	child, split := slices.Index(args, "--"), []string(nil)
	subprocess := child >= 0
	if subprocess {
		args, split = args[:child], args[child+1:]
	}
	v, err := parseFlags(args, lookup)
	if err != nil {
		return run.Config{}, err
	}
	if subprocess && len(split) == 0 {
		return run.Config{}, errors.New("there is no command after --")
	}
	return v.config(split)
}

// ParseImage parses them as the entry script of the original's image did, which has its own
// default for the directory.
func ParseImage(args []string, lookup func(string) (string, bool)) (run.Config, error) {
	return Parse(args, func(name string) (string, bool) {
		value, ok := lookup(name)
		if !ok && name == "CONFIG_CONTROLLER_CONFIGROOT" {
			return "/config", true
		}
		return value, ok
	})
}

// Recognizes reports whether a command line is the original's, whatever the program is called:
// its flag for the directory exists in no other mode. Users build the program into images of
// their own, under names of their own.
func Recognizes(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--configroot" || strings.HasPrefix(arg, "--configroot=")
	})
}

// Usage lists the flags and their variables.
func Usage() string {
	f, _ := newFlagSet(func(string) (string, bool) { return "", false })
	return "Replaces k8s-config-controller: keeps a directory in sync with a ConfigMap, and the application in step with it.\n\n" +
		"Usage:\n  lockstep-sync config-controller --configmap=[NS/]NAME --configroot=DIR --reload-http=URL\n" +
		"  lockstep-sync config-controller --configmap=[NS/]NAME --configroot=DIR [--reload-http=URL] -- COMMAND ARGS…\n\n" +
		"Variables for flags that are not set: CONFIG_CONTROLLER_CONFIGMAP, CONFIG_CONTROLLER_CONFIGROOT, CONFIG_CONTROLLER_URL,\n" +
		"CONFIG_CONTROLLER_METHOD, LOCKSTEP_HEALTH_ADDR; with --running-in-cluster=false, KUBECONFIG or ~/.kube/config.\n\nFlags:\n" + f.FlagUsages()
}

func newFlagSet(lookup func(string) (string, bool)) (*pflag.FlagSet, *values) {
	env := func(name, otherwise string) string {
		if value, ok := lookup(name); ok {
			return value
		}
		return otherwise
	}
	v := &values{ownNamespace: run.OwnNamespace(lookup), usualKubeconfig: env("KUBECONFIG", "")}
	if home := env("HOME", ""); v.usualKubeconfig == "" && home != "" {
		v.usualKubeconfig = filepath.Join(home, ".kube", "config")
	}
	f := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&v.configMap, "configmap", env("CONFIG_CONTROLLER_CONFIGMAP", ""), "[NS/]NAME of the ConfigMap")
	f.StringVar(&v.root, "configroot", env("CONFIG_CONTROLLER_CONFIGROOT", ""), "directory to publish into")
	// The shell of the original's script cut off a Secret's last line break.
	f.StringVar(&v.url, "reload-http", strings.TrimSpace(env("CONFIG_CONTROLLER_URL", "")), "URL of the reload request")
	f.StringVar(&v.method, "reload-http-method", env("CONFIG_CONTROLLER_METHOD", http.MethodPost), "method of the reload request")
	f.BoolVar(&v.inCluster, "running-in-cluster", true, "use the pod's service account")
	f.BoolVar(&v.alwaysHUP, "always-sighup", false, "send SIGHUP even to a command that doesn't handle it, which ends it; not in the original")
	f.StringVar(&v.healthAddr, "health-addr", env("LOCKSTEP_HEALTH_ADDR", ""), "serve probes on this address; not in the original")
	bindKube(f, v)
	ignored(f)
	return f, v
}

func parseFlags(args []string, lookup func(string) (string, bool)) (*values, error) {
	f, v := newFlagSet(lookup)
	if err := f.Parse(args); err != nil {
		return nil, commandline.FlagError(f, err)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the application's command comes after --", f.Arg(0))
	}
	return v, nil
}

// bindKube accepts kubectl's client flags.
func bindKube(f *pflag.FlagSet, v *values) {
	f.StringVar(&v.kube.Kubeconfig, "kubeconfig", "", "kubeconfig file")
	f.StringVar(&v.kube.Context, "context", "", "kubeconfig context")
	f.StringVar(&v.kube.Overrides.Cluster, "cluster", "", "kubeconfig cluster")
	f.StringVar(&v.kube.Overrides.AuthInfo, "user", "", "kubeconfig user")
	f.StringVarP(&v.kube.Server, "server", "s", "", "address of the API server")
	f.StringVar(&v.kube.Token, "token", "", "bearer token")
	f.StringVar(&v.kube.Username, "username", "", "user name")
	f.StringVar(&v.kube.Password, "password", "", "password")
	f.StringVar(&v.kube.CAFile, "certificate-authority", "", "CA certificate of the API server")
	f.StringVar(&v.kube.CertFile, "client-certificate", "", "client certificate")
	f.StringVar(&v.kube.KeyFile, "client-key", "", "key of the client certificate")
	f.BoolVar(&v.kube.Insecure, "insecure-skip-tls-verify", false, "accept any certificate")
	f.StringVar(&v.kube.Overrides.Namespace, "namespace", "", "namespace of the context; it doesn't apply to the ConfigMap")
}

// ignored accepts and ignores the log flags of the original's library: the log goes to
// standard error.
func ignored(f *pflag.FlagSet) {
	for _, name := range []string{"vmodule", "log_dir", "log_backtrace_at", "stderrthreshold", "api-version"} {
		f.String(name, "", "accepted and ignored")
	}
	f.IntP("v", "v", 0, "accepted and ignored")
	for _, name := range []string{"logtostderr", "alsologtostderr", "match-server-version"} {
		f.Bool(name, true, "accepted and ignored")
	}
}

// The original's constants.
const (
	minInterval = 10 * time.Second
	fileMode    = 0o666
	dirMode     = 0o777
)

func (v *values) config(child []string) (run.Config, error) {
	c := run.Default()
	c.Sync.Rules.MaxBytes = run.Guard
	selector, err := parseConfigMap(v.configMap)
	if v.root == "" {
		err = errors.Join(err, errors.New("--configroot is missing"))
	}
	if v.url == "" && len(child) == 0 {
		err = errors.Join(err, errors.New("--reload-http is missing; it is optional only with a command after --"))
	}
	c.Selectors, c.Warnings = []objectwatch.Selector{selector}, v.warnings(selector)
	c.Volume.Root, c.Volume.Overwrite, c.Health.Value = v.root, true, v.healthAddr
	c.Volume.FileMode, c.Volume.DirMode = lessUmask(fileMode), lessUmask(dirMode)
	c.Sync.InitialNotify, c.Sync.OnDelete = podsync.NotifyAlways, podsync.DeleteKeeps
	c.Sync.Timing.Quiet, c.Sync.Timing.MinInterval = 0, minInterval
	c.Sync.FailFast = true
	c.Child.Args, c.Child.AnySignal = child, v.alwaysHUP
	err = errors.Join(err, v.setReload(&c, len(child) > 0))
	if !v.inCluster || v.kube.Kubeconfig != "" {
		c.Kube = v.kube
	}
	if !v.inCluster && c.Kube.Kubeconfig == "" && c.Kube.Server == "" {
		c.Kube.Kubeconfig = v.usualKubeconfig
	}
	return c, err
}

// setReload uses the URL whenever it is set; the original ignored it in subprocess mode.
func (v *values) setReload(c *run.Config, subprocess bool) error {
	c.App.HTTP.Method, c.App.HTTP.FollowOnHost, c.App.HTTP.Proxied = v.method, true, true
	if v.method == "" {
		c.App.HTTP.Method = http.MethodGet
	}
	if v.url == "" {
		if subprocess {
			c.App.Notify = []string{"signal:HUP"}
		}
		return nil
	}
	spec, ok := application.Request(v.url)
	c.App.Notify = []string{spec}
	if !ok {
		return errors.New("--reload-http: want http://host:port/path")
	}
	return nil
}

// parseConfigMap parses [NS/]NAME. Without a namespace it uses "default" and not the pod's
// own, because installed manifests rely on that.
func parseConfigMap(s string) (objectwatch.Selector, error) {
	if s == "" {
		return objectwatch.Selector{}, errors.New("--configmap is missing")
	}
	namespace, name, qualified := strings.Cut(s, "/")
	if !qualified {
		namespace, name = "default", s
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return objectwatch.Selector{}, fmt.Errorf("--configmap %q: want NAME or NAMESPACE/NAME", s)
	}
	return objectwatch.Selector{Kind: filemap.ConfigMap, Namespace: namespace, Name: name}, nil
}

// warnings warns users who left out the namespace and run in another one.
func (v *values) warnings(s objectwatch.Selector) []string {
	own := v.ownNamespace
	if own == s.Namespace || strings.Contains(v.configMap, "/") {
		return nil
	}
	return []string{fmt.Sprintf("--configmap %s means the namespace default, but this pod is in %s: use --configmap=%s/%s for that namespace",
		v.configMap, own, own, s.Name)}
}

// lessUmask applies the process's umask, which can only be read by setting it.
func lessUmask(mode fs.FileMode) fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return mode &^ fs.FileMode(mask) //nolint:gosec // a umask has nine bits
}
