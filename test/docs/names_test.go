package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist: a page that says which test shows something names one that
// exists.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := declaredTests(t)
	named, mentioned := regexp.MustCompile("`(Test[A-Z]\\w*)(?:/\\w+)*`"), 0
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" { // it tells of tests of its time
			continue
		}
		for _, found := range named.FindAllSubmatch(p.source, -1) {
			mentioned++
			if name := string(found[1]); !tests[name] {
				t.Errorf("%s names %s, and there is no such test", p.path, name)
			}
		}
	}
	if mentioned < 50 {
		t.Errorf("only %d tests are named in the pages", mentioned)
	}
}

// declaredTests are the names of all tests of the repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	err := filepath.WalkDir(root(t), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			tests[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
