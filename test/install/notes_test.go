package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// notes are what Helm prints after an installation with the values.
func notes(t *testing.T, values string) string {
	t.Helper()
	h := helmtest.New(t, "")
	file := helmtest.ValuesFile(t, "image: {repository: registry.example/lockstep}\n"+values)
	_, text, found := strings.Cut(h.Run(t, "install", "lockstep", h.Chart("lockstep"), "-n", "own", "--dry-run=client", "-f", file), "\nNOTES:\n")
	if !found {
		t.Fatal("Helm prints no notes")
	}
	return text
}

// TestNotes: what Helm prints after an installation is about what is switched on.
func TestNotes(t *testing.T) {
	t.Parallel()
	const (
		example = "kubectl -n shop apply -f examples/workload.yaml"
		reload  = "kubectl -n NAMESPACE annotate deployment NAME lockstep.dev/reload=auto"
		images  = "kubectl -n NAMESPACE annotate deployment NAME 'image.lockstep.dev/CONTAINER=registry.example/web:^1'"
		webhook = "http://lockstep-webhook.own.svc:9000/generic"
		cloud   = "list the namespaces that can use it: images.cloudIdentityNamespaces"
		idle    = "every feature is off"
	)
	for name, c := range map[string]struct {
		values string
		want   []string
		not    []string
	}{
		"default":    {"", []string{"kubectl -n own rollout status deployment/lockstep", example, reload, "why it rolled out", "explain deployment/web -n shop --controller-namespace own"}, []string{images, "-webhook", "observes", "It follows", "the labels", "revisioned", idle}},
		"namespaces": {"namespaces: [blog, shop]\nimages: {enabled: true}", []string{"It follows the namespaces blog, shop.", example, images}, []string{"-n blog", "sed"}},
		"elsewhere":  {"namespaces: [cart, blog]", []string{"sed 's/shop/cart/' examples/workload.yaml | kubectl -n cart apply", "explain deployment/web -n cart"}, []string{example, "-n shop"}},
		"selector":   {"namespaceSelector: team=shop", []string{"with the labels team=shop", "Label the namespace shop", example}, nil},
		"observe":    {"observe: true\nimages: {enabled: true}\nrevisions: {enabled: true}", []string{"It only observes", "observe=false", "what Lockstep would do", "would run", "would be attached"}, []string{"why it rolled out", "Let a container run", "are attached"}},
		"auto":       {"reload: {auto: true}", []string{example}, []string{reload}},
		"images":     {"reload: {enabled: false}\nimages: {enabled: true}", []string{"Let a container run", images, cloud}, []string{example, reload, "-webhook"}},
		"webhook":    {"images: {enabled: true, webhook: {enabled: true, secretName: a, port: 9000}}", []string{webhook}, nil},
		"cloud":      {"images: {enabled: true, cloudIdentityNamespaces: [shop]}", []string{images}, []string{cloud}},
		"revisions":  {"revisions: {enabled: true}", []string{"ConfigMaps with the label lockstep.dev/revisioned=true are attached"}, []string{"Secrets"}},
		"secrets":    {"revisions: {enabled: true, secretNamespaces: [shop]}", []string{"ConfigMaps, and Secrets in shop, with the label"}, nil},
		"none":       {"reload: {enabled: false}", []string{"WARNING: " + idle}, []string{"Try it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := notes(t, c.values)
			for _, text := range c.want {
				if !strings.Contains(notes, text) {
					t.Errorf("want %q in\n%s", text, notes)
				}
			}
			for _, text := range c.not {
				if strings.Contains(notes, text) {
					t.Errorf("want no %q in\n%s", text, notes)
				}
			}
		})
	}
}

// TestNotesCanBeFollowed: who pastes the example of the notes into a shell, for a namespace of
// their own, has a Deployment that asks to be followed and a ConfigMap that has changed.
func TestNotesCanBeFollowed(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	namespace := labtest.Namespace(t, cluster)
	_, example, _ := strings.Cut(notes(t, "namespaces: ["+namespace+"]"), "    sed ")
	example, _, found := strings.Cut("sed "+example, "\n\n")
	if !found || !strings.Contains(example, "lockstep explain") {
		t.Fatalf("the notes have no example: %s", example)
	}
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, path := range map[string]string{"lockstep": labtest.Binary(t, "./cmd/lockstep"), "kubectl": kubectlPath(t)} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	// No controller runs here for which to wait.
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
		Path: "/bin/bash", Args: []string{"-ec", "sleep() { :; }\n" + example}, Dir: root,
		Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + cluster.Kubeconfig()},
	})
	if code != 0 || !strings.Contains(stdout, "configmap/web-settings patched") || !strings.Contains(stdout, "lockstep.dev/reload: auto (on the workload)") {
		t.Errorf("it ended with %d: %s%s", code, stdout, stderr)
	}
}
