package cli_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// run runs the command line in this process.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: append([]string{"lockstep-sync"}, args...), Lookup: func(string) (string, bool) { return "", false },
		Stdout: &out, Stderr: &errs, Now: time.Now, Version: "test",
	})
	return out.String(), errs.String(), code
}

// Every mistake is one line that says what is wrong, before anything is touched.
func TestMistakesOnTheCommandLine(t *testing.T) {
	source := t.TempDir()
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(source, alias); err != nil {
		t.Fatal(err)
	}
	good := []string{"--directory=" + source, "--root=" + filepath.Join(t.TempDir(), "config")}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                 {nil, "no source: set a configmap, a secret, a selector or a directory"},
		"no root":                 {[]string{"--configmap=app"}, "the root directory is missing"},
		"dashes alone":            {append(good, "--"), "there is no command after --"},
		"stray argument":          {append(good, "nginx"), "the application's command comes after --"},
		"unknown flag":            {[]string{"--confgmap=x"}, "unknown flag: --confgmap; did you mean --configmap?\nUsage: lockstep-sync [flags] [-- COMMAND ARGS…]\nRun"},
		"flag of a command":       {[]string{"status", "--rot=/x"}, "unknown flag: --rot; did you mean --root?\nUsage: lockstep-sync status --root DIRECTORY [flags]\nRun"},
		"unknown command":         {[]string{"stauts", "--output=json"}, `unknown command "stauts"; did you mean status?`},
		"unknown program":         {[]string{"k8s-sidecra"}, `unknown command "k8s-sidecra"; did you mean k8s-sidecar?`},
		"flag of a predecessor":   {[]string{"config-controller", "--configrot=/c"}, "unknown flag: --configrot; did you mean --configroot?"},
		"bad duration":            {append(good, "--quiet=soon"), `--quiet "soon": want a duration, such as 30s or 5m`},
		"bad selected kind":       {append(good, "--selector=a=b", "--selector-kinds=pod"), `--selector-kinds "pod": want configmap (cm) or secret`},
		"bad log level":           {append(good, "--log-level=loud"), `--log-level "loud": want debug, info, warn or error`},
		"bad URL":                 {append(good, "--notify=http:///x"), `URL "http:///x": want http://host:port/path`},
		"unknown way to tell":     {append(good, "--notify=mail:me"), `notify "mail:…": want a URL, signal:…`},
		"misspelt URL":            {append(good, "--notify=htp://foo"), `notify "htp:…": want a URL`},
		"unknown way to ask":      {append(good, "--confirm=htp://foo"), `confirm "htp:…": want a URL`},
		"unknown signal":          {append(good, "--notify=signal:FOO@name:x"), `signal "FOO" is unknown`},
		"signal without a target": {append(good, "--notify=signal:HUP"), "there is no child to signal"},
		"restart without a child": {append(good, "--notify=restart"), "there is no child"},
		"path leaves the root":    {append(good, "--item=a=../b"), `path "../b" leaves the root`},
		"absolute path":           {append(good, "--item=a=/etc/passwd"), "is absolute; make it relative to the root"},
		"reserved path":           {append(good, "--item=a=..data"), "names that begin with two dots are reserved"},
		"bad mode":                {append(good, "--file-mode=rw"), `mode "rw": want an octal number`},
		"mode nobody can read":    {append(good, "--file-mode=0"), "want permission bits with at least 0400"},
		"bad codes":               {append(good, "--http-codes=ok"), "HTTP codes"},
		"bad collision":           {append(good, "--collision=last"), `collision policy "last": want error, prefix or first`},
		"bad layout":              {append(good, "--layout=tree"), `layout "tree": want links, exchange or files`},
		"bad name":                {append(good, "--configmap=a/b/c"), `configmap "a/b/c": want NAME or NAMESPACE/NAME`},
		"bad selector":            {append(good, "--selector=a in (b"), "label selector"},
		"bad health address":      {append(good, "--health-addr=8080"), `--health-addr "8080": want host:port or :port`},
		"bad confirm":             {append(good, "--confirm=metric:x@http://h/"), "confirm metric"},
		"confirm without a URL":   {append(good, "--confirm=metric:x>before"), "add a URL, such as"},
		"compared, never told":    {append(good, "--confirm=metric:x>before@http://h/"), "add a --notify"},
		"no stall deadline":       {append(good, "--stall-deadline=0"), "--stall-deadline 0s: want a positive time"},
		"bad expression":          {append(good, "--confirm=body:[@http://h/"), "confirm body"},
		"bad check":               {append(good, "--check='"), "check: a quote or a backslash is not closed"},
		"unknown application":     {append(good, "--app=iis"), `application "iis": want one of apache, haproxy, nginx`},
		"haproxy without socket":  {append(good, "--app=haproxy"), "--app-socket"},
		"roll-back of a mount":    {[]string{"--directory=" + source, "--roll-back"}, "rolling back needs a root"},
		"short stall deadline":    {[]string{"--configmap=a", "--root=/x", "--stall-deadline=1s"}, "stall deadline 1s: want at least 4s"},
		"once with a command":     {append(good, "--once", "--", "true"), "--once exits after publishing and doesn't start a command"},
		"no pause between looks":  {append(good, "--rescan=0"), "--rescan 0s: want a positive time"},
		"negative pause":          {append(good, "--poll=-1s"), "--poll -1s: want a positive time"},
		"no time to tell":         {append(good, "--notify-timeout=0"), "--notify-timeout 0s: want a positive time"},
		"no time to check":        {append(good, "--check-timeout=0"), "--check-timeout 0s: want a positive time"},
		"no time to confirm":      {append(good, "--confirm=http://h/", "--confirm-timeout=0"), "confirm timeout 0s: want a positive time"},
		"no time to answer":       {append(good, "--notify=http://h/", "--http-timeout=0"), "HTTP timeout 0s: want a positive time"},
		"no time to end":          {append(good, "--stop-grace=0", "--", "true"), "grace 0s: want a positive time"},
		"negative quiet":          {append(good, "--quiet=-1s"), "quiet period -1s: must not be negative"},
		"negative keep":           {append(good, "--keep-old=-1s"), "grace -1s: must not be negative"},
		"no retry pause":          {append(good, "--retry=0"), "retry pause 0s"},
		"no failures":             {append(good, "--max-failures=0"), "maximum failures 0: want at least 1"},
		"owner that cannot be":    {append(good, "--uid=-2"), "owner -2: want a user or group ID, or -1"},
		"group that cannot be":    {append(good, "--gid=4294967296"), "owner 4294967296: want a user or group ID, or -1"},
		"status with arguments":   {[]string{"status", "x"}, "unknown command"},
		"status in no format":     {[]string{"status", "--root=/x", "-o", "yaml"}, `output "yaml": want text or json`},
		"status in no layout":     {[]string{"status", "--root=/x", "--layout=tree"}, `layout "tree": want links, exchange or files`},
		"install nowhere":         {[]string{"install"}, "accepts 1 arg(s), received 0"},
		"root in its directory":   {[]string{"--directory=" + source, "--root=" + filepath.Join(source, "out")}, "contain one another: use separate directories"},
		"directory in its root":   {[]string{"--directory=" + filepath.Join(source, "in"), "--root=" + source}, "contain one another"},
		"root is the directory":   {[]string{"--directory=" + source, "--root=" + source + "/."}, "contain one another"},
		"root by another name":    {[]string{"--directory=" + source, "--root=" + filepath.Join(alias, "out")}, "contain one another"},
		"bad option of a URL":     {append(good, "--notify=http://h/ token=x"), `http://h/ has no option "token"`},
		"bad log format":          {append(good, "--log-format=xml"), `--log-format "xml"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := run(t, c.args...)
			if code != 2 || !strings.Contains(stderr, c.want) {
				t.Errorf("code %d: %s", code, stderr)
			}
			lines := 2
			if strings.Contains(stderr, "\nUsage: lockstep-sync ") { // of a wrong flag
				lines = 3
			}
			if strings.Count(stderr, "\n") != lines || !strings.HasPrefix(stderr, "Error: ") || !strings.HasSuffix(stderr, " --help\" for usage.\n") {
				t.Errorf("want the mistake and how to get help:\n%s", stderr)
			}
		})
	}
}

func TestMissingDirectory(t *testing.T) {
	_, stderr, code := run(t, "--directory=/does/not/exist", "--root="+t.TempDir())
	if code != 1 || !strings.Contains(stderr, "directory /does/not/exist not found: create it, or use --wait-for-sources to wait for it") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// Advice names only what the command line has.
func TestAdvice(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	root := filepath.Join(t.TempDir(), "config")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"native":            {[]string{"--configmap=app", "--root=" + root}, ": outside a cluster use --kubeconfig or set KUBECONFIG\n"},
		"config-controller": {[]string{"config-controller", "--configmap=app", "--configroot=" + root, "--reload-http=http://h/"}, ": outside a cluster use --kubeconfig\n"},
		"configmap-reload":  {[]string{"configmap-reload", "--volume-dir=/does/not/exist", "--webhook-url=http://h/"}, "directory /does/not/exist not found: create it\n"},
	} {
		if _, stderr, code := run(t, c.args...); code != 1 || !strings.HasSuffix(stderr, c.want) {
			t.Errorf("%s: code %d: %s", name, code, stderr)
		}
	}
}

// Each program whose place is taken has a usage of its own, and ours names it.
func TestHelpOfPredecessors(t *testing.T) {
	ours, _, _ := run(t, "--help")
	for name, want := range map[string][]string{
		"config-controller": {"--reload-http-method", "CONFIG_CONTROLLER_URL"},
		"k8s-sidecar":       {"LABEL_VALUE", "HEALTH_PORT", "8080"},
		"configmap-reload":  {"-webhook-url", ":9533"},
	} {
		for _, flag := range []string{"--help", "-h"} {
			stdout, stderr, code := run(t, name, flag)
			if code != 0 || stderr != "" || !strings.Contains(stdout, "Usage:\n") {
				t.Errorf("%s %s: code %d, stderr %q, stdout:\n%s", name, flag, code, stderr, stdout)
			}
			if explained, stderr, code := run(t, "explain", name, flag); code != 0 || stderr != "" || explained != stdout {
				t.Errorf("explain %s %s: code %d, stderr %q, stdout:\n%s", name, flag, code, stderr, explained)
			}
			for _, word := range want {
				if !strings.Contains(stdout, word) {
					t.Errorf("%s %s does not name %s", name, flag, word)
				}
			}
		}
		if !strings.Contains(ours, "\n    "+name+" ") {
			t.Errorf("--help does not name %s", name)
		}
	}
}

// A preset whose checker is not there is refused, not run without.
func TestPresetWithoutItsChecker(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, stderr, code := run(t, "--directory="+t.TempDir(), "--root="+t.TempDir(), "--app=nginx")
	if code != 2 || !strings.Contains(stderr, "this image doesn't contain the checker nginx") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestStatus(t *testing.T) {
	root := t.TempDir()
	if _, stderr, code := run(t, "status"); code != 2 || !strings.Contains(stderr, "set --root to the agent's, and --layout") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if _, stderr, code := run(t, "status", "--root="+root); code != 1 || !strings.Contains(stderr, "is its --layout links?") {
		t.Errorf("code %d: %s", code, stderr)
	}
	agentkit.Write(t, filepath.Join(root, "..lockstep", "status.json"), `{"published":"aaa","observed":"bbb","rejected":"bbb","confirmed":"aaa","reason":"Rejected",
		"message":"run nginx: exit status 1","checkOutput":"nginx: [emerg] line 3\n","files":1,"bytes":10,"healthy":true,"degraded":true,
		"updated":"2026-11-15T02:53:30Z","sources":[{"name":"configmap/web/nginx","state":"read"}]}`)
	stdout, stderr, code := run(t, "status", "--root="+root, "--check")
	want := "observed   bbb\npublished  aaa  1 file, 10 bytes\nconfirmed  aaa  \nreason     Rejected\nrejected   bbb\nmessage    run nginx: exit status 1\n" +
		"source     configmap/web/nginx  read  \nupdated    2026-11-15 02:53:30 UTC\nthe checker printed:\nnginx: [emerg] line 3\n"
	if stdout != want || code != 0 {
		t.Errorf("code %d %s, got\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	agentkit.Write(t, filepath.Join(root, "..lockstep", "status.json"), `{"published":"aaa","healthy":false}`)
	if _, _, code := run(t, "status", "--root="+root, "--check"); code != 1 {
		t.Errorf("unhealthy: code %d", code)
	}
}

// The reference explains every reason, and the pages name only flags that exist.
func TestDocumentation(t *testing.T) {
	guide, reference := agentkit.Read("../../../docs/guides/sync.md"), agentkit.Read("../../../docs/reference/sync.md")
	file, err := parser.ParseFile(token.NewFileSet(), "../feature/podsync/decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Reason" && !strings.Contains(reference, "`"+spec.Names[0].Name+"`") {
				t.Errorf("docs/reference/sync.md does not explain the reason %s", spec.Names[0].Name)
			}
		}
		return true
	})
	help, _, _ := run(t, "--help-all")
	for _, word := range strings.FieldsFunc(guide+reference, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz-", r) }) {
		if strings.HasPrefix(word, "--") && strings.Trim(word, "-") != "" && !strings.Contains(help, word) && word != "--check" && word != "--config-file" {
			t.Errorf("docs/guides/sync.md or docs/reference/sync.md names the flag %s, which does not exist", word)
		}
	}
}

// The examples pass the API server's strict validation.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	names, err := filepath.Glob("../../../examples/sync/*.yaml")
	if err != nil || len(names) < 3 {
		t.Fatalf("examples %v (%v)", names, err)
	}
	paths := map[string]string{
		"ServiceAccount": "/api/v1/namespaces/%/serviceaccounts", "ConfigMap": "/api/v1/namespaces/%/configmaps",
		"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/%/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/%/rolebindings",
		"Deployment": "/apis/apps/v1/namespaces/%/deployments", "StatefulSet": "/apis/apps/v1/namespaces/%/statefulsets",
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		accounts, used := map[any]bool{}, map[any]bool{}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var object map[string]any
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			path, known := paths[object["kind"].(string)]
			if !known {
				t.Fatalf("%s: unexpected kind %v", name, object["kind"])
			}
			switch object["kind"] {
			case "ServiceAccount":
				accounts[object["metadata"].(map[string]any)["name"]] = true
			case "Deployment", "StatefulSet":
				template := object["spec"].(map[string]any)["template"].(map[string]any)
				used[template["spec"].(map[string]any)["serviceAccountName"]] = true
			}
			c.do(http.MethodPost, strings.ReplaceAll(path, "%", c.namespace)+"?dryRun=All&fieldValidation=Strict", "application/json", json.RawMessage(mustJSON(t, object)))
		}
		if !maps.Equal(accounts, used) {
			t.Errorf("%s: it uses the accounts %v and creates %v", name, used, accounts)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
