package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamedTestsExist: a page that says which test shows something names one that exists, and only
// one: a name that several packages use has its directory before it, as in `test/safe.TestWindow`.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	declared, mentioned := declaredTests(t), 0
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" { // it tells of tests of its time
			continue
		}
		for _, m := range mentions(string(p.source)) {
			mentioned++
			found := declared.find(m)
			if len(found) == 0 {
				t.Errorf("%s names %s, and there is no such test", p.path, m)
			}
			// The sections of that page say which directory they mean.
			if len(found) > 1 && p.path != "docs/contributing/defects.md" {
				t.Errorf("%s names %s, which may be one of %q: write the directory before it", p.path, m, found)
			}
		}
	}
	if mentioned < 50 {
		t.Errorf("only %d tests are named in the pages", mentioned)
	}
}

// TestMentions: what counts as the name of a test.
func TestMentions(t *testing.T) {
	t.Parallel()
	declared := declare(map[string]string{
		"internal/ui": "func TestGuard(t *testing.T) {\n\tfor name, tc := range cases() {",
		"test/ui":     "func TestGuard(t *testing.T) {\n\tt.Run(\"No token\", one)",
		"test/e2e":    "func TestUndo(t *testing.T) {\n\tt.Run(\"group\", all(map[string]int{\"Twice\": 2}))",
	})
	for text, c := range map[string]struct {
		reason string
		want   []string
	}{
		"`TestUndo`":             {"the only one of its name", []string{"test/e2e"}},
		"`TestUndo/group/Twice`": {"with cases", []string{"test/e2e"}},
		"`TestUndo/Thrice`":      {"it has no such case", nil},
		"`TestRedo`":             {"no such test", nil},
		"`TestGuard`":            {"two packages have it", []string{"internal/ui", "test/ui"}},
		"`ui.TestGuard`":         {"the last part of both directories", []string{"internal/ui", "test/ui"}},
		"`test/ui.TestGuard`":    {"one of them", []string{"test/ui"}},
		"`i.TestGuard`":          {"a directory, and not the end of one", nil},
		"`TestGuard/No_token`":   {"Go writes underscores for spaces", []string{"test/ui"}},
	} {
		for _, m := range mentions(text) {
			if got := declared.find(m); !slices.Equal(got, c.want) {
				t.Errorf("%s: %s is found in %q, want %q", c.reason, text, got, c.want)
			}
		}
		if n := len(mentions(text)); n != 1 {
			t.Errorf("%s is %d mentions, want one", text, n)
		}
	}
}

// TestPromisesNameATest: each row of the tables says in its second column what shows the first.
func TestPromisesNameATest(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, p := range pages(t) {
		if path.Dir(p.path) != "docs/contributing/promises" {
			continue
		}
		for line := range strings.Lines(string(p.source)) {
			cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), " |")
			if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
				continue
			}
			rows++
			if strings.TrimSpace(cells[1]) == "" {
				t.Errorf("%s: no test shows %q", p.path, strings.TrimPrefix(cells[0], "| "))
			}
		}
	}
	if rows < 300 {
		t.Errorf("only %d rows are read", rows)
	}
}

// mention is a test that a page names: `TestUndo/group/Twice`, `test/ui.TestGuard`.
type mention struct {
	dir, name string
	cases     []string
}

func (m mention) String() string {
	return strings.TrimPrefix(m.dir+".", ".") + strings.Join(append([]string{m.name}, m.cases...), "/")
}

// mentions are the tests that a text names.
func mentions(text string) []mention {
	var all []mention
	for _, found := range regexp.MustCompile("`(?:([\\w/-]+)\\.)?(Test[A-Z]\\w*)((?:/\\w+)*)`").FindAllStringSubmatch(text, -1) {
		all = append(all, mention{dir: found[1], name: found[2], cases: strings.FieldsFunc(found[3], func(r rune) bool { return r == '/' })})
	}
	return all
}

// declarations are the directories that have a test of a name, with the source of all tests there.
type declarations map[string]map[string]string

// declare reads the tests of directories.
func declare(sources map[string]string) declarations {
	d, declared := declarations{}, regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	for dir, source := range sources {
		for _, found := range declared.FindAllStringSubmatch(source, -1) {
			if d[found[1]] == nil {
				d[found[1]] = map[string]string{}
			}
			d[found[1]][dir] = source
		}
	}
	return d
}

// find lists the directories that a mention may mean.
func (d declarations) find(m mention) []string {
	var found []string
	for dir, source := range d[m.name] {
		if (m.dir == "" || strings.HasSuffix("/"+dir, "/"+m.dir)) && hasCases(source, m.cases) {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	return found
}

// hasCases reports whether a package's tests contain the names of cases. They may be in a table
// that another function returns.
func hasCases(source string, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		quoted := regexp.MustCompile(`"` + strings.ReplaceAll(regexp.QuoteMeta(name), "_", "[_ ]") + `"`)
		return !quoted.MatchString(source)
	})
}

// declaredTests are the tests of the repository.
func declaredTests(t *testing.T) declarations {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root(t), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir, err := filepath.Rel(root(t), filepath.Dir(file))
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		found[filepath.ToSlash(dir)] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return declare(found)
}
