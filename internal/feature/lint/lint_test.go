package lint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/lint"
)

func options(kinds ...kube.Kind) lint.Options {
	return lint.Options{Kinds: append(kube.Kinds(), kinds...), Words: settings.Native{}, Nearest: commandline.Nearest}
}

// objects are those of a text.
func objects(t testing.TB, text string) []manifest.Object {
	t.Helper()
	all, err := manifest.Read([]string{manifest.Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lines are findings in short: "12 error UnknownKey deployment/web".
func lines(r lint.Result) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%d %s %s %s", f.Line, f.Severity, f.Rule, f.Object))
	}
	return list
}

// deployment is one with annotations and a pod specification in the flow style.
func deployment(annotations, spec string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: ` + annotations + `
spec:
  template:
    spec: ` + spec + `
`
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		configMap = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}\n"
		uses      = "{volumes: [{name: a, configMap: {name: app}}], containers: [{name: app}]}"
	)
	cases := map[string]struct {
		reason, text string
		complete     bool
		want         []string
	}{
		"Clean":         {"the reference is in the files", deployment("{lockstep.dev/reload: auto}", uses) + configMap, true, nil},
		"Elsewhere":     {"the cluster may have it", deployment("{}", uses), false, []string{"9 warning MissingReference deployment/web"}},
		"Complete":      {"the cluster has nothing else", deployment("{}", uses), true, []string{"9 error MissingReference deployment/web"}},
		"Optional":      {"pods start without it", deployment("{}", strings.Replace(uses, "name: app}", "name: app, optional: true}", 1)), true, nil},
		"OtherKind":     {"a Secret of the name is another object", deployment("{}", uses) + strings.Replace(configMap, "ConfigMap", "Secret", 1), true, []string{"9 error MissingReference deployment/web"}},
		"NoNamespace":   {"what names no namespace may be applied to any", deployment("{}", uses) + strings.Replace(configMap, "name: app", "name: app, namespace: shop", 1), true, nil},
		"OtherPlace":    {"of two that name one, both count", strings.Replace(deployment("{}", uses), "name: web", "name: web\n  namespace: blog", 1) + strings.Replace(configMap, "name: app", "name: app, namespace: shop", 1), true, []string{"10 error MissingReference deployment/web"}},
		"Listed":        {"what an annotation lists is followed", deployment("{lockstep.dev/reload: 'secret/db, configmap/a*'}", "{}") + configMap, true, []string{"6 error MissingReference deployment/web"}},
		"After":         {"by a short name", deployment("{lockstep.dev/after: sts/db}", "{}") + "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}\n", true, nil},
		"AfterMissing":  {"the cluster may have it", deployment("{lockstep.dev/after: deployment/db}", "{}"), false, []string{"6 warning MissingReference deployment/web"}},
		"AfterNone":     {"the cluster has nothing else", deployment("{lockstep.dev/after: deployment/db}", "{}"), true, []string{"6 error MissingReference deployment/web"}},
		"AfterItself":   {"a cycle", deployment("{lockstep.dev/after: deploy/web}", "{}"), true, []string{"6 warning Contradiction deployment/web"}},
		"Window":        {"on a workload", deployment("{lockstep.dev/window: nights}", "{}"), true, []string{"6 error InvalidValue deployment/web"}},
		"WindowOfAll":   {"on a namespace, with a limit that is none", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  annotations:\n    lockstep.dev/window: nights\n    lockstep.dev/max-rolling: few\n", true, []string{"6 error InvalidValue namespace/shop", "7 error InvalidValue namespace/shop"}},
		"Ramp":          {"on a source", strings.Replace(configMap, "name: app", "name: app, annotations: {lockstep.dev/ramp: 'no'}", 1), true, []string{"2 error InvalidValue configmap/app"}},
		"ListedAndUsed": {"one object is missing once", deployment("{lockstep.dev/reload: 'configmap/app'}", uses), true, []string{"9 error MissingReference deployment/web"}},
		"Alias":         {"the line of the anchor's text, in the first item", "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n  spec: &base\n    template:\n      spec: " + uses + "\n- metadata: {name: b}\n  spec: *base\n", false, []string{"7 warning MissingReference deployment/a", "7 warning MissingReference deployment/b"}},
		"Wrong":         {"a list of objects", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: app\n    annotations:\n      lockstep.dev/reload: maybe\n", false, []string{"9 error InvalidValue configmap/app"}},
		"Types":         {"what the API server refuses too", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {lockstep.dev/reload: auto}}, spec: {template: {spec: {containers: nginx}}}}", false, []string{"1 error WrongType deployment/web"}},
		"NoWish":        {"also when the workload does not ask for anything", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: nginx}}}}", false, []string{"1 error WrongType deployment/web"}},
		"NoTemplate":    {"a kind that has none there", "{apiVersion: example.com/v1, kind: Worker, metadata: {name: w, annotations: {lockstep.dev/reload: auto}}, spec: {template: x}}", false, []string{"1 error NoTemplate worker.example.com/w"}},
		"Unquoted":      {"one value that is no string hides no other one", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations:\n    lockstep.dev/hold: true\n    lockstep.dev/relod: auto\n    example.com/port: 80\n    lockstep.dev/quiet:\n", false, []string{"6 error WrongType deployment/web", "7 error UnknownKey deployment/web", "8 error WrongType deployment/web", "9 error InvalidValue deployment/web"}},
		"UnquotedLabel": {"of a source and of a pod template", "{apiVersion: v1, kind: ConfigMap, metadata: {name: app, labels: {lockstep.dev/revisioned: true}}}\n---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  jobTemplate:\n    spec:\n      template:\n        metadata:\n          labels:\n            version: 1.5\n            lockstep.dev/quiet: 1s\n", false, []string{"1 error WrongType configmap/app", "12 error WrongType cronjob/c", "13 error MisplacedKey cronjob/c"}},
		"NoMap":         {"annotations that are a list", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations: [a]\n  labels: {lockstep.dev/reload: auto}\n", false, []string{"5 error WrongType deployment/web", "6 error MisplacedKey deployment/web"}},
		"Twice":         {"the second one counts", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations:\n    lockstep.dev/reload: auto\n    lockstep.dev/reload: never\n", false, []string{"7 error DuplicateKey deployment/web"}},
		"Root":          {"Kubernetes makes it in every namespace", deployment("{}", strings.ReplaceAll(uses, "name: app}}", "name: kube-root-ca.crt}}")), true, nil},
		"RootSecret":    {"a ConfigMap of that name", deployment("{lockstep.dev/reload: secret/kube-root-ca.crt}", "{}"), true, []string{"6 error MissingReference deployment/web"}},
		"Custom":        {"a kind that a flag names", "{apiVersion: example.com/v1, kind: Worker, metadata: {name: w, annotations: {lockstep.dev/quiet: x}}, spec: {template: {spec: {}}}}", false, []string{"1 error InvalidValue worker.example.com/w"}},
		"Other":         {"only its keys", "{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {lockstep.dev/reload: auto}}}", false, []string{"1 error MisplacedKey service/web"}},
		"Patch":         {"of Kustomize, without the containers", deployment("{lockstep.dev/reload: auto, image.lockstep.dev/web: 'nginx:1'}", "{}"), true, nil},
		"Borrowed":      {"a Rollout with the template of a Deployment", "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r, annotations: {lockstep.dev/reload: auto, image.lockstep.dev/web: 'nginx:1'}}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", true, nil},
		"Namespace":     {"the files have the namespace too", strings.Replace(deployment("{lockstep.dev/quiet: 1s}", "{}"), "name: web", "name: web\n  namespace: shop", 1) + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {lockstep.dev/reload: never}}}\n", true, []string{"7 warning Contradiction deployment/web"}},
	}
	worker, err := kube.ParseKind("example.com/v1/Worker=spec.template")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(worker)
			o.Complete = tc.complete
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(lint.Check(objects(t, tc.text), o))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckCounts(t *testing.T) {
	t.Parallel()
	got := lint.Check(objects(t, deployment("{}", "{}")+`---
{apiVersion: v1, kind: Secret, metadata: {name: db}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: a}}
---
{apiVersion: v1, kind: Service, metadata: {name: b}}
---
{apiVersion: example.com/v1, kind: ConfigMap, metadata: {name: foreign}}
`), options())
	want := lint.Result{Findings: []lint.Mistake{}, Workloads: 1, Sources: 1, Namespaces: 1, Others: map[string]int{"Service": 2, "ConfigMap": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExamplesAreClean: what we show people has no mistake, as a whole.
func TestExamplesAreClean(t *testing.T) {
	t.Parallel()
	found, err := manifest.Reader{Recursive: true, SkipOthers: true}.Read([]string{filepath.Join("..", "..", "..", "examples")})
	if err != nil || len(found.Objects) < 20 {
		t.Fatalf("%d objects, error %v", len(found.Objects), err)
	}
	o := options()
	o.Complete = true
	for _, f := range lint.Check(found.Objects, o).Findings {
		t.Errorf("%+v", f)
	}
}

// TestDocumentsAreClean: neither has what the documentation shows, where it shows whole objects.
func TestDocumentsAreClean(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, checked := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```"), 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			found, err := manifest.Reader{Stdin: strings.NewReader(block[1]), SkipOthers: true}.Read([]string{manifest.Stdin})
			if err != nil {
				continue // A part of a file, which the tests of the page judge.
			}
			checked += len(found.Objects)
			for _, f := range lint.Check(found.Objects, options()).Findings {
				if f.Severity == review.Error {
					t.Errorf("%s: %+v", page, f)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no page shows an object; either that is so or this test reads them wrongly")
	}
}

// FuzzCheck: whatever a file has, reading and checking it end, each mistake has a place in the
// file, and a second look finds the same.
func FuzzCheck(f *testing.F) {
	f.Add(deployment("{lockstep.dev/reload: 'auto, secret/*', image.lockstep.dev/web: 'nginx:^1'}", "{containers: [{name: web}]}"))
	f.Add("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {lockstep.dev/revisioned: 'no'}}}]}")
	f.Add("<<: \n*m")
	f.Add("a: &a [*a]\n---\n- x\n---\n{{ .Values }}\n")
	f.Fuzz(func(t *testing.T, text string) {
		read := func() (manifest.Found, error) {
			return manifest.Reader{Stdin: strings.NewReader(text), SkipOthers: true}.Read([]string{manifest.Stdin})
		}
		last := strings.Count(text, "\n") + 1
		found, err := read()
		if e, isPlace := errors.AsType[*manifest.Error](err); isPlace && (e.Line < 1 || e.Line > last) {
			t.Errorf("%v in %d lines", err, last)
		}
		if err != nil {
			return
		}
		first := lint.Check(found.Objects, options())
		for _, finding := range first.Findings {
			if finding.Line < 1 || finding.Line > last || finding.Message == "" {
				t.Errorf("%+v in %d lines", finding, last)
			}
		}
		again, _ := read()
		if second := lint.Check(again.Objects, options()); !slices.Equal(first.Findings, second.Findings) {
			t.Errorf("%+v, then %+v", first.Findings, second.Findings)
		}
	})
}
