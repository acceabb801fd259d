package install

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// TestNotes: what Helm prints after an installation is about what is switched on, and can be
// pasted into a shell.
func TestNotes(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	const (
		reload  = "annotate deployment web lockstep.dev/reload=auto"
		images  = "annotate deployment web 'image.lockstep.dev/web=registry.example/web:^1'"
		webhook = "http://lockstep-webhook.own.svc:9000/generic"
		idle    = "every capability is switched off"
	)
	for name, c := range map[string]struct {
		values string
		want   []string
		not    []string
	}{
		"default":    {"", []string{"kubectl -n own rollout status deployment/lockstep", "kubectl -n shop " + reload, "why it was rolled", "explain deployment/web -n shop --own-namespace own"}, []string{images, "-webhook", "observes", "It follows", "revisioned", idle}},
		"namespaces": {"namespaces: [blog, shop]\nimages: {enabled: true}", []string{"It follows the namespaces blog, shop.", "kubectl -n blog " + reload, "kubectl -n blog " + images}, []string{"-n shop"}},
		"selector":   {"namespaceSelector: team=shop", []string{"with the labels team=shop"}, nil},
		"observe":    {"observe: true\nimages: {enabled: true}\nrevisions: {enabled: true}", []string{"It only observes", "observe=false", "what Lockstep would do", "would run", "would be attached"}, []string{"why it was rolled", "Let a container run", "are attached"}},
		"auto":       {"reload: {auto: true}", []string{"change a ConfigMap of a Deployment"}, []string{reload}},
		"images":     {"reload: {enabled: false}\nimages: {enabled: true}", []string{"Let a container run", "kubectl -n shop " + images}, []string{reload, "-webhook"}},
		"webhook":    {"images: {enabled: true, webhook: {enabled: true, secretName: a, port: 9000}}", []string{webhook}, nil},
		"revisions":  {"revisions: {enabled: true}", []string{"ConfigMaps with the label lockstep.dev/revisioned=true are attached"}, []string{"Secrets"}},
		"secrets":    {"revisions: {enabled: true, secretNamespaces: [shop]}", []string{"ConfigMaps, and Secrets in shop, with the label"}, nil},
		"none":       {"reload: {enabled: false}", []string{"WARNING: " + idle}, []string{"Try it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := helmtest.ValuesFile(t, "image: {repository: registry.example/lockstep}\n"+c.values)
			_, notes, found := strings.Cut(h.Run(t, "install", "lockstep", h.Chart("lockstep"), "-n", "own", "--dry-run=client", "-f", values), "\nNOTES:\n")
			if !found {
				t.Fatal("Helm prints no notes")
			}
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
