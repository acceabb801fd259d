package compat_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each page for users of another program names the oldest Kubernetes, the image that
// has the program's entry point, and what is not the same.
func TestMigratePages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/migrate/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("pages %v (%v)", pages, err)
	}
	own := map[string][]string{
		"kubernetes-reloader.md":   {"`http_request_duration_seconds`"},
		"configmap-attacher.md":    {"`JOB_NAME`", "plain owners", "`debug` prints what each ConfigMap waits for"},
		"k8s-config-controller.md": {"--install", "KUBECONFIG"},
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text, name := string(raw), filepath.Base(page)
		if !regexp.MustCompile(`Kubernetes 1\.\d+ or later|any Kubernetes will do`).MatchString(text) {
			t.Errorf("%s does not name the oldest Kubernetes", name)
		}
		if !regexp.MustCompile(`/lockstep-[a-z0-9-]+:`).MatchString(text) && !strings.Contains(text, "ENTRYPOINT [") {
			t.Errorf("%s names no image with the program's entry point", name)
		}
		for _, words := range own[name] {
			if !strings.Contains(text, words) {
				t.Errorf("%s does not tell of %s", name, words)
			}
		}
	}
}
