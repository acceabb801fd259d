package k8ssidecar_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/dropin/k8ssidecar"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

func parse(vars map[string]string) (run.Config, error) {
	return k8ssidecar.Parse(nil, func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	})
}

func TestSources(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		env     map[string]string
		want    []string
		wantErr string
	}{
		"label": {reason: "any value of the label", env: map[string]string{"LABEL": "grafana_dashboard", "NAMESPACE": "a"}, want: []string{"configmap/a/[grafana_dashboard]"}},
		"label and value": {
			reason: "one value", env: map[string]string{"LABEL": "x", "LABEL_VALUE": "1", "NAMESPACE": "a", "RESOURCE": "secret"},
			want: []string{"secret/a/[x=1]"},
		},
		"both kinds in two namespaces": {
			reason: "each is a source of its own", env: map[string]string{"LABEL": "x", "NAMESPACE": "a, b", "RESOURCE": "both"},
			want: []string{"configmap/a/[x]", "secret/a/[x]", "configmap/b/[x]", "secret/b/[x]"},
		},
		"all namespaces": {reason: "ALL is a word of its own", env: map[string]string{"LABEL": "x", "NAMESPACE": "ALL"}, want: []string{"configmap/*/[x]"}},
		"own namespace":  {reason: "the downward API tells where there is no service account", env: map[string]string{"LABEL": "x", "POD_NAMESPACE": "own"}, want: []string{"configmap/own/[x]"}},
		"by name": {
			reason: "names are watched, not polled", env: map[string]string{"RESOURCE_NAME": "configmap/one,two", "NAMESPACE": "a"},
			want: []string{"configmap/a/one", "configmap/a/two"},
		},
		"by name, kind and namespace": {
			reason: "a name that says more is looked for only there",
			env:    map[string]string{"RESOURCE_NAME": "secret/one,b/configmap/two,three", "NAMESPACE": "a,b", "RESOURCE": "both"},
			want: []string{
				"configmap/a/three", "secret/a/one", "secret/a/three",
				"configmap/b/two", "configmap/b/three", "secret/b/one", "secret/b/three",
			},
		},
		"all namespaces by name": {
			reason: "as there, the label decides when no namespace is known",
			env:    map[string]string{"LABEL": "x", "RESOURCE_NAME": "one", "NAMESPACE": "ALL"}, want: []string{"configmap/*/[x]"},
		},
		"all namespaces by name alone": {
			reason: "there is nothing to go by", env: map[string]string{"RESOURCE_NAME": "one", "NAMESPACE": "ALL"}, wantErr: "LABEL is missing",
		},
		"nothing":      {reason: "the label is needed", env: map[string]string{"NAMESPACE": "a"}, wantErr: "LABEL is missing"},
		"unknown kind": {reason: "a typing mistake must not be ignored", env: map[string]string{"LABEL": "x", "RESOURCE": "pod"}, wantErr: `RESOURCE "pod"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.env["FOLDER"] = "/f"
			config, err := parse(c.env)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("%s: error %v", c.reason, err)
				}
				return
			}
			var got []string
			for _, s := range config.Selectors {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", c.reason, err, diff)
			}
			if err := config.Validate(); err != nil {
				t.Errorf("%s: the agent refuses it: %v", c.reason, err)
			}
		})
	}
}

func TestRequestAndFiles(t *testing.T) {
	c, err := parse(map[string]string{
		"LABEL": "x", "FOLDER": "/f", "REQ_URL": "http://localhost:3000/reload", "REQ_METHOD": "POST", "REQ_PAYLOAD": `{"a":1}`,
		"REQ_USERNAME_FILE": "/u", "REQ_PASSWORD": "p", "REQ_TIMEOUT": "2.5", "REQ_SKIP_INIT": "true", "SCRIPT": "/it's.sh",
		"UNIQUE_FILENAMES": "true", "DEFAULT_FILE_MODE": "440", "METHOD": "LIST", "NAMESPACE": "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`attempt:'/it'\''s.sh'`, "http://localhost:3000/reload"}, c.App.Notify); diff != "" {
		t.Error(diff)
	}
	h := c.App.HTTP
	if h.Method != http.MethodPost || h.Body != `{"a":1}` || h.Credentials.UsernameFile != "/u" || h.Credentials.Password != "p" || h.Timeout != 2500*time.Millisecond {
		t.Errorf("request %+v", h)
	}
	if !c.Sync.Once || c.Health.Value != "" || c.Sync.InitialNotify != podsync.NotifyNever {
		t.Errorf("METHOD=LIST: %+v", c.Sync)
	}
	if c.Volume.FileMode != 0o440 || c.Sync.Rules.Collision != filemap.Prefix || c.SubdirAnnotation != "k8s-sidecar-target-directory" {
		t.Errorf("files %+v %+v", c.Volume, c.Sync.Rules)
	}
}

// The URL arrives as it was written, whatever a command line would make of it, and
// with the credentials that were given for it.
func TestTheURLArrivesAsItWas(t *testing.T) {
	var uri, user string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		uri = r.RequestURI
		user, _, _ = r.BasicAuth()
	}))
	defer server.Close()
	for name, c := range map[string]struct{ path, want string }{
		"plain":             {"/reload?a=b&c", "/reload?a=b&c"},
		"quotes":            {"/?q='a'", "/?q='a'"},
		"double quotes":     {`/?q="a"`, `/?q="a"`},
		"one quote":         {"/it's", "/it's"},
		"a backslash":       {`/?q=\d`, `/?q=\d`},
		"blank, as encoded": {"/a b?q=c method=PUT", "/a%20b?q=c%20method=PUT"},
		"blanks around":     {"/reload \n", "/reload"},
	} {
		config, err := parse(map[string]string{
			"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a", "REQ_URL": strings.Replace(server.URL, "http", "HTTP", 1) + c.path, "REQ_USERNAME": "u", "REQ_PASSWORD": "p",
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec, h := config.App.Notify[0], application.HTTP{First: config.App.HTTP}
		h.First.URL = application.Address(spec)
		notifier, err := application.NewNotifier(spec, application.Settings{HTTP: h})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := notifier.Notify(t.Context(), podsync.Delivery{}); err != nil || uri != c.want || user != "u" {
			t.Errorf("%s: the server was asked for %s by %q, want %s (%v)", name, uri, user, c.want, err)
		}
	}
}

// Only a request can be meant by REQ_URL: no word of ours in it runs a program.
func TestOnlyAURLIsARequest(t *testing.T) {
	for _, url := range []string{"exec:touch /tmp/x", "signal:HUP", "restart", "user:pw@localhost/reload"} {
		_, err := parse(map[string]string{"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a", "REQ_URL": url})
		if err == nil || !strings.Contains(err.Error(), "REQ_URL") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

// A key that names a URL was fetched with the reload's own password.
func TestURLKeysAreLeftOut(t *testing.T) {
	c, err := parse(map[string]string{"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a"})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := filemap.Plan([]filemap.Object{{Entries: []filemap.Entry{{Key: "evil.url"}, {Key: "good.json"}}}}, c.Sync.Rules)
	if err != nil || len(tree.Files) != 1 || tree.Files[0].Path != "good.json" {
		t.Errorf("files %+v (%v)", tree.Files, err)
	}
}

// The usage names every variable that is read.
func TestUsage(t *testing.T) {
	source, err := os.ReadFile("k8ssidecar.go")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`e\.(?:get|flag|list)\("([A-Z_]+)"`).FindAllSubmatch(source, -1)
	if len(read) < 25 {
		t.Fatalf("only %d variables were found", len(read))
	}
	for _, name := range read {
		if !regexp.MustCompile(`\b` + string(name[1]) + `\b`).MatchString(k8ssidecar.Usage()) {
			t.Errorf("the usage does not name %s", name[1])
		}
	}
}

func TestPayload(t *testing.T) {
	for name, c := range map[string]struct {
		reason, method, payload, want string
	}{
		"JSON":       {"it is sent as it is", "POST", `{"a": 1}`, `{"a": 1}`},
		"other text": {"it becomes a JSON string", "POST", `a "b"`, `"a \"b\""`},
		"GET":        {"a GET has no body", "GET", `{"a": 1}`, ""},
	} {
		config, err := parse(map[string]string{"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a", "REQ_URL": "http://h/", "REQ_METHOD": c.method, "REQ_PAYLOAD": c.payload})
		if err != nil || config.App.HTTP.Body != c.want {
			t.Errorf("%s: %s: body %q (%v)", name, c.reason, config.App.HTTP.Body, err)
		}
	}
}

func TestLogAndFlags(t *testing.T) {
	env := map[string]string{"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a", "REQ_USERNAME_FILE": "/ignored"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	c, err := k8ssidecar.Parse([]string{"--req-username-file=/u", "--req-password-file", "/p"}, lookup)
	if err != nil || c.App.HTTP.Credentials.UsernameFile != "/u" || c.App.HTTP.Credentials.PasswordFile != "/p" {
		t.Errorf("files %q %q (%v)", c.App.HTTP.Credentials.UsernameFile, c.App.HTTP.Credentials.PasswordFile, err)
	}
	if c.Log.Format != "json" || c.Log.Level != slog.LevelInfo || !c.HealthOptional || c.Health.Value != ":8080" {
		t.Errorf("log %+v, health %q, optional %v", c.Log, c.Health.Value, c.HealthOptional)
	}
	env["LOG_LEVEL"], env["LOG_FORMAT"], env["LOG_TZ"], env["HEALTH_PORT"] = "debug", "LOGFMT", "UTC", "9000"
	c, err = k8ssidecar.Parse(nil, lookup)
	if err != nil || c.Log != (run.Log{Format: "text", Level: slog.LevelDebug, UTC: true}) || c.HealthOptional || c.Health != (listener.Address{Value: ":9000", Setting: "HEALTH_PORT"}) {
		t.Errorf("log %+v, health %q, optional %v (%v)", c.Log, c.Health.Value, c.HealthOptional, err)
	}
	for name, value := range map[string]string{"LOG_LEVEL": "LOUD", "LOG_FORMAT": "XML", "LOG_CONFIG": "/log.yaml", "REQ_METHOD": "PUT"} {
		_, err := parse(map[string]string{"LABEL": "x", "FOLDER": "/f", "NAMESPACE": "a", name: value})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: error %v", name, value, err)
		}
	}
}

// originals are the variables and flags of k8s-sidecar 2.x, from its README.
var originals = []string{
	"--req-username-file", "--req-password-file",
	"LABEL", "LABEL_VALUE", "FOLDER", "FOLDER_ANNOTATION", "NAMESPACE", "RESOURCE", "RESOURCE_NAME", "METHOD", "SLEEP_TIME", "REQ_URL", "REQ_METHOD",
	"REQ_PAYLOAD", "REQ_RETRY_TOTAL", "REQ_RETRY_CONNECT", "REQ_RETRY_READ", "REQ_RETRY_BACKOFF_FACTOR", "REQ_TIMEOUT", "REQ_USERNAME", "REQ_PASSWORD",
	"REQ_BASIC_AUTH_ENCODING", "SCRIPT", "ERROR_THROTTLE_SLEEP", "SKIP_TLS_VERIFY", "REQ_SKIP_TLS_VERIFY", "UNIQUE_FILENAMES", "DEFAULT_FILE_MODE",
	"KUBECONFIG", "ENABLE_5XX", "WATCH_SERVER_TIMEOUT", "WATCH_CLIENT_TIMEOUT", "IGNORE_ALREADY_PROCESSED", "LOG_LEVEL", "LOG_FORMAT", "LOG_TZ",
	"LOG_CONFIG", "HEALTH_PORT", "REQ_SKIP_INIT", "DISABLE_X509_STRICT_VERIFICATION",
}

// The page and the usage have a row for each variable and flag of the original.
func TestThePageHasARowForEverything(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/migrate/k8s-sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range originals {
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + regexp.QuoteMeta(name) + "`[^|]*\\| [^|]+ \\|$")
		if !row.Match(page) {
			t.Errorf("docs/migrate/k8s-sidecar.md has no row for %s", name)
		}
		if !strings.Contains(k8ssidecar.Usage(), name) {
			t.Errorf("the usage does not name %s", name)
		}
	}
}
