package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		"number as a tag":    {"image: {repository: registry.example/lockstep, tag: 20240101}", []string{"/image/tag", "want string"}},
		"fraction as a tag":  {"image: {repository: registry.example/lockstep, tag: 1.10}", []string{"/image/tag", "want string"}},
		"nothing":            {image + "reload: null", []string{"missing property 'reload'"}},
		"nothing below":      {image + "reload: {enabled: null}", []string{"/reload", "missing property 'enabled'"}},
		"quiet for long":     {image + "quiet: 1m1s", []string{"quiet (1m1s) is longer than maxDelay (1m)", "set maxDelay to 1m1s or more"}},
		"quiet in parts":     {image + "quiet: 0.5h\nmaxDelay: 1799s999ms", []string{"quiet (0.5h) is longer than maxDelay (1799s999ms)"}},
		"no delay":           {image + "maxDelay: 0s", []string{"quiet (5s) is longer than maxDelay (0s)", "quiet to 0s"}},
		"grace alone":        {image + "revisions: {grace: 5m}", []string{"revisions.grace needs revisions.enabled", "revisions.enabled=true"}},
		"pull secrets alone": {image + "images: {pullSecrets: [a]}", []string{"images.pullSecrets needs images.enabled", "images.enabled=true"}},
		"platforms alone":    {image + "images: {platforms: [linux/amd64]}", []string{"images.platforms needs images.enabled", "images.enabled=true"}},
		"interval alone":     {image + "images: {interval: 5m}", []string{"images.interval needs images.enabled", "images.enabled=true"}},
		"always asking":      {image + "images: {enabled: true, interval: 999ms}", []string{"images.interval 999ms is too short", "1s or more"}},
		"two pull secrets":   {image + `images: {enabled: true, pullSecrets: ["a,b"]}`, []string{"/images/pullSecrets/0"}},
		"port of metrics":    {image + "images: {enabled: true, webhook: {enabled: true, secretName: a, port: 8080}}", []string{"images.webhook.port 8080 is taken", "8082"}},
		"port of probes":     {image + "images: {enabled: true, webhook: {enabled: true, secretName: a, port: 8081}}", []string{"images.webhook.port 8081 is taken", "8082"}},
		"known kind":         {image + "kinds: [{kind: apps/v1beta1/Deployment=spec.template, resource: deployments}]", []string{`kinds has "apps/v1beta1/Deployment=spec.template"`, "take it out"}},
		"kind twice":         {image + "kinds: [{kind: a.example/v1/A=spec.a, resource: as}, {kind: a.example/v2/A=spec.b, resource: as}]", []string{`kinds has "a.example/v2/A=spec.b"`, "take it out"}},
		"kind and a comment": {image + `kinds: [{kind: "a.example/v1/A=spec.a # b", resource: as}]`, []string{"/kinds/0/kind"}},
		"none may go":        {image + "podDisruptionBudget: {maxUnavailable: 0}", []string{"podDisruptionBudget.maxUnavailable 0 lets no node be drained", "set 1 or more"}},
		"no share may go":    {image + "podDisruptionBudget: {maxUnavailable: 0%}", []string{"podDisruptionBudget.maxUnavailable 0% lets no node be drained"}},
		"all must stay":      {image + "replicas: 3\npodDisruptionBudget: {minAvailable: 3}", []string{"podDisruptionBudget.minAvailable 3 is every one of the 3 replicas", "raise replicas"}},
		"rounded to all":     {image + "podDisruptionBudget: {minAvailable: 51%}", []string{"podDisruptionBudget.minAvailable 51% is every one of the 2 replicas"}},
		"not an account":     {image + `serviceAccount: {name: "a, b"}`, []string{"/serviceAccount/name"}},
		"not a class":        {image + `priorityClassName: "a: b"`, []string{"/priorityClassName"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, h, c.values, c.texts...)
		})
	}
}

// free are the flags that the manifest does not depend on.
func free() []string {
	return []string{
		"cloud-identity", "context", "docker-config", "form", "image-ttl", "kubeconfig", "lease-duration", "plain-http-registry", "read-annotations", "registry-ca", "workers",
	}
}

// TestExtraArgs: whoever gives a flag that rights, ports or volumes depend on reads which value to
// set instead. A flag that the controller gets is one or the other.
func TestExtraArgs(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	reference, err := os.ReadFile(filepath.Join(h.Root(), "docs", "cli", "lockstep_controller.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^      --([a-z-]+) `).FindAllStringSubmatch(string(reference), -1)
	if len(flags) < len(free()) {
		t.Fatalf("the reference has the flags %q", flags)
	}
	for _, flag := range flags {
		t.Run(flag[1], func(t *testing.T) {
			t.Parallel()
			values := fmt.Sprintf("image: {repository: registry.example/lockstep}\nextraArgs: [--workers=2, --%s=x]\n", flag[1])
			if !slices.Contains(free(), flag[1]) {
				wantRefused(t, h, values, fmt.Sprintf("extraArgs has %q: ", "--"+flag[1]+"=x"))
				return
			}
			args := deployment(t, render(t, h, "lockstep", "own", values)).Spec.Template.Spec.Containers[0].Args
			if last := args[len(args)-1]; last != "--"+flag[1]+"=x" {
				t.Errorf("the last argument is %s", last)
			}
		})
	}
}
