package cli_test

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// --help shows the fifteen flags that matter first, --help-all every one, each
// under one heading.
func TestHelpIsInGroups(t *testing.T) {
	short, _, _ := run(t, "--help")
	all, _, code := run(t, "--help-all")
	if code != 0 {
		t.Errorf("--help-all ends with %d", code)
	}
	flags := regexp.MustCompile(`(?m)^ +(?:-., )?--([a-z-]+)`)
	if n := len(flags.FindAllString(short, -1)); n != 15 {
		t.Errorf("--help shows %d flags, want 15:\n%s", n, short)
	}
	shown := map[string]int{}
	for _, found := range flags.FindAllStringSubmatch(all, -1) {
		shown[found[1]]++
	}
	cli.Document().Flags().VisitAll(func(f *pflag.Flag) {
		if shown[f.Name] != 1 {
			t.Errorf("--help-all shows --%s %d times", f.Name, shown[f.Name])
		}
	})
	at := 0
	for _, title := range []string{"Sources:", "Files:", "Check:", "Notify:", "Confirm:", "Failure:", "Process:", "Health:"} {
		next := strings.Index(all, "\n"+title+"\n")
		if next < at {
			t.Errorf("--help-all has no %s in its place", title)
		}
		at = next
	}
}

// explain says in order what would be watched, written, run and asked, and does
// nothing of it.
func TestExplain(t *testing.T) {
	root := filepath.Join(t.TempDir(), "config")
	stdout, stderr, code := run(t, "explain", "--configmap=web/app", "--root="+root, "--check=app -t {dir}", "--notify=http://me:hunter2@127.0.0.1:9090/-/reload?token=hunter2",
		"--http-header=X-Key: hunter2", "--notify=http://other/x bearer-file=/token timeout=3s", "--confirm=metric:up==1@http://127.0.0.1:9090/metrics", "--roll-back", "--health-addr=:8080")
	want := `watch    configmap/web/app, which must exist
wait     for 250ms without a change, at most 2s
stage    the complete set next to the current one
check    with app -t {dir}, within 30s
write    ` + root + `, layout links, files 0644, directories 0755
notify   POST http://127.0.0.1:9090/-/reload, within 10s, header X-Key
notify   POST http://other/x, within 3s, bearer token from /token
confirm  GET http://127.0.0.1:9090/metrics, within 10s, header X-Key until metric up==1, for 30s
failure  retry after 500ms, growing to 30s; after 5 failures the previous set is restored
serve    /healthz, /readyz, /startupz and /metrics on :8080
`
	if stdout != want || code != 0 {
		t.Errorf("code %d %s, got\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	if files := agentkit.Files(root); len(files) > 0 {
		t.Errorf("explain wrote %v", files)
	}
	if _, stderr, code := run(t, "explain", "--configmap=a"); code != 2 || !strings.Contains(stderr, "the root directory is missing") {
		t.Errorf("a mistake: code %d, %s", code, stderr)
	}
	stdout, _, code = run(t, "explain", "config-controller", "--configmap=web/app", "--configroot=/c", "--", "app", "-v")
	if code != 0 || !strings.Contains(stdout, "start    app -v, after the first set\nnotify   signal:HUP\n") {
		t.Errorf("code %d\n%s", code, stdout)
	}
}

// explain says something else for every flag that changes what the agent does.
func TestExplainLeavesNoFlagOut(t *testing.T) {
	base := []string{"explain", "--configmap=web/app", "--root=/config", "--notify=http://127.0.0.1:9090/-/reload", "--notify=exec:reload", "--confirm=http://127.0.0.1:9090/ok"}
	// These are about the program itself, or stand for flags that are shown.
	left := []string{"help", "help-all", "version", "install", "log-format", "log-level", "app", "app-file", "app-url", "app-socket", "no-check"}
	beside := map[string][]string{
		"stop-signal": {"--", "app"}, "stop-grace": {"--", "app"}, "selector-kinds": {"--selector=a=b"}, "namespace": {"--selector=a=b"}, "check-timeout": {"--check=true"},
		"http-key": {"--http-cert=/c"}, "http-cert": {"--http-key=/k"}, "uid": {"--dir-mode=0711"},
	}
	values := map[string]string{
		"selector": "a=b", "selector-kinds": "secret", "on-delete": "keep", "layout": "files", "file-mode": "0600", "dir-mode": "0700", "item": "a=b", "collision": "prefix",
		"notify": "signal:HUP@name:x", "confirm": "workers:name:x", "initial-notify": "always", "stop-signal": "INT", "http-header": "A: b", "http-codes": "202", "health-addr": ":1", "max-size": "1Gi",
	}
	cli.Document().Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(left, f.Name) {
			return
		}
		value := cmp.Or(values[f.Name], map[string]string{"duration": "7s", "int": "77", "bool": "true"}[f.Value.Type()], "x")
		flag := "--" + f.Name + "=" + value
		before, _, _ := run(t, append(slices.Clone(base), beside[f.Name]...)...)
		after, stderr, code := run(t, append(append(slices.Clone(base), flag), beside[f.Name]...)...)
		if code != 0 || after == before {
			t.Errorf("%s: code %d, %s, explained as\n%s", flag, code, stderr, after)
		}
	})
}

// The first line of the log says what runs with what, without arguments that may
// be secret; then each thing that happened has its own word.
func TestTheLogTellsWhatHappened(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	agentkit.Write(t, filepath.Join(source, "a"), "1")
	a := agentkit.Run(t, "--directory="+source, "--check=sh -c '! grep bad {dir}/a'", "--notify=exec:true hunter2", "--initial-notify=always")
	a.WantFiles(map[string]string{"a": "1"})
	agentkit.Write(t, filepath.Join(source, "a"), "bad")
	a.WantLog("refused: ")
	first, _, _ := strings.Cut(a.Stderr(), "\n")
	for _, want := range []string{"version=", `sources="directory ` + source, "root=" + a.Root, `check="sh …"`, `notify="command true …"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the first line has no %s:\n%s", want, first)
		}
	}
	at := 0
	for _, want := range []string{"msg=checked ", "msg=published ", "msg=notified ", `msg="refused: run sh: exit status 1" `} {
		next := strings.Index(a.Stderr(), want)
		if next < at {
			t.Errorf("the log does not say %s in its place", want)
		}
		at = next
	}
	for _, never := range []string{"hunter2", "NotDelivered", "failures=0"} {
		if strings.Contains(a.Stderr(), never) {
			t.Errorf("the log says %s:\n%s", never, a.Stderr())
		}
	}
}
