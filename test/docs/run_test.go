package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPagesRun plays the marked sessions of each page in their order, as a reader
// would who types everything, and compares what is printed. A page has its own two
// namespaces, whose names are put in the place of "shop" and "lockstep-system". Where
// the page installs the controller with Helm, it runs here as a process: the nodes of
// this control plane run no containers. What else a page needs is in surroundings_test.go.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	played := 0
	for _, p := range pages(t) {
		marked := slices.DeleteFunc(p.fences("console"), func(f fence) bool { return !f.isPlayed() })
		if len(marked) == 0 {
			continue
		}
		played++
		t.Run(p.path, func(t *testing.T) {
			t.Parallel()
			play(t, marked)
		})
	}
	if played < 3 {
		t.Errorf("only %d pages have a session to run", played)
	}
}

// TestNoSessionSleeps: how long to wait depends on the machine. A session waits with a
// command that ends, such as "kubectl rollout status", or shows a command that a reader can
// repeat.
func TestNoSessionSleeps(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, f := range p.fences("console") {
			for _, s := range f.steps() {
				sleeps := slices.ContainsFunc(calls(t, f.String(), s.command), func(c call) bool { return c.words[0] == "sleep" })
				if sleeps && f.isPlayed() {
					t.Errorf("%s: the session sleeps: %s", f, s.command)
				}
			}
		}
	}
}

func play(t *testing.T, sessions []fence) {
	t.Helper()
	r := newReader(t)
	r.surround(t, sessions)
	r.copyExamples(t)
	installed := slices.ContainsFunc(sessions, func(f fence) bool { return strings.Contains(f.text, "kubectl ") })
	if installed && !slices.ContainsFunc(sessions, func(f fence) bool { return f.marked("background") }) {
		r.background(t, "bin/lockstep controller")
	}
	for _, f := range sessions {
		started := r.started
		if f.marked("run while down") {
			r.stop(t)
		}
		for _, s := range f.steps() {
			switch {
			case f.marked("background"):
				r.background(t, s.command)
			case f.marked("run as view"):
				r.viewer(t).do(t, f, s)
			default:
				r.do(t, f, s)
			}
		}
		if f.marked("run while down") {
			r.background(t, started)
		}
	}
}

// reader is a person at a terminal, in a directory that looks like the repository's.
type reader struct {
	client  client.Client
	cluster *labtest.Cluster
	// names are those of the pages and, after each, the one that is used here.
	names []string
	dir   string
	env   []string
	// settings are variables that only the controller reads.
	settings   []string
	controller *labtest.Running
	// started is the command that started the controller.
	started string
	// view is the same person with fewer permissions, once a session asked for that.
	view *reader
}

func newReader(t *testing.T) *reader {
	t.Helper()
	cluster := labtest.Shared(t, labtest.KWOK)
	r := &reader{client: testkit.NewClient(t, cluster.Kubeconfig()), cluster: cluster, dir: t.TempDir()}
	own := labtest.Namespace(t, cluster)
	shop := own + "-shop"
	r.names = []string{"lockstep-system", own, "shop", shop}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		err := r.client.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
		if client.IgnoreNotFound(err) != nil { // a page need not have made it
			t.Error(err)
		}
	})
	r.link(t, "charts", filepath.Join(root(t), "charts"))
	bin := filepath.Join(r.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range tools(t) {
		r.link(t, filepath.Join("bin", name), path)
	}
	// Where a page installs something for all users of the machine.
	r.names = append(r.names, "/usr/local/bin", bin, "/etc/bash_completion.d", r.dir)
	r.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + r.dir, "KUBECONFIG=" + cluster.Kubeconfig(),
		"LOCKSTEP_OWN_NAMESPACE=" + own, "LOCKSTEP_CONTROLLER_NAMESPACE=" + own,
	}
	r.settings = []string{"LOCKSTEP_NAMESPACES=" + shop, "LOCKSTEP_QUIET=1s", "LOCKSTEP_SETTLE=1s", "LOCKSTEP_METRICS_ADDR=0", "LOCKSTEP_PROBE_ADDR=127.0.0.1:0"}
	return r
}

// named puts the names of this reader in the place of the pages'.
func (r *reader) named(text string) string { return strings.NewReplacer(r.names...).Replace(text) }

func (r *reader) link(t *testing.T, name, to string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// copyExamples brings the manifests of examples/, with the names of this reader.
func (r *reader) copyExamples(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("examples are %q, error %v", files, err)
	}
	dir := filepath.Join(r.dir, "examples")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(r.named(string(text)))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command to its end. Its output is not shown when the test fails: a command
// that waits for something is run many times.
func (r *reader) run(t *testing.T, command string) (output string, ok bool) {
	t.Helper()
	shell := r.shell(command)
	run := exec.CommandContext(t.Context(), shell.Path, shell.Args...)
	run.Env, run.Dir = append(os.Environ(), shell.Env...), shell.Dir
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.unscoped(string(out)), err == nil
}

// unscoped takes from a readiness what only the tests' control plane has: the namespace that
// the controller is kept to, and perhaps Argo Rollouts.
func (r *reader) unscoped(text string) string {
	text = regexp.MustCompile(`(?m)^(\[.\] .*) in `+r.named("shop")+`:`).ReplaceAllString(text, "$1:")
	return strings.ReplaceAll(text, "[+] rollouts: followed\n", "[-] rollouts: not installed in this cluster\n")
}

func (r *reader) shell(command string) labtest.Command {
	env := r.env
	if strings.HasPrefix(command, "lockstep-sync ") { // it is at home in a pod, which has no kubeconfig
		env = append(slices.Clone(env), "KUBECONFIG=")
	}
	return labtest.Command{Path: "/bin/bash", Args: []string{"-c", r.named(command)}, Env: env, Dir: r.dir}
}

// background starts a program that runs until the page ends. A controller takes the place of one that
// runs already.
func (r *reader) background(t *testing.T, command string) {
	t.Helper()
	if strings.HasPrefix(command, "lockstep-sync ") {
		labtest.StartCommand(t, r.shell("exec "+command))
		return
	}
	r.stop(t)
	controller := r.shell("exec " + command)
	controller.Env = slices.Concat(controller.Env, r.settings)
	r.started, r.controller = command, labtest.StartCommand(t, controller)
	testkit.Started(t, r.controller).AwaitReady(t, true)
}

// stop ends the controller, if one runs.
func (r *reader) stop(t *testing.T) {
	t.Helper()
	if r.controller != nil {
		r.controller.Stop(t)
	}
	r.controller = nil
}

// do runs a command, and compares its output with the one on the page, if there is one. A
// command that only reads is repeated until it prints what the page shows, as a reader
// would: Lockstep acts after a quiet window, and Kubernetes has no command that waits for it.
func (r *reader) do(t *testing.T, f fence, s step) {
	t.Helper()
	want := r.named(strings.Join(s.output, "\n"))
	try := func() (bool, string) {
		got, ok := r.run(t, s.command)
		ending := "ends without an error"
		if !ok {
			ending = "ends with an error"
		}
		return ok != wantsRefusal(s) && matches(want, got),
			fmt.Sprintf("%s: $ %s\n%s and prints:\n%s\nthe page shows:\n%s", f, s.command, ending, indented(got), indented(want))
	}
	if reads(s.command) {
		labtest.Eventually(t, testkit.Patience, try)
		return
	}
	r.awaitRevisions(t)
	if ok, why := try(); !ok {
		t.Fatal(why)
	}
	if r.controller != nil {
		r.settle(t)
	}
}

// awaitRevisions waits until Kubernetes has made a revision of each template, as it has
// long before a person's next command. Two writes that it sees at once are one revision, and
// the page's history has two.
func (r *reader) awaitRevisions(t *testing.T) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var list appsv1.DeploymentList
		if err := r.client.List(t.Context(), &list, client.InNamespace(r.named("shop"))); err != nil {
			return false, err.Error()
		}
		late := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return d.Status.ObservedGeneration < d.Generation })
		if late < 0 {
			return true, ""
		}
		return false, "Kubernetes has not seen the newest template of deployment " + list.Items[late].Name
	})
}

// reads: the command changes nothing.
func reads(command string) bool {
	return regexp.MustCompile(`^kubectl (-n \S+ )?(get|describe|logs) |^(bin/)?lockstep (explain|status|history|images|plan) |^lockstep-sync status |^curl -s \S+$|^curl -s \S+ \|`).MatchString(command)
}

// settle waits until the controller has seen every workload, as a person's next
// command would come seconds later.
func (r *reader) settle(t *testing.T) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got, _ := r.run(t, "lockstep status -n shop")
		return !strings.Contains(got, "NotOnRecord"), "the controller has not seen every workload:\n" + indented(got)
	})
}

// matches compares an output with the one of a page. "…" stands for any text, and in a line
// of its own for any number of lines. Times, digests and the width of columns may differ.
// A page that shows nothing says nothing.
func matches(page, got string) bool {
	page, got = plain(page), plain(got)
	if page == "" {
		return true
	}
	pattern := regexp.QuoteMeta(page)
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?s:.*\n)?`)
	pattern = regexp.MustCompile(`\n…$`).ReplaceAllString(pattern, `(?s:\n.*)?`)
	pattern = strings.ReplaceAll(pattern, "…", `(?s:.*)`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

func indented(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// plain takes from an output what differs between two runs.
func plain(text string) string {
	for _, part := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`\b(\d+h)?(\d+m)?\d+(ms|s|m|h)\b`, "AGE"},
		{`-[456789bcdf]{6,10}\b`, "-HASH"}, // of a ReplicaSet
		{`\b[0-9a-f]{10}\b`, "DIGEST"},
		{`\b\d+\.\d{4,}\b`, "NUMBER"},
		{`(version|lockstep) \d+\.\d+\.\d+\S*`, "$1 VERSION"},
		{`[ \t]+`, " "},
		{` ?\n ?`, "\n"},
	} {
		text = regexp.MustCompile(part.pattern).ReplaceAllString(text, part.with)
	}
	return strings.TrimSpace(text)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page, got string
		want      bool
	}{
		"the same":             {"a b", "a b\n", true},
		"another word":         {"a b", "a c", false},
		"columns":              {"NAME  AGE\nweb   5s", "NAME   AGE\nweb    1m20s", true},
		"a digest":             {"configmap/a 59f38cffe8", "configmap/a 36076b386a", true},
		"a line more":          {"a", "a\nb", false},
		"a measured number":    {"seconds_sum 24.637246650999998", "seconds_sum 9.00123", true},
		"a counted number":     {"seconds_count 4", "seconds_count 5", false},
		"left out":             {"a\n…\nz", "a\nb\nc\nz", true},
		"nothing to leave out": {"…\na\n…\nz\n…", "a\nz", true},
		"half a line":          {"…\na\n…", "xa\nay", false},
		"nothing is shown":     {"", "anything", true},
		"what must not be in":  {"State: InStep", "State: Held", false},
	} {
		if got := matches(c.page, c.got); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
