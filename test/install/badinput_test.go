package install

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// TestBadValues: whoever misspells a value, or sets two that exclude each other, reads its name
// and the way out.
func TestBadValues(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	const image = "image: {repository: registry.example/lockstep}\n"
	for name, c := range map[string]struct {
		values string
		texts  []string
	}{
		"no image":           {"{}", []string{"image.repository is empty", "make push IMAGE="}},
		"tag in repository":  {"image: {repository: registry.example:5000/lockstep:v1}", []string{"image.repository", "image.tag"}},
		"digest in it":       {"image: {repository: registry.example/lockstep@sha256:00}", []string{"image.repository", "image.digest"}},
		"unknown":            {image + "replica: 2", []string{"replica"}},
		"unknown below":      {image + "images: {pullSecret: [a]}", []string{"images", "pullSecret"}},
		"unknown in a list":  {image + "kinds: [{kind: example.com/v1/Worker=spec.template, plural: workers}]", []string{"kinds", "plural"}},
		"not a duration":     {image + "quiet: soon", []string{"quiet"}},
		"not a namespace":    {image + "namespaces: [Shop]", []string{"namespaces"}},
		"two scopes":         {image + "namespaces: [shop]\nnamespaceSelector: team=shop", []string{"namespaces and namespaceSelector exclude each other", "leave the other one empty"}},
		"two budgets":        {image + "podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}", []string{"podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other", "set one"}},
		"two monitors":       {image + "podMonitor: {enabled: true}\nserviceMonitor: {enabled: true}", []string{"podMonitor.enabled and serviceMonitor.enabled exclude each other", "false"}},
		"pods alone":         {image + "reload: {enabled: false}\npodStrategies: {enabled: true}", []string{"podStrategies.enabled needs reload.enabled", "reload.enabled=true"}},
		"auto alone":         {image + "reload: {enabled: false, auto: true}", []string{"reload.auto needs reload.enabled", "reload.auto=false"}},
		"secrets alone":      {image + "revisions: {secretNamespaces: [shop]}", []string{"revisions.secretNamespaces needs revisions.enabled", "revisions.enabled=true"}},
		"secrets elsewhere":  {image + "namespaces: [shop]\nrevisions: {enabled: true, secretNamespaces: [blog]}", []string{`revisions.secretNamespaces has "blog"`, "add it there"}},
		"webhook alone":      {image + "images: {webhook: {enabled: true, secretName: a}}", []string{"images.webhook.enabled needs images.enabled"}},
		"webhook for anyone": {image + "images: {enabled: true, webhook: {enabled: true}}", []string{"images.webhook.secretName is empty", "kubectl create secret"}},
		"nobody's account":   {image + "serviceAccount: {create: false}", []string{"serviceAccount.name is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, h, c.values, c.texts...)
		})
	}
}
