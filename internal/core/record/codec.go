package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// format is raised when older programs would misread an entry.
const format = 1

// TooNewError says that an entry has a format which only a newer program reads.
type TooNewError struct {
	Format int
}

// Error says which format it is.
func (e *TooNewError) Error() string {
	return fmt.Sprintf("decode entry: format %d, this program reads %d", e.Format, format)
}

// IsTooNew reports whether a text is an entry that only a newer program reads.
func IsTooNew(text string) bool {
	if strings.HasPrefix(text, fmt.Sprintf(`{"v":%d,`, format)) {
		return false // as this program writes it, and nearly every text is
	}
	_, err := Decode(text)
	var newer *TooNewError
	return errors.As(err, &newer)
}

// stored is the written form. Version and digest of each input share one string,
// because an installation with 10,000 workloads stores some 50,000 of them.
type stored struct {
	Format       int                        `json:"v"`
	ID           string                     `json:"id"`
	UID          string                     `json:"uid"`
	Inputs       map[string]json.RawMessage `json:"in,omitempty"`
	PendingSince *time.Time                 `json:"pending,omitempty"`
	DelaySince   *time.Time                 `json:"delay,omitempty"`
	MovedAt      *time.Time                 `json:"moved,omitempty"`
	AsOf         *time.Time                 `json:"asOf,omitempty"`
	MovedFrom    int64                      `json:"movedFrom,omitempty"`
	Template     string                     `json:"template,omitempty"`
	Released     int64                      `json:"released,omitempty"`
	EvictFor     string                     `json:"evictFor,omitempty"`
	EvictSince   *time.Time                 `json:"evictSince,omitempty"`
	EvictPods    int                        `json:"evictPods,omitempty"`
}

// storedFields are the fields that this program understands, in the order in which
// they are written.
func storedFields() []string {
	return []string{"v", "id", "uid", "in", "pending", "delay", "moved", "asOf", "movedFrom", "template", "released", "evictFor", "evictSince", "evictPods"}
}

// Encode writes the entry as text. What is foreign comes after what this program
// understands.
func (e Entry) Encode() (string, error) {
	s := stored{
		Format: format, ID: e.ID, UID: e.UID, Inputs: make(map[string]json.RawMessage, len(e.Inputs)),
		PendingSince: optionalTime(e.PendingSince), DelaySince: optionalTime(e.DelaySince), MovedAt: optionalTime(e.MovedAt), AsOf: optionalTime(e.AsOf), MovedFrom: e.MovedFrom,
		Template: e.Template.encode(), Released: e.Released,
		EvictFor: e.EvictFor, EvictSince: optionalTime(e.EvictSince), EvictPods: e.EvictPods,
	}
	for id, given := range e.Inputs {
		text, err := json.Marshal(given.encode())
		if err != nil {
			return "", err
		}
		s.Inputs[id.String()] = text
	}
	text, err := json.Marshal(s)
	if err != nil || len(e.Foreign.Inputs)+len(e.Foreign.Fields) == 0 {
		return string(text), err
	}
	return e.Foreign.addTo(text, s.Inputs)
}

// addTo adds what is foreign to an entry.
func (f Foreign) addTo(entry []byte, inputs map[string]json.RawMessage) (string, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(entry, &fields); err != nil {
		return "", err
	}
	maps.Copy(inputs, f.Inputs)
	if len(inputs) > 0 {
		fields["in"] = object(inputs, slices.Sorted(maps.Keys(inputs)))
	}
	maps.Copy(fields, f.Fields)
	order := append(storedFields(), slices.Sorted(maps.Keys(f.Fields))...)
	return string(object(fields, order)), nil
}

// object writes a JSON object. The library would compact and escape values that have
// to stay byte for byte.
func object(fields map[string]json.RawMessage, order []string) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range order {
		value, ok := fields[name]
		if !ok {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(name) //nolint:errchkjson // a string can be written
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Decode reads what Encode wrote. Parts that it does not understand are kept. What it
// misunderstands is an error, never a guess: the caller takes a new baseline, or
// leaves the entry alone when the error is a TooNewError.
func Decode(text string) (Entry, error) {
	s, foreign, err := decodeFields(text)
	if err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	if s.Format > format {
		return Entry{}, &TooNewError{s.Format}
	}
	if s.Format != format {
		return Entry{}, fmt.Errorf("decode entry: format %d, this program reads %d", s.Format, format)
	}
	e := Entry{
		ID: s.ID, UID: s.UID, PendingSince: deref(s.PendingSince), DelaySince: deref(s.DelaySince), MovedAt: deref(s.MovedAt), AsOf: deref(s.AsOf), MovedFrom: s.MovedFrom,
		Template: decodeTemplate(s.Template), Released: s.Released,
		EvictFor: s.EvictFor, EvictSince: deref(s.EvictSince), EvictPods: s.EvictPods,
	}
	e.Foreign.Fields = foreign
	if err := e.decodeInputs(s.Inputs); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// decodeFields reads the fields that are understood, and returns the others.
func decodeFields(text string) (s stored, foreign map[string]json.RawMessage, err error) {
	strict := json.NewDecoder(strings.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&s); err == nil && strict.InputOffset() == int64(len(text)) {
		return s, nil, nil
	}
	s = stored{}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return stored{}, nil, err
	}
	if err := json.Unmarshal([]byte(text), &foreign); err != nil {
		return stored{}, nil, err
	}
	for _, name := range storedFields() {
		delete(foreign, name)
	}
	if len(foreign) == 0 {
		foreign = nil
	}
	return s, foreign, nil
}

func (e *Entry) decodeInputs(all map[string]json.RawMessage) error {
	e.Inputs = make(map[input.ID]Given, len(all))
	for name, value := range all {
		id, err := input.ParseID(name)
		if err != nil {
			if e.Foreign.Inputs == nil {
				e.Foreign.Inputs = map[string]json.RawMessage{}
			}
			e.Foreign.Inputs[name] = value
			continue
		}
		if e.Inputs[id], err = decodeGiven(value); err != nil {
			return fmt.Errorf("decode entry of %s: %s: %w", e.ID, id, err)
		}
	}
	return nil
}

// encode writes a template as "GENERATION:SUM".
func (t Template) encode() string {
	if t == (Template{}) {
		return ""
	}
	return strconv.FormatInt(t.Generation, 10) + ":" + t.Sum
}

// decodeTemplate reads what encode wrote. What it cannot read is no template: the next
// look notes the one that is there.
func decodeTemplate(text string) Template {
	generation, sum, found := strings.Cut(text, ":")
	n, err := strconv.ParseInt(generation, 10, 64)
	if !found || err != nil {
		return Template{}
	}
	return Template{Generation: n, Sum: sum}
}

// What is noted of a version begins with one of these words.
const fromWord, backWord = "from:", "back:"

// notes are the words after the version and the mark.
func (g Given) notes() string {
	var words []string
	if g.From != "" {
		words = append(words, fromWord+string(g.From))
	}
	if g.Back != "" {
		words = append(words, backWord+g.Back)
	}
	if g.Rest != "" {
		words = append(words, g.Rest)
	}
	return strings.Join(words, " ")
}

// readNotes reads the words after the version and the mark. Those that it does not
// know are the rest.
func (g *Given) readNotes(text string) {
	if text == "" {
		return
	}
	var rest []string
	for word := range strings.SplitSeq(text, " ") {
		if from, found := strings.CutPrefix(word, fromWord); found {
			g.From = timeline.Origin(from)
		} else if back, found := strings.CutPrefix(word, backWord); found {
			g.Back = back
		} else {
			rest = append(rest, word)
		}
	}
	g.Rest = strings.Join(rest, " ")
}

// encode writes the version, what the template showed of it, and what is noted of it,
// each a word: "1:*:3fa9… 3fa9c1d2e4 from:4". A tracked version needs no mark; "~"
// alone stands for one that the template does not show.
func (g Given) encode() string {
	words, notes := g.Version.String(), g.notes()
	switch {
	case g.Shown.Pinned:
		words += " " + g.Shown.String()
	case g.Shown.Digest != "":
		words += " " + g.Shown.Digest
	case notes != "":
		words += " " + g.Shown.String()
	}
	if notes != "" {
		words += " " + notes
	}
	return words
}

func decodeGiven(value json.RawMessage) (Given, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return Given{}, err
	}
	version, text, _ := strings.Cut(text, " ")
	shown, notes, _ := strings.Cut(text, " ")
	v, err := fingerprint.ParseVersion(version)
	if err != nil {
		return Given{}, err
	}
	g := Given{Version: v, Shown: input.Tracked(shown)}
	g.readNotes(notes)
	if mark, found := strings.CutPrefix(shown, "="); found {
		g.Shown = input.Mark{Digest: mark, Pinned: true}
	} else if mark, found := strings.CutPrefix(shown, "~"); found {
		g.Shown = input.Tracked(mark)
	}
	return g, nil
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
