// Package docs_test reads every Markdown page of the repository as a user does: it
// follows the links, gives the manifests to a real API server, parses the commands,
// and runs those that a page marks.
//
// A page talks to this package by HTML comments, which readers do not see:
//
//	<!-- fragment -->   the YAML below is part of an object, or of an incomplete one
//	<!-- run -->        the console session below is run, and its output compared
//	<!-- run as view --> the same, by a person who has the role "view" in the page's namespace
//	<!-- run while down --> the same, between a stop of the controller and its next start
//	<!-- background --> the one command below is started, and ends with the page
package docs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// page is one Markdown file.
type page struct {
	path   string // from the root of the repository
	source []byte
	tree   ast.Node
}

// fence is one fenced block of a page.
type fence struct {
	page     *page
	language string
	marks    []string // the HTML comments directly above
	text     string
	line     int
}

func (f fence) String() string { return fmt.Sprintf("%s:%d", f.page.path, f.line) }

// isPlayed: a test types the session in.
func (f fence) isPlayed() bool {
	return f.marked("run") || f.marked("run as view") || f.marked("run while down") || f.marked("background")
}

func (f fence) marked(word string) bool { return slices.Contains(f.marks, word) }

func root(t testing.TB) string {
	t.Helper()
	dir, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pages are all Markdown files of the repository.
func pages(t testing.TB) []*page {
	t.Helper()
	var found []*page
	top := root(t)
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "dist" || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")) && path != top {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		found = append(found, parse(filepath.ToSlash(short), source))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("found only %d pages; this test looks in the wrong place", len(found))
	}
	return found
}

func parse(path string, source []byte) *page {
	reader := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	return &page{path: path, source: source, tree: reader.Parse(text.NewReader(source))}
}

// each visits every node of one type.
func each[N ast.Node](p *page, visit func(N)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if found, ok := n.(N); ok && entering {
			visit(found)
		}
		return ast.WalkContinue, nil
	})
}

// fences are the fenced blocks of a page in a language.
func (p *page) fences(language string) []fence {
	var found []fence
	each(p, func(n *ast.FencedCodeBlock) {
		if string(n.Language(p.source)) != language || n.Lines().Len() == 0 {
			return
		}
		first := n.Lines().At(0)
		found = append(found, fence{
			page: p, language: language, marks: p.marksAbove(n), text: string(n.Lines().Value(p.source)),
			line: 1 + bytes.Count(p.source[:first.Start], []byte("\n")),
		})
	})
	return found
}

// marksAbove are the comments directly above a block.
func (p *page) marksAbove(n ast.Node) []string {
	var marks []string
	for above := n.PreviousSibling(); above != nil && above.Kind() == ast.KindHTMLBlock; above = above.PreviousSibling() {
		comment := strings.TrimSpace(string(above.Lines().Value(p.source)))
		if inner, ok := strings.CutPrefix(comment, "<!--"); ok {
			marks = append(marks, strings.TrimSpace(strings.TrimSuffix(inner, "-->")))
		}
	}
	return marks
}

// A mark that nothing reads would be a typing error that switches a check off.
func TestMarksAreKnown(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		each(p, func(n *ast.HTMLBlock) {
			comment := strings.TrimSpace(string(n.Lines().Value(p.source)))
			known := []string{"<!-- fragment -->", "<!-- run -->", "<!-- run as view -->", "<!-- run while down -->", "<!-- background -->"}
			if !slices.Contains(known, comment) && !strings.HasPrefix(comment, "<!-- Written by ") {
				t.Errorf("%s has HTML that no test reads: %q", p.path, comment)
			}
		})
	}
}

// A block without a language is read by no test: a session has to be "console", and what is
// only to be looked at "text".
func TestEveryBlockHasALanguage(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/cli/") || strings.HasPrefix(p.path, "docs/decisions/") {
			continue // written by the library of the command line; records of what was tried
		}
		each(p, func(n *ast.FencedCodeBlock) {
			at := 1 + bytes.Count(p.source[:n.Lines().At(0).Start], []byte("\n"))
			if len(n.Language(p.source)) == 0 {
				t.Errorf("%s:%d: a block without a language", p.path, at)
			}
			if string(n.Language(p.source)) == "text" && strings.HasPrefix(string(n.Lines().Value(p.source)), "$ ") {
				t.Errorf("%s:%d: a session that no test reads", p.path, at)
			}
		})
	}
}
