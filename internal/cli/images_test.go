package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// TestWebhookFlags: an endpoint that anyone could use is not opened, and no secret is
// quoted.
func TestWebhookFlags(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"no secret":       {[]string{"--images", "--image-webhook-addr", ":0"}, "needs --image-webhook-secret-file"},
		"no address":      {[]string{"--images", "--image-webhook-secret-file", short}, "needs --image-webhook-addr"},
		"no images":       {[]string{"--image-webhook-addr", ":0", "--image-webhook-secret-file", short}, "needs --images"},
		"a short secret":  {[]string{"--images", "--image-webhook-addr", ":0", "--image-webhook-secret-file", short}, "shorter than 16 characters"},
		"no such file":    {[]string{"--images", "--image-webhook-addr", ":0", "--image-webhook-secret-file", short + "er"}, "no such file"},
		"an empty secret": {[]string{"--images", "--image-webhook-addr", ":0", "--image-webhook-secret-file", os.DevNull}, "it does not contain a secret"},
	} {
		var stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"controller"}, c.flags...), Environment{Stdout: &stderr, Stderr: &stderr, Lookup: variables(nil)})
		if code != exitUsage || !strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "hunter2") {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
	}
}

// TestCredentialNamespaces: credentials without a file or with one that doesn't exist, and what is no
// namespace.
func TestCredentialNamespaces(t *testing.T) {
	t.Parallel()
	for says, flags := range map[string][]string{
		"--docker-config-namespaces: needs --docker-config": {"--images", "--docker-config-namespaces", "shop"},
		`--docker-config-namespaces "shop_1"`:               {"--images", "--docker-config", "a", "--docker-config-namespaces", "*,shop_1"},
		"--docker-config: stat /no/such: no such file":      {"--images", "--docker-config", "/no/such", "--docker-config-namespaces", "*", "--image-interval=0s"}, // the interval is wrong too, so that no controller starts
		`--cloud-identity-namespaces "sh*"`:                 {"--images", "--cloud-identity-namespaces", "sh*"},
	} {
		var stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"controller"}, flags...), Environment{Stdout: &stderr, Stderr: &stderr, Lookup: variables(nil)})
		if code != exitUsage || !strings.Contains(stderr.String(), says) {
			t.Errorf("%v: exit code %d, %s; want %q", flags, code, &stderr, says)
		}
	}
}

// TestScheduleOfAnother: an address that is no controller's is an error, and not an empty
// column.
func TestScheduleOfAnother(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for address, says := range map[string]string{
		other.URL:             "needs --images",
		"127.0.0.1:8080":      "want the address of its metrics",
		"http://127.0.0.1:1/": "query the controller",
	} {
		if _, err := readSchedule(t.Context(), address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
	if known, err := readSchedule(t.Context(), ""); err != nil || len(known) > 0 {
		t.Errorf("without an address: %v, %v", known, err)
	}
}

// TestRefusedImages: an image that the controller doesn't check is unresolved, and the row says why.
func TestRefusedImages(t *testing.T) {
	t.Parallel()
	key := kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]images.NextCheck{{Workload: key.ID(), Container: "web", Refused: "r.example is not asked"}})
	}))
	t.Cleanup(controller.Close)
	checks, err := readSchedule(t.Context(), controller.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &kube.Workload{
		Identity:    kube.Identity{Key: key, Kind: kube.Deployment()},
		PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "r.example/web:1"}}},
	}
	row := (&imagesLook{schedule: checks}).row(t.Context(), w, settings.Intent{}, settings.ImageRequest{Container: "web"})
	if row.State != "Unresolved" || row.Problem != "r.example is not asked" || row.NextCheck != nil {
		t.Errorf("%+v", row)
	}
}

// TestReadAnnotationsFlag: what cannot be read is refused by every command that has the
// flag, with what can be, and a controller that follows no images reads no requests for them.
func TestReadAnnotationsFlag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"controller":    {[]string{"controller", "--images", "--read-annotations", "kube-image-deployer,keel"}, `"keel": unknown tool; want some of kube-image-deployer and stakater`},
		"images":        {[]string{"images", "--read-annotations", "kubeimagedeployer"}, "want some of kube-image-deployer and stakater"},
		"roll":          {[]string{"roll", "deployment/web", "-n", "shop", "--read-annotations", "keel"}, "want some of kube-image-deployer and stakater"},
		"near":          {[]string{"lint", "--read-annotations", "staketer", "-"}, "did you mean stakater?"},
		"no reload":     {[]string{"controller", "--images", "--reload=false", "--read-annotations", "stakater"}, "--read-annotations=stakater: needs --reload"},
		"without them":  {[]string{"controller", "--read-annotations", "kube-image-deployer"}, "--read-annotations=kube-image-deployer: needs --images"},
		"bad default":   {[]string{"controller", "--images", "--image-default-platform", "arm"}, `--image-default-platform: platform "arm": want os/architecture`},
		"bad for roll":  {[]string{"roll", "deployment/web", "-n", "shop", "--image-default-platform", "arm"}, "--image-default-platform"},
		"no images":     {[]string{"controller", "--image-default-platform", "linux/amd64"}, "--image-default-platform: needs --images"},
		"bad platforms": {[]string{"controller", "--images", "--image-platforms", "arm"}, "--image-platforms"},
	} {
		var stderr bytes.Buffer
		code := Run(t.Context(), c.args, Environment{Stdout: &stderr, Stderr: &stderr, Lookup: variables(nil)})
		if code != exitUsage || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
	}
	words, err := (&readOptions{tools: []string{"kube-image-deployer", "kube-image-deployer"}}).words(settings.Defaults{})
	if err != nil || len(words.Others) != 1 || len(words.Reads) > 0 {
		t.Errorf("named twice, it is read as %+v: %v", words, err)
	}
}
