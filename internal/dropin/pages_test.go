package compat_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Each page for users of another program names the oldest Kubernetes, the image that
// has the program's entry point or that there is no drop-in, and what is not the same.
func TestMigratePages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/migrate/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("pages %v (%v)", pages, err)
	}
	own := map[string][]string{
		"kubernetes-reloader.md":   {"`http_request_duration_seconds`"},
		"configmap-attacher.md":    {"`JOB_NAME`", "plain owners", "`debug` prints what each ConfigMap waits for"},
		"k8s-config-controller.md": {"--install", "KUBECONFIG"},
		"kube-image-deployer.md":   {"`.env`", "no lease", "not in AWS"},
		"image-tools.md":           {"**not run beside Lockstep**"},
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text, name := string(raw), filepath.Base(page)
		if name == "README.md" { // the list of the pages
			continue
		}
		if !regexp.MustCompile(`Kubernetes 1\.\d+ or later|any Kubernetes will do`).MatchString(text) {
			t.Errorf("%s does not name the oldest Kubernetes", name)
		}
		if !regexp.MustCompile(`/lockstep-[a-z0-9-]+:`).MatchString(text) && !strings.Contains(text, "ENTRYPOINT [") && !strings.Contains(text, "There is no drop-in") {
			t.Errorf("%s names no image with the program's entry point", name)
		}
		for _, words := range own[name] {
			if !strings.Contains(text, words) {
				t.Errorf("%s does not tell of %s", name, words)
			}
		}
	}
}

// What the page for users of other image tools tells people to write can be read, and
// means what it says.
func TestSpecsOfThePages(t *testing.T) {
	raw, err := os.ReadFile("../../docs/migrate/image-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	specs := regexp.MustCompile("/web:([^ `…\n][^`…\n]*)`").FindAllStringSubmatch(string(raw), -1)
	if len(specs) < 12 {
		t.Fatalf("only %d specs", len(specs))
	}
	for _, found := range specs {
		if _, err := tagspec.Parse(found[1]); err != nil {
			t.Errorf("%s: %v", found[1], err)
		}
	}
	for spec, want := range map[string]string{
		">=0": "2.0.0", "^1.4.2": "1.10.0", "~1.4.2": "1.4.9", "/v(?P<n>\\d+)/": "v10", "build-*": "build-10",
		"/1\\.4\\.(?P<n>\\d+)-prod/": "1.4.10-prod", "/main-[a-f0-9]+-(?P<ts>\\d+)/": "main-aa-100", ">=1.4.0 <2.0.0": "1.10.0",
	} {
		if !strings.Contains(string(raw), spec) {
			t.Errorf("the page does not have %s", spec)
		}
		s, err := tagspec.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		tags := strings.Fields("1.4.1 1.4.9 1.10.0 1.9.0 2.0.0 2.1.0-rc1 v9 v10 build-9 build-10 1.4.9-prod 1.4.10-prod main-ff-99 main-aa-100")
		if got, _ := s.Choose(tags); got != want {
			t.Errorf("%s is %s, want %s", spec, got, want)
		}
	}
}
