package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// format is raised when older programs would misread an entry. Every text that this program
// writes begins with head.
const (
	format = 2
	head   = `{"v":2`
)

// FormatError reports that an entry has another format.
type FormatError struct{ Format int }

// Error names both formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("format %d, this program reads %d", e.Format, format)
}

// IsTooNew reports whether only a newer program can read it.
func (e *FormatError) IsTooNew() bool { return e.Format > format }

// IsTooOld reports whether an earlier program wrote it. This program can't read it.
func (e *FormatError) IsTooOld() bool { return e.Format > 0 && e.Format < format }

// IsTooNew reports whether a text is an entry that only a newer program can read. It must not
// be replaced.
func IsTooNew(text string) bool {
	if strings.HasPrefix(text, head+",") {
		return false // as this program writes it, like nearly every text
	}
	_, err := Decode(text)
	other, found := errors.AsType[*FormatError](err)
	return found && other.IsTooNew()
}

// Encode writes the entry as text, without zero parts. Foreign fields come last.
func (e Entry) Encode() (string, error) {
	b, none := append(make([]byte, 0, 512), head...), (&Entry{}).parts()
	for i, p := range e.parts() {
		if i >= alwaysWritten && same(p.at, none[i].at) {
			continue
		}
		var err error
		if b, err = write(appendName(b, p.name), p.at); err != nil {
			return "", err
		}
	}
	return string(append(appendFields(b, e.Foreign.Fields), '}')), nil
}

// Decode parses Encode's output. It keeps parts that it doesn't know. A part that it
// can't parse is an error, never a guess: the caller takes a new baseline, or leaves the
// entry alone when it is too new.
func Decode(text string) (Entry, error) {
	// Names are case-sensitive; into a struct, the library would accept "Moved" for
	// "moved".
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &fields)
	// The format comes first: in another format, everything else may have another shape.
	if f, _ := strconv.Atoi(string(fields["v"])); err == nil && f != format {
		err = &FormatError{f}
	}
	if err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	e := Entry{Inputs: map[input.ID]Delivered{}}
	for _, p := range e.parts() {
		value, found := fields[p.name]
		if !found {
			continue
		}
		if err := read(value, p.at); err != nil {
			return Entry{}, fmt.Errorf("decode entry: %s: %w", p.name, err)
		}
		delete(fields, p.name)
	}
	if delete(fields, "v"); len(fields) > 0 {
		e.Foreign.Fields = fields
	}
	return e, nil
}

// write appends the JSON value of a part.
func write(b []byte, at any) ([]byte, error) {
	switch v := at.(type) {
	case inputs:
		return v.write(b), nil
	case *string:
		return appendText(b, *v), nil
	case *Template:
		return appendText(b, encodeTemplate(*v)), nil
	case *spread.Turn:
		return appendText(b, encodeTurn(*v)), nil
	case *time.Time:
		at = v.UTC()
	}
	text, err := json.Marshal(at)
	return append(b, text...), err
}

// read reads the JSON value of a part. Null leaves it as it is.
func read(value json.RawMessage, at any) (err error) {
	switch v := at.(type) {
	case inputs:
		return v.read(value)
	case *string:
		*v, err = textOf(value)
		return err
	case *Template:
		text, err := textOf(value)
		*v = decodeTemplate(text)
		return err
	case *spread.Turn:
		text, err := textOf(value)
		*v = decodeTurn(text)
		return err
	case *time.Time:
		return v.UnmarshalJSON(value)
	case *Hold:
		v.On = string(value) != "null"
	}
	return json.Unmarshal(value, at)
}

// same reports whether a part is equal in two entries.
func same(a, b any) bool {
	switch a := a.(type) {
	case inputs:
		b := b.(inputs)
		return maps.Equal(a.Inputs, b.Inputs) && equalTexts(a.Foreign.Inputs, b.Foreign.Inputs)
	case *time.Time:
		return a.Equal(*b.(*time.Time))
	case *[]string:
		return slices.Equal(*a, *b.(*[]string))
	case *string:
		return *a == *b.(*string)
	case *int64:
		return *a == *b.(*int64)
	case *int:
		return *a == *b.(*int)
	case *bool:
		return *a == *b.(*bool)
	case *Template:
		b := b.(*Template) // the generation is recorded when there is something else to write
		return a.Sum == b.Sum && a.Object == b.Object && a.Number == b.Number
	case *spread.Turn:
		return *a == *b.(*spread.Turn)
	case *Decision:
		return *a == *b.(*Decision)
	case *Hold:
		b := b.(*Hold)
		return *a == *b || !a.On && !b.On
	}
	return false
}

// inputs are the inputs of an entry. Foreign ones are written among the others.
type inputs struct{ *Entry }

func (in inputs) write(b []byte) []byte {
	values := make(map[string]json.RawMessage, len(in.Inputs)+len(in.Foreign.Inputs))
	maps.Copy(values, in.Foreign.Inputs)
	for id, given := range in.Inputs {
		values[id.String()] = appendText(nil, given.encode())
	}
	start := len(b)
	b = appendFields(b, values)
	b[start] = '{' // replaces the first comma
	return append(b, '}')
}

// read reads the inputs. One whose kind or value isn't understood is foreign: its workload
// takes a new baseline for it, and the others count.
func (in inputs) read(value json.RawMessage) error {
	var foreign map[string]json.RawMessage
	if err := json.Unmarshal(value, &foreign); err != nil {
		return err
	}
	for name, text := range foreign {
		id, err := input.ParseID(name)
		if err != nil || id.String() != name {
			continue
		}
		if given, err := decodeDelivered(text); err == nil {
			in.Inputs[id] = given
			delete(foreign, name)
		}
	}
	if len(foreign) > 0 {
		in.Foreign.Inputs = foreign
	}
	return nil
}

// appendFields appends fields in the order of their names. The library would compact and escape
// values, which have to stay byte for byte.
func appendFields(b []byte, fields map[string]json.RawMessage) []byte {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b = append(appendName(b, name), fields[name]...)
	}
	return b
}

func appendName(b []byte, name string) []byte {
	return append(appendText(append(b, ','), name), ':')
}

// appendText appends a JSON string as the library writes it. Few texts need its escapes.
func appendText(b []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			escaped, _ := json.Marshal(text) //nolint:errchkjson // a string can be written
			return append(b, escaped...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// textOf reads a JSON string. Few have escapes that need the library.
func textOf(value json.RawMessage) (text string, err error) {
	if value[0] == '"' && !slices.Contains(value, '\\') && utf8.Valid(value) {
		return string(value[1 : len(value)-1]), nil
	}
	err = json.Unmarshal(value, &text)
	return text, err
}

// Marks in the written form of a template: before the object that lends it, and before the number
// of a revision that wasn't seen yet.
const lentMark, aboutMark = "@", "~"

// encodeTemplate writes a template as "GENERATION:NUMBER:SUM" or "GENERATION:~NUMBER:SUM@OBJECT".
func encodeTemplate(t Template) string {
	number, lent := strconv.FormatInt(t.Number, 10), ""
	if !t.Made {
		number = aboutMark + number
	}
	if t.Object != "" {
		lent = lentMark + t.Object
	}
	return strconv.FormatInt(t.Generation, 10) + ":" + number + ":" + t.Sum + lent
}

// decodeTemplate parses a template. Text that it can't parse is treated as none: the next
// reconciliation records the current template.
func decodeTemplate(text string) Template {
	generation, rest, _ := strings.Cut(text, ":")
	number, sum, _ := strings.Cut(rest, ":")
	digits, about := strings.CutPrefix(number, aboutMark)
	t := Template{Made: !about}
	var err, errNumber error
	t.Generation, err = strconv.ParseInt(generation, 10, 64)
	if t.Number, errNumber = strconv.ParseInt(digits, 10, 64); err != nil || errNumber != nil {
		return Template{}
	}
	t.Sum, t.Object, _ = strings.Cut(sum, lentMark)
	return t
}

// encode writes the version, its mark in the template, and its notes, each a word:
// "1:*:3fa9… 3fa9c1d2e4 from:4". A tracked version doesn't need a mark; "~" alone stands
// for one that the template doesn't show.
func (g Delivered) encode() string {
	var notes []byte
	none := (&Delivered{}).notes()
	for i, n := range g.notes() {
		if same(n.at, none[i].at) {
			continue
		}
		notes = append(append(notes, ' '), n.name...)
		switch v := n.at.(type) {
		case *string:
			notes = append(notes, *v...)
		case *time.Time:
			notes = v.UTC().AppendFormat(notes, time.RFC3339Nano)
		}
	}
	if g.Rest != "" {
		notes = append(append(notes, ' '), g.Rest...)
	}
	mark := ""
	switch {
	case g.Shown.Pinned, g.Shown.Digest == "" && len(notes) > 0:
		mark = " " + g.Shown.String()
	case g.Shown.Digest != "":
		mark = " " + g.Shown.Digest
	}
	return g.Version.String() + mark + string(notes)
}

func decodeDelivered(value json.RawMessage) (Delivered, error) {
	text, err := textOf(value)
	if err != nil {
		return Delivered{}, err
	}
	version, text, _ := strings.Cut(text, " ")
	shown, notes, _ := strings.Cut(text, " ")
	v, err := fingerprint.ParseVersion(version)
	if err != nil {
		return Delivered{}, err
	}
	g := Delivered{Version: v, Shown: input.Tracked(strings.TrimPrefix(shown, "~"))}
	if digest, found := strings.CutPrefix(shown, "="); found {
		g.Shown = input.Mark{Digest: digest, Pinned: true}
	}
	var rest []string
	for word := range strings.SplitSeq(notes, " ") {
		if !g.readNote(word) {
			rest = append(rest, word)
		}
	}
	g.Rest = strings.Join(rest, " ")
	return g, nil
}

// readNote parses a word, and reports whether it knows it.
func (g *Delivered) readNote(word string) bool {
	for _, n := range g.notes() {
		value, found := strings.CutPrefix(word, n.name)
		if !found {
			continue
		}
		switch v := n.at.(type) {
		case *string:
			*v = value
			return true
		case *time.Time:
			return v.UnmarshalText([]byte(value)) == nil
		case *bool:
			if value == "" {
				*v = true
				return true
			}
		}
	}
	return false
}
