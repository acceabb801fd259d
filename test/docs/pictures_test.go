package docs_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
)

// widest is how many pixels GitHub shows without shrinking a picture.
const widest = 900

// TestPictures: every picture is well-formed, brings its own background, runs nothing,
// says to those who cannot see it what it shows, and is on a page.
func TestPictures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(t), "docs", "pictures", "*.svg"))
	if err != nil || len(files) < 4 {
		t.Fatalf("pictures are %q, error %v", files, err)
	}
	shown := map[string]bool{}
	for _, p := range pages(t) {
		each(p, func(n *ast.Image) {
			if alt := headingText(n, p.source); len(alt) < 20 {
				t.Errorf("%s: the picture %s has no words for those who cannot see it: %q", p.path, n.Destination, alt)
			}
			shown[path.Join(path.Dir(p.path), string(n.Destination))] = true
		})
	}
	for _, file := range files {
		name := "docs/pictures/" + filepath.Base(file)
		if !shown[name] {
			t.Errorf("%s is on no page", name)
		}
		checkPicture(t, name, file)
	}
}

func checkPicture(t *testing.T, name, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(string(text)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if element, ok := token.(xml.StartElement); ok {
			found[element.Name.Local]++
			if element.Name.Local == "svg" {
				checkWidth(t, name, element)
			}
		}
	}
	for _, part := range []string{"svg", "title", "desc", "text", "rect"} {
		if found[part] == 0 {
			t.Errorf("%s has no <%s>", name, part)
		}
	}
	for _, part := range []string{"script", "image", "foreignObject", "a"} {
		if found[part] != 0 {
			t.Errorf("%s has a <%s>", name, part)
		}
	}
}

func checkWidth(t *testing.T, name string, svg xml.StartElement) {
	t.Helper()
	i := slices.IndexFunc(svg.Attr, func(a xml.Attr) bool { return a.Name.Local == "width" })
	if i < 0 {
		t.Errorf("%s does not say how wide it is", name)
		return
	}
	if width, err := strconv.Atoi(svg.Attr[i].Value); err != nil || width > widest {
		t.Errorf("%s is %s wide, more than %d", name, svg.Attr[i].Value, widest)
	}
}
