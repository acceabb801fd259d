package registry

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

const (
	// maxRaw is how much of a string is decoded: one that is cut is longer than any tag, even if
	// each of its characters is written with six (\u0041).
	maxRaw = 6 * (maxTag + 1)
	// maxScalar is the same for numbers, and maxDepth limits values that are skipped.
	maxScalar = 32
	maxDepth  = 16
)

// errNotAList means that a body isn't a list of tags.
var errNotAList = errors.New("is not a list of tags")

// readTags calls each with the tags of a body such as {"name": "app", "tags": ["1.0", "1.1"]}. Tags
// are decoded one at a time, so a page takes no more memory than a tag, whatever is in it.
func readTags(from io.Reader, each func(tag string)) error {
	page := &condensed{from: from}
	err := walkTags(json.NewDecoder(page), each)
	if page.err != nil {
		return page.err
	}
	if err != nil {
		return errNotAList
	}
	return nil
}

func walkTags(d *json.Decoder, each func(tag string)) error {
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errNotAList
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if name, _ := key.(string); strings.EqualFold(name, "tags") {
			err = elements(d, each)
		} else {
			err = skip(d)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// elements reads an array of strings, or null.
func elements(d *json.Decoder, each func(string)) error {
	start, err := d.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('[') {
		return errNotAList
	}
	for d.More() {
		element, err := d.Token()
		if err != nil {
			return err
		}
		text, ok := element.(string)
		if !ok {
			return errNotAList
		}
		each(text)
	}
	_, err = d.Token()
	return err
}

// skip reads a value of any kind.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return errNotAList
		}
		if depth == 0 {
			return nil
		}
	}
}

// condensed is JSON without white space and with short strings and numbers, because the decoder
// buffers each of them as a whole.
type condensed struct {
	from   io.Reader
	err    error // of from, unless it is its end
	inside bool  // a string
	// escape is the number of characters left of \u0041, and negative after a backslash.
	escape int
	length int
	cut    bool
}

// Read implements [io.Reader].
func (c *condensed) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	kept := p[:0]
	for _, b := range p[:n] {
		if c.keep(b) {
			kept = append(kept, b)
		}
	}
	return len(kept), err
}

func (c *condensed) keep(b byte) bool {
	if c.inside {
		return c.keepInside(b)
	}
	switch b {
	case ' ', '\t', '\r', '\n':
		return false
	case '"':
		c.inside, c.length, c.cut = true, 0, false
		return true
	case '{', '}', '[', ']', ':', ',':
		c.length = 0
		return true
	default:
		c.length++
		return c.length <= maxScalar
	}
}

// keepInside cuts a string between two characters.
func (c *condensed) keepInside(b byte) bool {
	switch {
	case c.escape < 0:
		c.escape = 0
		if b == 'u' {
			c.escape = 4
		}
	case c.escape > 0:
		c.escape--
	case b == '"':
		c.inside, c.length = false, 0
		return true
	default:
		c.cut = c.cut || c.length >= maxRaw
		if b == '\\' {
			c.escape = -1
		}
	}
	c.length++
	return !c.cut
}
