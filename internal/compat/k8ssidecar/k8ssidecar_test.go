package k8ssidecar_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/compat/k8ssidecar"
	"github.com/lockstep-dev/lockstep/internal/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/syncrun"
)

func parse(vars map[string]string) (syncrun.Config, error) {
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
	if diff := cmp.Diff([]string{"http://localhost:3000/reload", `exec:'/it'\''s.sh'`}, c.App.Notify); diff != "" {
		t.Error(diff)
	}
	h := c.App.HTTP
	if h.Method != http.MethodPost || h.Body != `{"a":1}` || h.UsernameFile != "/u" || h.Password != "p" || h.Timeout != 2500*time.Millisecond {
		t.Errorf("request %+v", h)
	}
	if !c.Sync.Once || c.HealthAddr != "" || c.Sync.InitialNotify != podsync.NotifyNever {
		t.Errorf("METHOD=LIST: %+v", c.Sync)
	}
	if c.Volume.FileMode != 0o440 || c.Sync.Rules.Collision != filemap.Prefix || c.SubdirAnnotation != "k8s-sidecar-target-directory" {
		t.Errorf("files %+v %+v", c.Volume, c.Sync.Rules)
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
	if len(read) < 20 {
		t.Fatalf("only %d variables were found", len(read))
	}
	for _, name := range read {
		if !regexp.MustCompile(`\b` + string(name[1]) + `\b`).MatchString(k8ssidecar.Usage()) {
			t.Errorf("the usage does not name %s", name[1])
		}
	}
}
