package docs_test

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// TestLinksResolve: a link to a file of the repository names one that exists, and
// its anchor is a heading there. Links to other sites are written to the log of the
// test and not fetched.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	all := map[string]*page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	for _, p := range all {
		each(p, func(n *ast.Link) { checkLink(t, all, p, string(n.Destination)) })
		each(p, func(n *ast.Image) { checkLink(t, all, p, string(n.Destination)) })
	}
}

func checkLink(t *testing.T, all map[string]*page, from *page, destination string) {
	t.Helper()
	link, err := url.Parse(destination)
	if err != nil {
		t.Errorf("%s: link %q: %v", from.path, destination, err)
		return
	}
	if link.Scheme != "" || link.Host != "" {
		t.Logf("not fetched: %s", destination)
		return
	}
	target := from.path
	if link.Path != "" {
		target = path.Join(path.Dir(from.path), link.Path)
	}
	if _, err := os.Stat(filepath.Join(root(t), target)); err != nil {
		t.Errorf("%s links to %s, which does not exist", from.path, target)
		return
	}
	if link.Fragment == "" {
		return
	}
	to, ok := all[target]
	if !ok {
		t.Errorf("%s links to an anchor of %s, which is no page", from.path, target)
		return
	}
	if !to.anchors()[link.Fragment] {
		t.Errorf("%s links to %s#%s, and there is no such heading", from.path, target, link.Fragment)
	}
}

var named = regexp.MustCompile(`^<a id="([^"]+)">$`)

// anchors are the names that GitHub gives to the headings of a page, and those that
// the page gives itself.
func (p *page) anchors() map[string]bool {
	names := map[string]bool{}
	each(p, func(n *ast.Heading) {
		name := anchor(headingText(n, p.source))
		for i := 1; names[name]; i++ {
			name = anchor(headingText(n, p.source)) + "-" + strconv.Itoa(i)
		}
		names[name] = true
	})
	each(p, func(n *ast.RawHTML) { // the reference of reasons names its rows
		if found := named.FindSubmatch(n.Segments.Value(p.source)); found != nil {
			names[string(found[1])] = true
		}
	})
	return names
}

// headingText is what a reader sees of a heading, without the marks of code and emphasis.
func headingText(n ast.Node, source []byte) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch c := child.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(headingText(c, source))
		}
	}
	return b.String()
}

// anchor is GitHub's rule: lower case, spaces become dashes, and of the rest only
// letters, digits, dashes and underscores stay.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

func TestAnchor(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]string{
		"Reverted":                         "reverted",
		"1. `make push`, then: install it": "1-make-push-then-install-it",
		"What is different?":               "what-is-different",
		"A & B":                            "a--b",
	} {
		p := parse("p.md", []byte("# "+heading+"\n"))
		if !p.anchors()[want] {
			t.Errorf("%q has the anchors %v, want %s", heading, p.anchors(), want)
		}
	}
}
