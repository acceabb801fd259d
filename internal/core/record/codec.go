package record

import (
	"bytes"
	"encoding/json"
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
	f, err := formatOf(text)
	return err == nil && f > format
}

// formatOf reads the format and nothing else: in another format everything else may
// have another shape.
func formatOf(text string) (int, error) {
	if strings.HasPrefix(text, fmt.Sprintf(`{"v":%d,`, format)) {
		return format, nil // as this program writes it, and nearly every text is
	}
	var s struct {
		Format int `json:"v"`
	}
	err := json.Unmarshal([]byte(text), &s)
	return s.Format, err
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
	Hold         *Hold                      `json:"hold,omitempty"`
	Searched     []string                   `json:"searched,omitempty"`
	GoneAt       *time.Time                 `json:"gone,omitempty"`
	Left         bool                       `json:"left,omitempty"`
	Inherited    string                     `json:"inherited,omitempty"`
	Decision     *Decision                  `json:"decision,omitempty"`
	EvictFor     string                     `json:"evictFor,omitempty"`
	EvictSince   *time.Time                 `json:"evictSince,omitempty"`
	EvictPods    int                        `json:"evictPods,omitempty"`
}

// storedFields are the fields that this program understands, in the order in which
// they are written.
func storedFields() []string {
	return []string{"v", "id", "uid", "in", "pending", "delay", "moved", "asOf", "movedFrom", "template", "released", "hold", "searched", "gone", "left", "inherited", "decision", "evictFor", "evictSince", "evictPods"}
}

// Encode writes the entry as text. What is foreign comes after what this program
// understands.
func (e Entry) Encode() (string, error) {
	s := stored{
		Format: format, ID: e.ID, UID: e.UID, Inputs: make(map[string]json.RawMessage, len(e.Inputs)),
		PendingSince: optionalTime(e.PendingSince), DelaySince: optionalTime(e.DelaySince), MovedAt: optionalTime(e.MovedAt), AsOf: optionalTime(e.AsOf), MovedFrom: e.MovedFrom,
		Template: e.Template.encode(), Released: e.Released, Searched: e.Searched, GoneAt: optionalTime(e.GoneAt), Left: e.Left, Inherited: e.Inherited,
		EvictFor: e.EvictFor, EvictSince: optionalTime(e.EvictSince), EvictPods: e.EvictPods,
	}
	if !e.Decision.IsZero() {
		s.Decision = &e.Decision
	}
	if e.Hold.On {
		s.Hold = &e.Hold
	}
	for id, given := range e.Inputs {
		text, err := json.Marshal(given.encode())
		if err != nil {
			return "", err
		}
		s.Inputs[id.String()] = text
	}
	text, err := json.Marshal(s)
	if err != nil || e.Foreign.IsEmpty() {
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
	for name, value := range f.Inputs {
		if _, known := inputs[name]; !known {
			inputs[name] = value
		}
	}
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
	f, err := formatOf(text)
	switch {
	case err != nil:
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	case f > format:
		return Entry{}, &TooNewError{f}
	case f != format:
		return Entry{}, fmt.Errorf("decode entry: format %d, this program reads %d", f, format)
	}
	s, foreign, err := decodeFields(text)
	if err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	e := Entry{
		ID: s.ID, UID: s.UID, PendingSince: deref(s.PendingSince), DelaySince: deref(s.DelaySince), MovedAt: deref(s.MovedAt), AsOf: deref(s.AsOf), MovedFrom: s.MovedFrom,
		Template: decodeTemplate(s.Template), Released: s.Released, Searched: s.Searched, GoneAt: deref(s.GoneAt), Left: s.Left, Inherited: s.Inherited,
		EvictFor: s.EvictFor, EvictSince: deref(s.EvictSince), EvictPods: s.EvictPods,
	}
	if s.Decision != nil {
		e.Decision = *s.Decision
	}
	if s.Hold != nil {
		e.Hold = *s.Hold
		e.Hold.On = true
	}
	e.Foreign.Fields = foreign
	e.decodeInputs(s.Inputs)
	return e, nil
}

// decodeFields reads the fields that are understood, and returns the others. Names
// count to the letter; the library would take "Moved" for "moved".
func decodeFields(text string) (s stored, foreign map[string]json.RawMessage, err error) {
	if err := json.Unmarshal([]byte(text), &foreign); err != nil {
		return stored{}, nil, err
	}
	for name, into := range map[string]any{
		"v": &s.Format, "id": &s.ID, "uid": &s.UID, "in": &s.Inputs, "pending": &s.PendingSince, "delay": &s.DelaySince, "moved": &s.MovedAt, "asOf": &s.AsOf,
		"movedFrom": &s.MovedFrom, "template": &s.Template, "released": &s.Released, "hold": &s.Hold, "searched": &s.Searched, "gone": &s.GoneAt, "left": &s.Left, "inherited": &s.Inherited,
		"decision": &s.Decision, "evictFor": &s.EvictFor, "evictSince": &s.EvictSince, "evictPods": &s.EvictPods,
	} {
		value, ok := foreign[name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return stored{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		delete(foreign, name)
	}
	if len(foreign) == 0 {
		foreign = nil
	}
	return s, foreign, nil
}

// decodeInputs reads the inputs. One whose kind or value is not understood is foreign:
// its workload takes a new baseline for it, and the others count.
func (e *Entry) decodeInputs(all map[string]json.RawMessage) {
	e.Inputs = make(map[input.ID]Given, len(all))
	for name, value := range all {
		id, err := input.ParseID(name)
		if err == nil && id.String() == name {
			var given Given
			if given, err = decodeGiven(value); err == nil {
				e.Inputs[id] = given
				continue
			}
		}
		if e.Foreign.Inputs == nil {
			e.Foreign.Inputs = map[string]json.RawMessage{}
		}
		e.Foreign.Inputs[name] = value
	}
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
const fromWord, wasWord, dueWord, backWord, trialWord, memoWord = "from:", "was:", "due:", "back:", "trial:", "memo:"

// Words that stand for themselves.
const awaitsWord, sealedWord, mixedWord = "awaits", "sealed", "mixed"

// notes are the words after the version and the mark.
func (g Given) notes() string {
	var words []string
	if g.From != "" {
		words = append(words, fromWord+string(g.From))
	}
	if g.Was != "" {
		words = append(words, wasWord+g.Was)
	}
	if g.Due != "" {
		words = append(words, dueWord+g.Due)
	}
	if g.Back != "" {
		words = append(words, backWord+g.Back)
	}
	if g.Awaits {
		words = append(words, awaitsWord)
	}
	if g.Sealed {
		words = append(words, sealedWord)
	}
	if g.Trial != "" {
		words = append(words, trialWord+g.Trial)
	}
	if g.Mixed {
		words = append(words, mixedWord)
	}
	if g.Memo != "" {
		words = append(words, memoWord+g.Memo)
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
		switch word {
		case awaitsWord:
			g.Awaits = true
		case sealedWord:
			g.Sealed = true
		case mixedWord:
			g.Mixed = true
		default:
			if !g.readNote(word) {
				rest = append(rest, word)
			}
		}
	}
	g.Rest = strings.Join(rest, " ")
}

// readNote reads a word that has a value, and reports whether it knows it.
func (g *Given) readNote(word string) bool {
	if from, found := strings.CutPrefix(word, fromWord); found {
		g.From = timeline.Origin(from)
		return true
	}
	for prefix, into := range map[string]*string{wasWord: &g.Was, dueWord: &g.Due, backWord: &g.Back, trialWord: &g.Trial, memoWord: &g.Memo} {
		if value, found := strings.CutPrefix(word, prefix); found {
			*into = value
			return true
		}
	}
	return false
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
