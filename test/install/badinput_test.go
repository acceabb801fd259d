package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/commandline"
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
		"unknown":            {image + "replica: 2", []string{"replica is not a value of this chart: use ", ", replicas,"}},
		"unknown below":      {image + "images: {pullSecret: [a]}", []string{"images.pullSecret is not a value of this chart: use ", "pullSecrets, webhook"}},
		"unknown in a list":  {image + "kinds: [{kind: example.com/v1/Worker=spec.template, resource: workers, plural: workers}]", []string{"kinds[0].plural is not a value of this chart: use kind, resource"}},
		"misspelled":         {"image: {repositry: registry.example/lockstep}", []string{"image.repositry is not a value of this chart: use digest, pullPolicy, repository, tag"}},
		"digest as a tag":    {"image: {repository: registry.example/lockstep, tag: a@b}", []string{`image.tag is "a@b": set a tag, such as v0.1.0 (a digest belongs in image.digest), or leave it empty`}},
		"half a digest":      {"image: {repository: registry.example/lockstep, digest: sha256:abc}", []string{`image.digest is "sha256:abc": set a digest: sha256:, followed by 64 hexadecimal digits, or leave it empty`}},
		"half of platforms":  {image + "images: {enabled: true, platforms: [arm64]}", []string{`images.platforms[0] is "arm64": set a platform, such as linux/amd64 or linux/arm/v7`}},
		"kind alone":         {image + "kinds: [{kind: Foo, resource: foos}]", []string{`kinds[0].kind is "Foo": set group/version/Kind=path.to.template, such as example.com/v1/Worker=spec.template`}},
		"resource and group": {image + "kinds: [{kind: a.example/v1/A=spec.a, resource: as.a.example}]", []string{`kinds[0].resource is "as.a.example": set the plural name in the API, such as workers`}},
		"half a budget":      {image + "podDisruptionBudget: {minAvailable: half}", []string{`podDisruptionBudget.minAvailable is "half": set a number of pods or a percentage, such as 1 or 50%, or leave it empty`}},
		"no login":           {image + "imagePullSecrets: [{name: A_b}]", []string{`imagePullSecrets[0].name is "A_b": set the name of a Secret, such as registry-login`}},
		"two names":          {image + `fullnameOverride: "a b"`, []string{`fullnameOverride is "a b": set a name, such as lockstep-a`}},
		"not a duration":     {image + "quiet: soon", []string{`quiet is "soon": set a duration, such as 30s`}},
		"not a namespace":    {image + "namespaces: [shop, Shop]", []string{`namespaces[1] is "Shop": set the name of a namespace, such as shop (lowercase letters, digits and dashes)`}},
		"two scopes":         {image + "namespaces: [shop]\nnamespaceSelector: team=shop", []string{"namespaces and namespaceSelector exclude each other", "leave the other one empty"}},
		"two budgets":        {image + "podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}", []string{"podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other", "set one"}},
		"two monitors":       {image + "podMonitor: {enabled: true}\nserviceMonitor: {enabled: true}", []string{"podMonitor.enabled and serviceMonitor.enabled exclude each other", "false"}},
		"pods alone":         {image + "reload: {enabled: false}\npodStrategies: {enabled: true}", []string{"podStrategies.enabled needs reload.enabled", "reload.enabled=true"}},
		"auto alone":         {image + "reload: {enabled: false, auto: true}", []string{"reload.auto needs reload.enabled", "reload.auto=false"}},
		"secrets alone":      {image + "revisions: {secretNamespaces: [shop]}", []string{"revisions.secretNamespaces needs revisions.enabled", "revisions.enabled=true"}},
		"secrets elsewhere":  {image + "namespaces: [shop]\nrevisions: {enabled: true, secretNamespaces: [blog]}", []string{`revisions.secretNamespaces lists "blog"`, "add it there"}},
		"webhook alone":      {image + "images: {webhook: {enabled: true, secretName: a}}", []string{"images.webhook.enabled needs images.enabled"}},
		"webhook for anyone": {image + "images: {enabled: true, webhook: {enabled: true}}", []string{"images.webhook.secretName is empty", "kubectl -n own create secret"}},
		"nobody's account":   {image + "serviceAccount: {create: false}", []string{"serviceAccount.name is empty"}},
		"number as a tag":    {"image: {repository: registry.example/lockstep, tag: 20240101}", []string{"/image/tag", "want string"}},
		"fraction as a tag":  {"image: {repository: registry.example/lockstep, tag: 1.10}", []string{"/image/tag", "want string"}},
		"nothing":            {image + "reload: null", []string{"missing property 'reload'"}},
		"nothing below":      {image + "reload: {enabled: null}", []string{"/reload", "missing property 'enabled'"}},
		"quiet for long":     {image + "quiet: 1m1s", []string{"quiet (1m1s) is longer than maxDelay (1m)", "set maxDelay to 1m1s or more"}},
		"quiet in parts":     {image + "quiet: 0.5h\nmaxDelay: 1799s999ms", []string{"quiet (0.5h) is longer than maxDelay (1799s999ms)"}},
		"no delay":           {image + "maxDelay: 0s", []string{"quiet (5s) is longer than maxDelay (0s)", "quiet to 0s"}},
		"damped for long":    {image + "rollouts: {damping: 20m}", []string{"rollouts.damping (20m) is longer than rollouts.maxDamping (15m)", "set rollouts.maxDamping to 20m or more"}},
		"fewer than none":    {image + "rollouts: {maxRolling: -1}", []string{"/rollouts/maxRolling"}},
		"part of a stop":     {image + "rollouts: {stopAfter: 0.5}", []string{"/rollouts/stopAfter"}},
		"settles some time":  {image + "rollouts: {settle: soon}", []string{`rollouts.settle is "soon": set a duration`}},
		"shared by whom":     {image + "rollouts: {shared: [ca-bundle]}", []string{`rollouts.shared[0] is "ca-bundle": set a source, such as configmap/ca-bundle`}},
		"no such Secret":     {image + "notifications: {secretName: Receivers}", []string{`notifications.secretName is "Receivers": set the name of an existing object, such as lockstep-a (lowercase`, "or leave it empty"}},
		"path as a key":      {image + "notifications: {secretName: a, secretKey: a/b}", []string{`notifications.secretKey is "a/b": set a key of the Secret, such as targets.yaml`}},
		"a file of its own":  {image + "extraArgs: [--notify-file=/a]", []string{"use the values notifications.secretName and notifications.secretKey instead"}},
		"grace alone":        {image + "revisions: {grace: 5m}", []string{"revisions.grace needs revisions.enabled", "revisions.enabled=true"}},
		"pull secrets alone": {image + "images: {pullSecrets: [a]}", []string{"images.pullSecrets needs images.enabled", "images.enabled=true"}},
		"platforms alone":    {image + "images: {platforms: [linux/amd64]}", []string{"images.platforms needs images.enabled", "images.enabled=true"}},
		"interval alone":     {image + "images: {interval: 5m}", []string{"images.interval needs images.enabled", "images.enabled=true"}},
		"always asking":      {image + "images: {enabled: true, interval: 999ms}", []string{"images.interval 999ms is too short", "1s or more"}},
		"two pull secrets":   {image + `images: {enabled: true, pullSecrets: ["a,b"]}`, []string{`images.pullSecrets[0] is "a,b": set the name of a Secret, such as registry-login`}},
		"file of no one":     {image + "images: {dockerConfigNamespaces: [shop]}\nextraArgs: [--docker-config=a]", []string{"images.dockerConfigNamespaces needs images.enabled", "images.enabled=true"}},
		"no file":            {image + "images: {enabled: true, dockerConfigNamespaces: [shop]}", []string{"images.dockerConfigNamespaces needs --docker-config in extraArgs", "extraVolumes and extraVolumeMounts", "leave images.dockerConfigNamespaces empty"}},
		"file elsewhere":     {image + "namespaces: [shop]\nimages: {enabled: true, dockerConfigNamespaces: [blog]}\nextraArgs: [--docker-config=a]", []string{`images.dockerConfigNamespaces lists "blog"`, "add it there"}},
		"cloud elsewhere":    {image + "namespaces: [shop]\nimages: {enabled: true, cloudIdentityNamespaces: [shop, blog]}", []string{`images.cloudIdentityNamespaces lists "blog"`, "add it there"}},
		"cloud of no one":    {image + "images: {cloudIdentityNamespaces: [shop]}", []string{"images.cloudIdentityNamespaces needs images.enabled", "images.enabled=true"}},
		"denied by no one":   {image + "admissionPolicy: {deniedNamespaces: [infra]}", []string{"admissionPolicy.deniedNamespaces needs admissionPolicy.enabled", "admissionPolicy.enabled=true"}},
		"some of the cloud":  {image + `images: {enabled: true, cloudIdentityNamespaces: ["shop-*"]}`, []string{`images.cloudIdentityNamespaces[0] is "shop-*": set the name of a namespace, such as shop, or * for all`}},
		"port of metrics":    {image + "images: {enabled: true, webhook: {enabled: true, secretName: a, port: 8080}}", []string{"images.webhook.port 8080 is in use", "8082"}},
		"port of probes":     {image + "images: {enabled: true, webhook: {enabled: true, secretName: a, port: 8081}}", []string{"images.webhook.port 8081 is in use", "8082"}},
		"known kind":         {image + "kinds: [{kind: apps/v1beta1/Deployment=spec.template, resource: deployments}]", []string{`kinds lists "apps/v1beta1/Deployment=spec.template"`, "remove it"}},
		"kind twice":         {image + "kinds: [{kind: a.example/v1/A=spec.a, resource: as}, {kind: a.example/v2/A=spec.b, resource: as}]", []string{`kinds lists "a.example/v2/A=spec.b"`, "remove it"}},
		"no kind":            {image + "builtInKinds: []", []string{"builtInKinds and kinds are empty", "list a kind"}},
		"not built in":       {image + "builtInKinds: [job]", []string{"/builtInKinds/0", "deployment"}},
		"platform alone":     {image + "images: {defaultPlatform: linux/amd64}", []string{"images.defaultPlatform needs images.enabled", "images.enabled=true"}},
		"half a platform":    {image + "images: {enabled: true, defaultPlatform: arm64}", []string{`images.defaultPlatform is "arm64": set a platform, such as linux/amd64`, "or leave it empty"}},
		"kind and a comment": {image + `kinds: [{kind: "a.example/v1/A=spec.a # b", resource: as}]`, []string{"kinds[0].kind is", "set group/version/Kind=path.to.template, such as example.com/v1/Worker=spec.template"}},
		"none may go":        {image + "podDisruptionBudget: {maxUnavailable: 0}", []string{"podDisruptionBudget.maxUnavailable 0 prevents node drains", "set 1 or more"}},
		"no share may go":    {image + "podDisruptionBudget: {maxUnavailable: 0%}", []string{"podDisruptionBudget.maxUnavailable 0% prevents node drains"}},
		"all must stay":      {image + "replicas: 3\npodDisruptionBudget: {minAvailable: 3}", []string{"podDisruptionBudget.minAvailable 3 requires all 3 replicas", "raise replicas"}},
		"rounded to all":     {image + "podDisruptionBudget: {minAvailable: 51%}", []string{"podDisruptionBudget.minAvailable 51% requires all 2 replicas"}},
		"not an account":     {image + `serviceAccount: {name: "a, b"}`, []string{`serviceAccount.name is "a, b": set the name of an existing object`}},
		"closed to no one":   {image + "networkPolicy: {metricsFrom: [{podSelector: {}}]}", []string{"networkPolicy.metricsFrom needs networkPolicy.enabled", "networkPolicy.enabled=true", "leave networkPolicy.metricsFrom empty"}},
		"open to everything": {image + "networkPolicy: {egress: [{}]}", []string{"networkPolicy.egress needs networkPolicy.enabled", "networkPolicy.enabled=true"}},
		"callers alone":      {image + "images: {enabled: true, webhook: {enabled: true, secretName: a}}\nnetworkPolicy: {webhookFrom: [{podSelector: {}}]}", []string{"networkPolicy.webhookFrom needs networkPolicy.enabled", "networkPolicy.enabled=true"}},
		"callers of nothing": {image + "networkPolicy: {enabled: true, webhookFrom: [{podSelector: {}}]}", []string{"networkPolicy.webhookFrom needs images.webhook.enabled", "images.webhook.enabled=true"}},
		"secret of nothing":  {image + "images: {enabled: true, webhook: {secretName: a}}", []string{"images.webhook.secretName needs images.webhook.enabled", "images.webhook.enabled=true"}},
		"no one's identity":  {image + "serviceAccount: {create: false, name: a, annotations: {example.com/role: reader}}", []string{"serviceAccount.annotations needs serviceAccount.create", "serviceAccount.create=true"}},
		"installed and off":  {image + "enabled: false", []string{"enabled is false", "condition: lockstep.enabled", "replicas=0"}},
		"variable unnamed":   {image + "extraEnv: [{value: a}]", []string{"/extraEnv/0", "name"}},
		"other namespace":    {image + "extraEnv: [{name: POD_NAMESPACE, value: a}]", []string{`extraEnv contains "POD_NAMESPACE": `, "remove it"}},
		"not a class":        {image + `priorityClassName: "a: b"`, []string{`priorityClassName is "a: b": set the name of an existing object`}},
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

// TestExtraArgs: whoever gives a flag that permissions, ports or volumes depend on, or its variable,
// reads which value to set instead. A flag that the controller gets is one or the other.
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
			arg, variable := "--"+flag[1]+"=x", commandline.Variable(flag[1])
			args := fmt.Sprintf("image: {repository: registry.example/lockstep}\nextraArgs: [--workers=2, %s]\n", arg)
			env := fmt.Sprintf("image: {repository: registry.example/lockstep}\nextraEnv: [{name: HTTPS_PROXY, value: proxy}, {name: %s, value: x}]\n", variable)
			if !slices.Contains(free(), flag[1]) {
				wantRefused(t, h, args, fmt.Sprintf("extraArgs contains %q: ", arg))
				wantRefused(t, h, env, fmt.Sprintf("extraEnv contains %q: ", variable))
				return
			}
			given := deployment(t, render(t, h, "lockstep", "own", args)).Spec.Template.Spec.Containers[0].Args
			if last := given[len(given)-1]; last != arg {
				t.Errorf("the last argument is %s", last)
			}
			set := deployment(t, render(t, h, "lockstep", "own", env)).Spec.Template.Spec.Containers[0].Env
			if last := set[len(set)-1]; last.Name != variable || last.Value != "x" {
				t.Errorf("the last variable is %v", last)
			}
		})
	}
}

// TestNamespaceSelector: the chart takes what the controller takes for a selector, and nothing else.
func TestNamespaceSelector(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for n, selector := range []string{
		"team", "!team", " ! team ", "team=shop", "team == shop", "team!=shop", "team=", "example.com/team_1.a=Shop", "size>5", "size < 10",
		"team in (shop,blog)", "team notin( shop , blog )", "team in (a,)", "team in ()", "team=shop,!old, size in (1)",
		"team in (a", "team in a)", "team in", "team (a)", "team=(a)", "a b", "team=shop,", ",team", "team==", "team===a", "=shop", "!team=shop",
		"a/b/c=d", "/team", "Example.com/team=a", "-team", "team=-a", "team=a b", "team>many", "team={a}", "team|b", "team in (a,b),(c)",
		"team=" + strings.Repeat("a", 63), "team=" + strings.Repeat("a", 64), strings.Repeat("a", 64),
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			values := fmt.Sprintf("image: {repository: registry.example/lockstep}\nnamespaceSelector: %q\n", selector)
			if _, err := labels.Parse(selector); err != nil {
				wantRefused(t, h, values, fmt.Sprintf("namespaceSelector %q isn't a label selector", selector), "team=shop")
				return
			}
			given := deployment(t, render(t, h, "lockstep", "own", values)).Spec.Template.Spec.Containers[0].Args
			if want := "--namespace-selector=" + selector; !slices.Contains(given, want) {
				t.Errorf("the arguments %q lack %q", given, want)
			}
		})
	}
}

// TestDisabledSubchart: a parent chart switches this one off by a condition. Helm then renders nothing of it.
// Without the condition Helm would install it, and the chart says so.
func TestDisabledSubchart(t *testing.T) {
	t.Parallel()
	for version, h := range map[string]*helmtest.Helm{"Helm 4": helmtest.New(t, ""), "Helm 3": helmtest.New3(t)} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			for name, c := range map[string]struct {
				condition, enabled string
				objects            bool
				says               string
			}{
				"off":               {"condition: lockstep.enabled", "false", false, ""},
				"on":                {"condition: lockstep.enabled", "true", true, ""},
				"off, no condition": {"", "false", false, "condition: lockstep.enabled"},
			} {
				parent := parentChart(t, h, c.condition)
				out, stderr, code := h.Try(t, "template", "shop", parent, "--kube-version", "1.36.0",
					"--set", "lockstep.image.repository=registry.example/lockstep,lockstep.enabled="+c.enabled)
				if refused := c.says != ""; refused != (code != 0) || !strings.Contains(stderr, c.says) {
					t.Errorf("%s: exit code %d: %s", name, code, stderr)
				}
				if got := strings.Contains(out, "kind: Deployment"); got != c.objects {
					t.Errorf("%s: a Deployment is rendered: %t, want %t", name, got, c.objects)
				}
			}
		})
	}
}

// parentChart is a chart that depends on this one.
func parentChart(t *testing.T, h *helmtest.Helm, condition string) string {
	t.Helper()
	parent := t.TempDir()
	if err := os.CopyFS(filepath.Join(parent, "charts", "lockstep"), os.DirFS(h.Chart("lockstep"))); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies:\n  - {name: lockstep, version: '*', %s}\n", condition)
	if err := os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return parent
}
