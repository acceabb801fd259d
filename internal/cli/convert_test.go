package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// old are manifests with the annotations of three tools.
const old = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    reloader.stakater.com/auto: "true"
    deployment.reloader.stakater.com/pause-period: 5m
spec:
  template:
    spec:
      containers: [{name: web, image: web}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: cart
  labels: {kube-image-deployer: "true"}
  annotations:
    secret.reloader.stakater.com/reload: db-.*,tls-(a|b)
    configmap.reloader.stakater.com/auto: "true"
    configmaps.exclude.reloader.stakater.com/reload: flags
    reloader.k8s.collaborne.com/configmap: a,b
    reloader.k8s.collaborne.com/secret: Not_A_Name
    kube-image-deployer/cart: registry.example/cart:1.*
    platform.kube-image-deployer/cart: any
    kube-image-deployer/side: registry.example/side
spec:
  template: {spec: {containers: [{name: cart}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: night}
spec:
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {reloader.stakater.com/auto: "true"}}
        spec: {containers: [{name: night}]}
---
apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations: {reloader.stakater.com/ignore: "true", other.example/x: "true"}
stringData: {password: hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: both
  annotations: {reloader.stakater.com/auto: "true", lockstep.dev/reload: never}
---
apiVersion: v1
kind: Service
metadata: {name: web}
`

func TestConvert(t *testing.T) {
	t.Parallel()
	name := file(t, "old.yaml", old)
	var all bytes.Buffer
	for _, tool := range convertTools() {
		stdout, stderr, code := command(t, "convert", "--from", tool, "-f", name)
		if code != exitOK {
			t.Errorf("%s: exit code %d", tool, code)
		}
		all.WriteString("== " + tool + "\n" + stdout + stderr)
	}
	golden(t, "convert.txt", bytes.ReplaceAll(all.Bytes(), []byte(filepath.Dir(name)+"/"), nil))
	if bytes.Contains(all.Bytes(), []byte("hunter2")) {
		t.Error("it prints the content of a Secret")
	}
}

// TestConvertForPrograms: another format contains the same.
func TestConvertForPrograms(t *testing.T) {
	t.Parallel()
	stdout, _, code := command(t, "convert", "--from", "stakater", "-o", "json", "-f", file(t, "old.yaml", old))
	var got convertAnswer
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("exit code %d, error %v:\n%s", code, err, stdout)
	}
	if len(got.Objects) != 4 || got.Unchanged != 2 || got.Files != 1 {
		t.Fatalf("%+v", got)
	}
	if web := got.Objects[0]; web.Object != "deployment/web" || web.Namespace != "shop" || web.Line != 1 || web.Annotations["lockstep.dev/reload"] != "auto" || len(web.WithoutCounterpart) != 1 {
		t.Errorf("%+v", web)
	}
}

// TestConvertFormats: the names of the objects, each once, and what wide adds.
func TestConvertFormats(t *testing.T) {
	t.Parallel()
	name := file(t, "old.yaml", old)
	run := func(args ...string) string {
		stdout, stderr, code := command(t, append([]string{"convert", "--from", "stakater", "-f", name}, args...)...)
		if code != exitOK {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
		return stdout
	}
	if got, want := run("-o", "name"), "deployment/web\nstatefulset/cart\ncronjob/night\nsecret/db\n"; got != want {
		t.Errorf("the names are %q, want %q", got, want)
	}
	manifests := run()
	rest, _ := strings.CutPrefix(run("-o", "wide"), manifests)
	if strings.Count(rest, ": nothing to convert\n") != 2 || !strings.Contains(rest, ": service/web: nothing to convert\n") {
		t.Errorf("-o wide adds %q", rest)
	}
}

func TestConvertUsedWrongly(t *testing.T) {
	t.Parallel()
	good := file(t, "old.yaml", old)
	for name, tc := range map[string]struct {
		args []string
		want string
		code int
	}{
		"NoTool":      {[]string{"-f", good}, "--from: name the tool: stakater, kubernetes-reloader, kube-image-deployer", exitUsage},
		"Tool":        {[]string{"--from", "stakatr", "-f", good}, `--from "stakatr": want one of stakater, kubernetes-reloader, kube-image-deployer; did you mean stakater?`, exitUsage},
		"Format":      {[]string{"--from", "stakater", "-f", good, "-o", "yml"}, "did you mean yaml?", exitUsage},
		"NoFile":      {[]string{"--from", "stakater"}, "name a file, a directory or - with --filename (-f)", exitUsage},
		"Flag":        {[]string{"--form", "stakater"}, "did you mean --from?", exitUsage},
		"Missing":     {[]string{"--from", "stakater", "-f", "/none.yaml"}, "/none.yaml: ", exitFailed},
		"NotYAML":     {[]string{"--from", "stakater", "-f", file(t, "a.yaml", "a: [\n"), good}, "a.yaml:1: ", exitFailed},
		"NotText":     {[]string{"--from", "stakater", "-f", file(t, "b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    reloader.stakater.com/ignore: true\n")}, "b.yaml:5: an annotation isn't text", exitFailed},
		"Empty":       {[]string{"--from", "stakater", "-f", file(t, "c.yaml", "")}, "0 objects with", exitFailed},
		"EvenFurther": {[]string{"--from", "stakater", "-f", good, good}, "2 files: 8 objects with stakater annotations", exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stderr, code := command(t, append([]string{"convert"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, tc.code, tc.want, stderr)
			}
		})
	}
}
