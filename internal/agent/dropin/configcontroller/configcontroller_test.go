package configcontroller_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-dev/lockstep/internal/agent/dropin/configcontroller"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
)

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// summary is the part of a configuration that the original can say.
type summary struct {
	Source, Root, Method, Kubeconfig string
	Notify, Child                    []string
}

func summarize(c run.Config) summary {
	s := summary{Root: c.Volume.Root, Method: c.App.HTTP.Method, Kubeconfig: c.Kube.Kubeconfig, Notify: c.App.Notify, Child: c.Child.Args}
	if len(c.Selectors) > 0 {
		s.Source = c.Selectors[0].String()
	}
	return s
}

func TestParse(t *testing.T) {
	image := map[string]string{
		"CONFIG_CONTROLLER_CONFIGROOT": "/config", "CONFIG_CONTROLLER_CONFIGMAP": "", "CONFIG_CONTROLLER_URL": "", "CONFIG_CONTROLLER_METHOD": "POST",
	}
	for name, c := range map[string]struct {
		reason  string
		args    []string
		env     map[string]string
		want    summary
		wantErr string
	}{
		"sidecar of the documentation": {
			reason: "args work, which the original's image threw away",
			args:   []string{"--configroot=/mnt/config", "--configmap=production/prometheus", "--reload-http=http://localhost:9090/-/reload", "--reload-http-method=POST"},
			want:   summary{Source: "configmap/production/prometheus", Root: "/mnt/config", Method: "POST", Notify: []string{"http://localhost:9090/-/reload"}},
		},
		"subprocess of the documentation": {
			reason: "everything behind -- is the child's, flags included",
			args:   []string{"--configroot=/config", "--configmap=production/postgresql", "--", "/usr/lib/postgresql/9.3/bin/postgres", "-c", "config_file=/config/postgresql.conf"},
			want: summary{
				Source: "configmap/production/postgresql", Root: "/config", Method: "POST", Notify: []string{"signal:HUP"},
				Child: []string{"/usr/lib/postgresql/9.3/bin/postgres", "-c", "config_file=/config/postgresql.conf"},
			},
		},
		"environment of the image": {
			reason: "the four variables are enough",
			env:    map[string]string{"CONFIG_CONTROLLER_CONFIGROOT": "/config", "CONFIG_CONTROLLER_CONFIGMAP": "app", "CONFIG_CONTROLLER_URL": "http://localhost/reload", "CONFIG_CONTROLLER_METHOD": "PUT"},
			want:   summary{Source: "configmap/default/app", Root: "/config", Method: "PUT", Notify: []string{"http://localhost/reload"}},
		},
		"flag over variable": {
			reason: "an explicit flag wins", env: image,
			args: []string{"--configmap", "ns/app", "--reload-http", "https://localhost/x", "--configroot", "/with space"},
			want: summary{Source: "configmap/ns/app", Root: "/with space", Method: "POST", Notify: []string{"https://localhost/x"}},
		},
		"both ways of reloading": {
			reason: "the documentation says that a child may be reloaded by HTTP; the original ignored the URL",
			args:   []string{"--configmap=app", "--configroot=/c", "--reload-http=http://localhost/x", "--", "app"},
			want:   summary{Source: "configmap/default/app", Root: "/c", Method: "POST", Notify: []string{"http://localhost/x"}, Child: []string{"app"}},
		},
		"empty method": {
			reason: "was a GET", args: []string{"--configmap=app", "--configroot=/c", "--reload-http=http://localhost/x", "--reload-http-method="},
			want: summary{Source: "configmap/default/app", Root: "/c", Method: "GET", Notify: []string{"http://localhost/x"}},
		},
		"log flags": {
			reason: "flags of the old log library are taken and ignored",
			args:   []string{"--v=2", "-v", "3", "--logtostderr", "--stderrthreshold=2", "--vmodule=x=1", "--configmap=app", "--configroot=/c", "--", "app"},
			want:   summary{Source: "configmap/default/app", Root: "/c", Method: "POST", Notify: []string{"signal:HUP"}, Child: []string{"app"}},
		},
		"kubeconfig alone": {
			reason: "is enough; the original wanted --running-in-cluster=false as well",
			args:   []string{"--kubeconfig=/k", "--configmap=app", "--configroot=/c", "--", "app"},
			want:   summary{Source: "configmap/default/app", Root: "/c", Method: "POST", Kubeconfig: "/k", Notify: []string{"signal:HUP"}, Child: []string{"app"}},
		},
		"nothing behind the dashes": {reason: "was an index panic", args: []string{"--configmap=app", "--configroot=/c", "--"}, wantErr: "no command after --"},
		"nothing at all":            {reason: "every missing flag is named", wantErr: "--configmap is missing"},
		"no URL":                    {reason: "a sidecar has to have one", args: []string{"--configmap=app", "--configroot=/c"}, wantErr: "--reload-http is missing"},
		"no root":                   {reason: "there is no default without the image", args: []string{"--configmap=app", "--", "x"}, wantErr: "--configroot is missing"},
		"empty namespace":           {reason: "was accepted", args: []string{"--configmap=/app", "--configroot=/c", "--", "x"}, wantErr: "want NAME or NAMESPACE/NAME"},
		"empty name":                {reason: "was accepted", args: []string{"--configmap=ns/", "--configroot=/c", "--", "x"}, wantErr: "want NAME or NAMESPACE/NAME"},
		"two slashes":               {reason: "was fatal, and is", args: []string{"--configmap=a/b/c", "--configroot=/c", "--", "x"}, wantErr: "want NAME or NAMESPACE/NAME"},
		"unknown flag":              {reason: "a typing mistake must not be ignored", args: []string{"--configmpa=x"}, wantErr: "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configcontroller.Parse(c.args, env(c.env))
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("%s: error %v lacks %q", c.reason, err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("%s: the agent refuses it: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, summarize(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// The original read kubectl's client flags only with --running-in-cluster=false.
func TestClientFlags(t *testing.T) {
	flags := []string{
		"--server=https://k", "--token=t", "--username=u", "--password=p", "--certificate-authority=/ca", "--client-certificate=/cert", "--client-key=/key",
		"--insecure-skip-tls-verify", "--context=c", "--cluster=l", "--user=i", "--namespace=n",
	}
	all := run.Kube{
		Server: "https://k", Token: "t", Username: "u", Password: "p", CAFile: "/ca", CertFile: "/cert", KeyFile: "/key", Insecure: true, Context: "c",
		Overrides: clientcmdapi.Context{Cluster: "l", AuthInfo: "i", Namespace: "n"},
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want run.Kube
	}{
		"in a pod":       {args: flags},
		"outside":        {args: append([]string{"--running-in-cluster=false"}, flags...), want: all},
		"short":          {args: []string{"--running-in-cluster=false", "-s", "https://k"}, want: run.Kube{Server: "https://k"}},
		"usual file":     {args: []string{"--running-in-cluster=false"}, env: map[string]string{"HOME": "/h"}, want: run.Kube{Kubeconfig: "/h/.kube/config"}},
		"KUBECONFIG":     {args: []string{"--running-in-cluster=false"}, env: map[string]string{"HOME": "/h", "KUBECONFIG": "/k"}, want: run.Kube{Kubeconfig: "/k"}},
		"flag, not file": {args: []string{"--running-in-cluster=false", "--kubeconfig=/f"}, env: map[string]string{"KUBECONFIG": "/k"}, want: run.Kube{Kubeconfig: "/f"}},
	} {
		config, err := configcontroller.Parse(append(c.args, "--configmap=a/b", "--configroot=/c", "--reload-http=http://x/"), env(c.env))
		if diff := cmp.Diff(c.want, config.Kube); err != nil || diff != "" || config.Selectors[0].Namespace != "a" {
			t.Errorf("%s: %v, ConfigMap in %s (-want +got):\n%s", name, err, config.Selectors[0].Namespace, diff)
		}
	}
}

// Without a namespace it is default, whatever the pod's is. A warning says so.
func TestNamespaceIsDefault(t *testing.T) {
	for configMap, warned := range map[string]bool{"app": true, "shop/app": false, "default/app": false} {
		config, err := configcontroller.Parse([]string{"--configmap=" + configMap, "--configroot=/c", "--reload-http=http://x/"}, env(map[string]string{"POD_NAMESPACE": "shop"}))
		if err != nil {
			t.Fatal(err)
		}
		want := "configmap/" + configMap
		if warned {
			want = "configmap/default/app"
		}
		if got := config.Selectors[0].String(); got != want {
			t.Errorf("%s is %s, want %s", configMap, got, want)
		}
		if said := strings.Join(config.Warnings, ""); warned != strings.Contains(said, "use --configmap=shop/app for that namespace") || !warned && said != "" {
			t.Errorf("%s: warned %q", configMap, said)
		}
	}
}

// The original's fixed behaviour that installed manifests rely on.
func TestDefaults(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	c, err := configcontroller.Parse([]string{"--configmap=app", "--configroot=/c", "--reload-http=http://x/"}, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.Volume.FileMode != 0o640 || c.Volume.DirMode != 0o750 {
		t.Errorf("modes %o and %o, want 0666 and 0777 less the umask", c.Volume.FileMode, c.Volume.DirMode)
	}
	if c.Sync.Timing.MinInterval != 10*time.Second || c.Sync.Timing.Quiet != 0 {
		t.Errorf("timing %+v", c.Sync.Timing)
	}
	if c.Sync.InitialNotify != podsync.NotifyAlways || c.Health.Value != "" || c.Sync.WaitForSources {
		t.Errorf("initial notify %q, health address %q, waits %v", c.Sync.InitialNotify, c.Health.Value, c.Sync.WaitForSources)
	}
	if !c.Sync.FailFast || !c.App.HTTP.FollowOnHost || c.Child.AnySignal {
		t.Errorf("fails fast %v, follows redirects %v, sends any signal %v", c.Sync.FailFast, c.App.HTTP.FollowOnHost, c.Child.AnySignal)
	}
	if !c.Volume.Overwrite {
		t.Error("files of the original are not taken over")
	}
}

// The URL reaches the application as it was written, in the flag and in the variable. Blanks are
// escaped, as the original's client did in a path.
func TestTheURLArrivesAsItWas(t *testing.T) {
	var uri string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { uri = r.Method + " " + r.RequestURI }))
	defer server.Close()
	for name, c := range map[string]struct{ path, want string }{
		"plain":         {"/-/reload?a=b&c", "/-/reload?a=b&c"},
		"quotes":        {"/?q='a'", "/?q='a'"},
		"double quotes": {`/?q="a"`, `/?q="a"`},
		"one quote":     {"/it's", "/it's"},
		"a backslash":   {`/?q=\d`, `/?q=\d`},
		"blanks":        {"/a b?q=c method=PUT", "/a%20b?q=c%20method=PUT"},
	} {
		url := strings.Replace(server.URL, "http", "HTTP", 1) + c.path
		for given, parse := range map[string]func() (run.Config, error){
			"flag": func() (run.Config, error) {
				return configcontroller.Parse([]string{"--configmap=app", "--configroot=/c", "--reload-http=" + url}, env(nil))
			},
			// A Secret's value often ends with a line break, which the original's script cut off.
			"variable": func() (run.Config, error) {
				return configcontroller.Parse([]string{"--configmap=app", "--configroot=/c"}, env(map[string]string{"CONFIG_CONTROLLER_URL": url + "\n"}))
			},
		} {
			config, err := parse()
			if err != nil {
				t.Errorf("%s, %s: %v", name, given, err)
				continue
			}
			if err := notify(t, config); err != nil || uri != "POST "+c.want {
				t.Errorf("%s, %s: the server was asked for %s, want POST %s (%v)", name, given, uri, c.want, err)
			}
		}
	}
}

// notify sends the only notification of a configuration.
func notify(t *testing.T, config run.Config) error {
	t.Helper()
	if err := config.Validate(); err != nil {
		return err
	}
	spec, h := config.App.Notify[0], application.HTTP{First: config.App.HTTP}
	h.First.URL = application.Address(spec)
	notifier, err := application.NewNotifier(spec, application.Settings{HTTP: h})
	if err != nil {
		return err
	}
	_, err = notifier.Notify(t.Context(), podsync.Delivery{})
	return err
}

func FuzzParse(f *testing.F) {
	f.Add("--configmap=a/b --configroot=/c -- x", "POST")
	f.Add("-v 2 --", "")
	f.Fuzz(func(t *testing.T, line, method string) {
		c, err := configcontroller.Parse(strings.Fields(line), env(map[string]string{"CONFIG_CONTROLLER_METHOD": method}))
		if err == nil && (len(c.Selectors) != 1 || c.Volume.Root == "" || len(c.App.Notify) != 1) {
			t.Errorf("%q became %+v", line, summarize(c))
		}
	})
}

// The directory is the image's default, not the program's.
func TestParseImage(t *testing.T) {
	vars := map[string]string{"CONFIG_CONTROLLER_CONFIGMAP": "app", "CONFIG_CONTROLLER_URL": "http://localhost/"}
	for name, c := range map[string]struct {
		reason, flag, variable, want string
	}{
		"default":  {reason: "nothing is said", want: "/config"},
		"variable": {reason: "a variable wins", variable: "/v", want: "/v"},
		"flag":     {reason: "a flag wins over both", variable: "/v", flag: "/f", want: "/f"},
	} {
		t.Run(name, func(t *testing.T) {
			all := maps.Clone(vars)
			var args []string
			if c.variable != "" {
				all["CONFIG_CONTROLLER_CONFIGROOT"] = c.variable
			}
			if c.flag != "" {
				args = []string{"--configroot=" + c.flag}
			}
			if config, err := configcontroller.ParseImage(args, env(all)); err != nil || config.Volume.Root != c.want {
				t.Errorf("%s: root %q, error %v", c.reason, config.Volume.Root, err)
			}
		})
	}
	if _, err := configcontroller.Parse(nil, env(vars)); err == nil || !strings.Contains(err.Error(), "--configroot is missing") {
		t.Errorf("the program itself: error %v", err)
	}
}
