package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wrong is a manifest with mistakes.
const wrong = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    lockstep.dev/relod: auto
    lockstep.dev/quiet: "10"
    image.lockstep.dev/wbe: nginx:1.*
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx
        envFrom:
        - configMapRef: {name: app}
---
apiVersion: v1
kind: Service
metadata:
  name: web
`

// file writes a file and returns its name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLint(t *testing.T) {
	t.Parallel()
	name := file(t, "web.yaml", wrong)
	stdout, stderr, code := command(t, "lint", name)
	golden(t, "lint.txt", []byte(strings.ReplaceAll(stdout+stderr, filepath.Dir(name)+"/", "")))
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	stdout, _, code = command(t, "lint", name, "-o", "json", "--complete")
	var got struct {
		Files, Workloads int
		Others           map[string]int
		Findings         []struct {
			File, Severity, Rule, Object, Message string
			Line                                  int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFailed {
		t.Fatalf("exit code %d, error %v:\n%s", code, err, stdout)
	}
	if got.Files != 1 || got.Workloads != 1 || got.Others["Service"] != 1 || len(got.Findings) != 4 {
		t.Errorf("%+v", got)
	}
	if last := got.Findings[3]; last.File != name || last.Line != 20 || last.Severity != "error" || last.Rule != "MissingReference" || last.Object != "deployment/web" {
		t.Errorf("%+v", last)
	}
}

// TestLintFormats: what wide adds.
func TestLintFormats(t *testing.T) {
	t.Parallel()
	name := file(t, "web.yaml", strings.Replace(wrong, "name: web\n", "name: web\n  namespace: shop\n", 1))
	table, _, _ := command(t, "lint", name)
	if strings.Contains(table, "shop") {
		t.Errorf("the default shows namespaces: %s", table)
	}
	if wide, _, _ := command(t, "lint", name, "-o", "wide"); strings.Count(wide, ": deployment/web in namespace shop: ") != strings.Count(table, "\n") {
		t.Errorf("-o wide prints %s", wide)
	}
}

// TestLintIsSatisfied: a warning does not fail a pipeline.
func TestLintIsSatisfied(t *testing.T) {
	t.Parallel()
	clean := strings.NewReplacer("relod", "reload", `"10"`, "10s", "wbe", "web").Replace(wrong)
	stdout, stderr, code := command(t, "lint", file(t, "web.yaml", clean))
	if code != exitOK || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "warning: deployment/web: configmap/app") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestLintUsage: what is no manifest gets the file, the line and exit code 2.
func TestLintUsage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"Nothing":  {nil, "name a file"},
		"Missing":  {[]string{"nowhere.yaml"}, "nowhere.yaml: no such file"},
		"NoYAML":   {[]string{file(t, "a.yaml", "a: b\n---\na: [\n")}, "a.yaml:3: not a manifest: "},
		"Text":     {[]string{file(t, "a.yaml", "\nhello\n")}, "a.yaml:2: not a manifest: "},
		"Template": {[]string{file(t, "a.yaml", "metadata:\n  {{- if .Values.a }}\n")}, "a.yaml:2: not a manifest: "},
		"Hint":     {[]string{file(t, "a.yaml", "metadata:\n  {{- if .Values.a }}\n")}, "helm template CHART"},
		"Values":   {[]string{file(t, "values.yaml", "replicas: 1\n")}, "the files contain no objects"},
		"Output":   {[]string{"-", "-o", "xml"}, `--output "xml": want one of table, wide, json, yaml, name`},
		"Kind":     {[]string{"-", "--kind", "x"}, "--kind"},
	} {
		if _, stderr, code := command(t, append([]string{"lint"}, tc.args...)...); code != exitUsage || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit code %d and %q, want %q", name, code, stderr, tc.want)
		}
	}
}

// TestLintReadsOn: one file that is no manifest does not hide what is wrong with the others, and
// every such file is named.
func TestLintReadsOn(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := command(t, "lint", file(t, "a.yaml", "a: [\n"), file(t, "web.yaml", wrong), file(t, "z.yaml", "metadata:\n  {{- if .Values.a }}\n"))
	if code != exitUsage || strings.Count(stdout, ": error: ") != 3 {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	for _, want := range []string{"a.yaml:1: not a manifest", "z.yaml:2: not a manifest", "helm template CHART"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
}

// TestLintTellsPrograms: the JSON names what could not be read, whatever else there is to tell. The
// exit code and standard error stay as they are.
func TestLintTellsPrograms(t *testing.T) {
	t.Parallel()
	type place struct {
		File, Message string
		Line          int
	}
	broken, template := file(t, "a.yaml", "a: b\nc: *none\n"), file(t, "z.yaml", "metadata:\n  {{- if .Values.a }}\n")
	noAnchor := place{broken, "not a manifest: an alias doesn't have an anchor; quote a value that begins with *", 2}
	for name, tc := range map[string]struct {
		args     []string
		code     int
		findings int
		want     []place
	}{
		"Alone":   {[]string{broken}, exitUsage, 0, []place{noAnchor}},
		"Missing": {[]string{"nowhere.yaml"}, exitUsage, 0, []place{{"nowhere.yaml", "no such file or directory", 0}}},
		"Beside": {[]string{broken, file(t, "web.yaml", wrong), template}, exitUsage, 4, []place{noAnchor, {
			template, `not a manifest: did not find expected node content; this looks like a Helm template: render it first, and pipe the output of "helm template CHART" to this command`, 2,
		}}},
		"NoObject": {[]string{file(t, "values.yaml", "replicas: 1\n")}, exitUsage, 0, []place{}},
		"AllRead":  {[]string{file(t, "web.yaml", wrong)}, exitFailed, 4, []place{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := command(t, append([]string{"lint", "-o", "json"}, tc.args...)...)
			var got struct {
				Findings   []any
				Unreadable []place
			}
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != tc.code || len(got.Findings) != tc.findings {
				t.Fatalf("exit code %d, %d findings, error %v:\n%s", code, len(got.Findings), err, stdout)
			}
			if diff := cmp.Diff(tc.want, got.Unreadable); diff != "" {
				t.Errorf("unreadable (-want +got):\n%s", diff)
			}
			for _, u := range tc.want {
				if !strings.Contains(stderr, u.Message) {
					t.Errorf("standard error does not say %q:\n%s", u.Message, stderr)
				}
			}
		})
	}
}

// TestLintGenerated: what "kubectl create" names is looked at.
func TestLintGenerated(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: app-\n  annotations: {lockstep.dev/relod: never}\n"
	stdout, _, code := command(t, "lint", file(t, "a.yaml", text))
	if code != exitFailed || !strings.Contains(stdout, "a.yaml:5: error: configmap/app-: annotation lockstep.dev/relod") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

// TestLintReadsOthers: annotations of another tool are checked as the controller reads them.
func TestLintReadsOthers(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    configmap.reloader.stakater.com/reload: gone
    deployment.reloader.stakater.com/pause-period: 5m
spec:
  template:
    spec:
      containers: [{name: web, image: web}]
`
	name := file(t, "web.yaml", text)
	stdout, _, code := command(t, "lint", "--complete", "--read-annotations", "stakater", name)
	for _, want := range []string{":7: warning: deployment/web: annotation deployment.reloader.stakater.com/pause-period: Lockstep doesn't pause", "configmap/gone, which the annotation lists, isn't in the files"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q isn't reported:\n%s", want, stdout)
		}
	}
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if stdout, _, code = command(t, "lint", "--complete", name); stdout != "" || code != exitOK {
		t.Errorf("without the flag, exit code %d:\n%s", code, stdout)
	}
}
