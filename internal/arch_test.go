// Package internal_test holds the code to what ARCHITECTURE.md promises.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/lockstep-dev/lockstep"

// pkg is what the go command says of a package.
type pkg struct {
	ImportPath   string
	Doc          string
	GoFiles      []string
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

// short is the path inside the module: "internal/core/input".
func short(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// packages lists the module's packages; the go command is asked once.
var packages = sync.OnceValues(func() ([]pkg, error) {
	if err := touchSources(); err != nil {
		return nil, err
	}
	command := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports,Deps,TestImports,XTestImports", "./...")
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		list = append(list, p)
	}
})

// touchSources looks at every Go file. The go command remembers which files a
// test looked at and runs it again when one has changed; it does not see what a
// program looks at that the test runs.
func touchSources() error {
	return filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != ".." {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	})
}

// packagesUnder are those in a directory; "" is the whole module.
func packagesUnder(t *testing.T, dir string) []pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(p pkg) bool { return dir != "" && !isUnder(short(p.ImportPath), dir) })
	if len(found) == 0 {
		t.Fatalf("no package is under %q", dir)
	}
	return found
}

// rule says what the packages under a directory must not import.
type rule struct {
	reason string
	under  string
	// except are directories below it to which the rule does not apply.
	except []string
	// denied are import paths with all that is below them; "=" marks a single one.
	denied []string
}

func rules() []rule {
	labtest := module + "/internal/labtest"
	all := []rule{
		serverRule(), uiRule(),
		{
			reason: "the lab is for tests, the demo and benchmarks",
			under:  "internal", except: []string{"internal/labtest"},
			denied: []string{labtest, module + "/test", module + "/lab", module + "/release"},
		},
		{
			reason: "the product never links the lab",
			under:  "cmd",
			denied: []string{labtest, module + "/test", module + "/lab", module + "/bench", module + "/release"},
		},
		{
			reason: "the lab's command is compiled before anything else on a bare machine",
			under:  "internal/labtest",
			denied: []string{"k8s.io", "sigs.k8s.io"},
		},
		{
			reason: "the lab knows programs, paths and kubeconfigs",
			under:  "lab",
			denied: []string{"k8s.io", "sigs.k8s.io"},
		},
	}
	return slices.Concat(layers("internal"), layers("internal/agent"), all)
}

func serverRule() rule {
	return rule{
		reason: "the server is wiring and knows no capability",
		under:  "internal/server",
		denied: outward("internal", "adapter", "feature", "dropin", "run", "ui", "cli"),
	}
}

func uiRule() rule {
	return rule{
		reason: "the pages are a front end beside the command line, which starts them",
		under:  "internal/ui",
		denied: append(outward("internal", "server", "dropin", "run", "cli"), "github.com/spf13", "html/template", "text/template"),
	}
}

// layers are the rules that each program keeps inside its own rooms, from the inside out.
func layers(room string) []rule {
	return []rule{
		{
			reason: "the core is values in, values out",
			under:  room + "/core",
			denied: append(outward(room, "adapter", "feature", "server", "dropin", "run", "cli"),
				"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "=context", "=os", "os/exec", "=net", "net/http", "log",
				"github.com/go-logr/logr"),
		},
		{
			reason: "adapters know no capability",
			under:  room + "/adapter",
			denied: outward(room, "feature", "server", "dropin", "run", "cli"),
		},
		{
			reason: "a capability knows no process and no command line",
			under:  room + "/feature",
			denied: append(outward(room, "server", "dropin", "run", "cli"), "github.com/spf13"),
		},
		{
			reason: "what puts a program together knows no flags, and no predecessor",
			under:  room + "/run",
			denied: append(outward(room, "dropin", "cli"), "github.com/spf13"),
		},
		{
			reason: "a predecessor knows none of our own commands",
			under:  room + "/dropin",
			denied: outward(room, "cli"),
		},
	}
}

// outward are import paths of layers that lie further out.
func outward(room string, layers ...string) []string {
	paths := make([]string, len(layers))
	for i, layer := range layers {
		paths[i] = module + "/" + room + "/" + layer
	}
	return paths
}

func (r rule) appliesTo(path string) bool {
	return isUnder(path, r.under) && !slices.ContainsFunc(r.except, func(e string) bool { return isUnder(path, e) })
}

func (r rule) denies(path string) bool {
	return slices.ContainsFunc(r.denied, func(d string) bool {
		if single, ok := strings.CutPrefix(d, "="); ok {
			return path == single
		}
		return isUnder(path, d)
	})
}

func isUnder(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

func TestImportsPointInward(t *testing.T) {
	t.Parallel()
	for _, p := range packagesUnder(t, "") {
		for _, r := range rules() {
			if !r.appliesTo(short(p.ImportPath)) {
				continue
			}
			for _, imported := range p.Imports {
				if r.denies(imported) {
					t.Errorf("%s -> %s: %s", short(p.ImportPath), imported, r.reason)
				}
			}
		}
	}
}

// TestTwoPrograms: the agent runs in every pod and the controller once per cluster. Neither
// links a package of the other; they share how a command line reads, where a program listens, how memory is returned and
// when a server wants the next request.
func TestTwoPrograms(t *testing.T) {
	t.Parallel()
	shared := []string{"internal/commandline", "internal/listener", "internal/memory", "internal/retryafter"}
	for _, p := range packagesUnder(t, "cmd") {
		agent := short(p.ImportPath) == "cmd/lockstep-sync"
		linked := 0
		for _, dep := range p.Deps {
			if !isUnder(dep, module+"/internal") || slices.Contains(shared, short(dep)) {
				continue
			}
			linked++
			if isUnder(short(dep), "internal/agent") != agent {
				t.Errorf("%s links %s", short(p.ImportPath), short(dep))
			}
		}
		if linked == 0 {
			t.Errorf("%s links no package of its own", short(p.ImportPath))
		}
	}
}

// TestRulesFindSomething: a rule that is misspelled would allow everything.
func TestRulesFindSomething(t *testing.T) {
	t.Parallel()
	all := packagesUnder(t, "")
	for _, r := range rules() {
		if !slices.ContainsFunc(all, func(p pkg) bool { return r.appliesTo(short(p.ImportPath)) }) {
			t.Errorf("no package is under %s", r.under)
		}
	}
	core := rules()[0]
	for path, want := range map[string]bool{"os": true, "os/exec": true, "net": true, "net/url": false, "log/slog": true, "context": true, "strings": false, "k8s.io/api/core/v1": false} {
		if got := core.denies(path); got != want {
			t.Errorf("the core may import %s: %t", path, !got)
		}
	}
}

// TestDecisionsSeeNoAdapter: a decision is values in, values out, like the core, so
// that a command can ask it without a cluster.
func TestDecisionsSeeNoAdapter(t *testing.T) {
	t.Parallel()
	var files []string
	for _, room := range []string{"feature", filepath.Join("agent", "feature")} {
		found, err := filepath.Glob(filepath.Join(room, "*", "decide*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%d decisions were found in %s, error %v", len(found), room, err)
		}
		files = append(files, found...)
	}
	core := rules()[0]
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); core.denies(path) {
				t.Errorf("internal/%s -> %s: %s", name, path, core.reason)
			}
		}
	}
}

// eachNode visits the code below these directories, without tests.
func eachNode(t *testing.T, dirs []string, visit func(path string, node ast.Node)) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for node := range ast.Preorder(file) {
				visit(filepath.ToSlash(path), node)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestListsArePaged: a list has as many objects as tenants make, of any size. Only these lists are not
// read by the package pages.
func TestListsArePaged(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"adapter/pages/pages.go":       "it reads pages",
		"adapter/lineage/history.go":   "one object, by its name",
		"adapter/patcher/podowners.go": "one object, by its name",
		"adapter/patcher/pods.go":      "it isn't a client's list",
		"cli/nearest.go":               "it has a limit",
		"feature/rollouts/act.go":      "it isn't a client's list",
	}
	used := maps.Clone(allowed)
	eachNode(t, []string{"adapter", "feature", "run", "dropin", "cli", "ui", "server"}, func(path string, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "List" {
			return
		}
		if allowed[path] == "" {
			t.Errorf("internal/%s lists without pages", path)
		}
		delete(used, path)
	})
	for path := range used {
		t.Errorf("internal/%s has no list any more", path)
	}
}

// TestOnlyTheCommandLineKnowsFlags: an error below it says what is wrong, and the
// command line how its flags are spelled. The packages that put a program together read no flags
// and link no command library, but they may name one in advice to the user: they alone know
// which option a missing part needs, and their only user is the command line.
func TestOnlyTheCommandLineKnowsFlags(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`(^|[^-\w])--[a-z][a-z-]+`)
	eachNode(t, []string{"core", "adapter", "feature", "server", "agent/core", "agent/adapter", "agent/feature"}, func(path string, node ast.Node) {
		// The presets run other programs, whose flags they know.
		if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && flag.MatchString(text.Value) && !strings.Contains(text.Value, "postgres ") {
			t.Errorf("internal/%s names a flag: %s", path, text.Value)
		}
	})
	for _, p := range slices.Concat(packagesUnder(t, "internal/run"), packagesUnder(t, "internal/agent/run")) {
		for _, dep := range p.Deps {
			if isUnder(dep, "github.com/spf13/cobra") { // client-go links pflag
				t.Errorf("%s links %s", short(p.ImportPath), dep)
			}
		}
	}
}

// TestFeaturesDoNotImportOneAnother: but for ask, which answers with the loop's own decision
// on the loop's own inputs, so that no answer contradicts it.
func TestFeaturesDoNotImportOneAnother(t *testing.T) {
	t.Parallel()
	const features = "internal/feature/"
	for _, p := range packagesUnder(t, strings.TrimSuffix(features, "/")) {
		own, _, _ := strings.Cut(strings.TrimPrefix(short(p.ImportPath), features), "/")
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			other, ok := strings.CutPrefix(short(imported), features)
			if !ok {
				continue
			}
			if name, _, _ := strings.Cut(other, "/"); name != own && (own != "ask" || name != "rollouts" && name != "configs" && name != "images") {
				t.Errorf("%s -> %s: capabilities are joined by the command line", short(p.ImportPath), short(imported))
			}
		}
	}
}

// TestProductLinksNothingOfTheLab looks at everything that ends up in a binary.
func TestProductLinksNothingOfTheLab(t *testing.T) {
	t.Parallel()
	lab := append(labModules(t), module+"/internal/labtest", module+"/lab", module+"/test", module+"/release", "testing")
	for _, p := range packagesUnder(t, "cmd") {
		for _, dep := range p.Deps {
			if slices.ContainsFunc(lab, func(l string) bool { return isUnder(dep, l) }) {
				t.Errorf("%s links %s", short(p.ImportPath), dep)
			}
		}
	}
}

// labModules are the modules that the lab's programs are built from.
func labModules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "lab", "*", "go.mod"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d modules of the lab, error %v", len(files), err)
	}
	program := regexp.MustCompile(`(?m)^(?:tool |\t)([a-z0-9.-]+\.[a-z]+/[^ ]+)$`)
	var modules []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := program.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no program", file)
		}
		for _, match := range found {
			name, _, _ := strings.Cut(string(match[1]), "/cmd/")
			modules = append(modules, name)
		}
	}
	return modules
}

// TestStructsHaveParts: a reader can't keep a long list of fields in mind. Fields that belong
// together make a struct with a name of its own. It reads non-test files only: the cases of a
// table have as many fields as the decision that they are about.
func TestStructsHaveParts(t *testing.T) {
	t.Parallel()
	const most = 15
	for _, p := range packagesUnder(t, "") {
		for _, name := range p.GoFiles {
			path := filepath.Join("..", filepath.FromSlash(short(p.ImportPath)), name)
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for node := range ast.Preorder(file) {
				if s, ok := node.(*ast.StructType); ok && s.Fields.NumFields() > most {
					t.Errorf("%s: a struct of %d fields, want at most %d", set.Position(s.Pos()), s.Fields.NumFields(), most)
				}
			}
		}
	}
}

// TestFewExceptions: at most one line of product code in two thousand silences a linter.
func TestFewExceptions(t *testing.T) {
	t.Parallel()
	const most = 0.5 // per thousand lines
	exceptions, lines := 0, 0
	for _, p := range slices.Concat(packagesUnder(t, "internal"), packagesUnder(t, "cmd")) {
		dir := short(p.ImportPath)
		if isUnder(dir, "internal/labtest") || isUnder(dir, "internal/docgen") {
			continue
		}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(dir), name))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
			exceptions += bytes.Count(text, []byte("//nolint"))
		}
	}
	if ratio := 1000 * float64(exceptions) / float64(lines); ratio > most {
		t.Errorf("%d exceptions in %d lines are %.2f per thousand, want at most %.1f", exceptions, lines, ratio, most)
	}
}

func TestEveryPackageSaysWhatItKnows(t *testing.T) {
	t.Parallel()
	for _, p := range packagesUnder(t, "") {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", short(p.ImportPath))
		}
	}
}

// TestDocumentedPathsExist: a map with a street that is gone misleads.
func TestDocumentedPathsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`((?:cmd|internal|lab|test|docs|charts|bench|examples|release)/[A-Za-z0-9_./-]*)`").FindAllSubmatch(text, -1)
	if len(paths) == 0 {
		t.Error("ARCHITECTURE.md names no path; either it is no map or this test reads it wrongly")
	}
	for _, match := range paths {
		path := string(match[1])
		if _, err := os.Stat(filepath.Join("..", strings.TrimSuffix(path, "/..."))); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", path, err)
		}
	}
}

// TestCodeMapIsComplete: the map names every package of the controller's inner rooms, and none
// that is gone.
func TestCodeMapIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	name := regexp.MustCompile("`([a-z]+/)?([a-z]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`(core|adapter|feature)/[^|]*)").FindAllStringSubmatch(string(text), -1) {
		for _, match := range name.FindAllStringSubmatch(row[1], -1) {
			named = append(named, "internal/"+row[2]+"/"+match[2])
		}
	}
	var exist []string
	for _, room := range []string{"core", "adapter", "feature"} {
		for _, p := range packagesUnder(t, "internal/"+room) {
			if path := short(p.ImportPath); strings.Count(path, "/") == 2 {
				exist = append(exist, path)
			}
		}
	}
	slices.Sort(named)
	slices.Sort(exist)
	if diff := cmp.Diff(exist, named); diff != "" {
		t.Errorf("ARCHITECTURE.md (+) and the packages (-):\n%s", diff)
	}
}
