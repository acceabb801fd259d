package histories

import (
	"encoding/json"
	"slices"
	"strings"
)

// Place is where a pod template references a source.
type Place string

// The places. An init container runs before the others, and pods mount volumes before that.
const (
	Env       Place = "env"
	EnvFrom   Place = "envFrom"
	Volume    Place = "volume"
	Projected Place = "projected"
	Init      Place = "init"
	// Listed isn't in the template: the annotation lists the source, and pods may read it
	// themselves.
	Listed Place = "listed"
)

// Reference is one place of a pod template that names a source. The template uses all keys when
// Key is empty.
type Reference struct {
	Place    Place
	Source   string
	Key      string
	Optional bool
}

// String is the reference in readable form.
func (r Reference) String() string {
	text := strings.TrimSuffix(string(r.Place)+" "+r.Source+" "+r.Key, " ")
	if r.Optional {
		text += ", optional"
	}
	return text
}

// EncodeReferences writes the references of a template as text.
func EncodeReferences(all []Reference) string {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ParseReferences reads the text of EncodeReferences.
func ParseReferences(text string) []Reference {
	var all []Reference
	if err := json.Unmarshal([]byte(text), &all); text != "" && err != nil {
		panic(err)
	}
	return all
}

// Data is the content of a source, nil when there is none.
type Data map[string]string

// read is what a pod loads from a place: the key, or all keys, empty when there is none.
func (d Data) read(r Reference) string {
	if d == nil {
		return ""
	}
	if r.Key != "" {
		return d[r.Key]
	}
	text, err := json.Marshal(map[string]string(d)) // the keys are sorted
	if err != nil {
		panic(err)
	}
	return string(text)
}

// canStart reports whether a container can start with the place.
func (d Data) canStart(r Reference) bool {
	return r.Optional || d != nil && (r.Key == "" || d[r.Key] != "")
}

// lists are what the annotation of a workload in a reference history can be: the sources that it
// follows beside those of the template, and whether it follows those.
func lists() []list {
	return []list{
		{text: "auto", referenced: true},
		{text: "configmap/app"},
		{text: "configmap/*"},
		{text: "configmap/*, secret/d*"},
		{text: "secret/db, configmap/extra"},
		{text: "configmap/*, !configmap/app, secret/*"},
	}
}

// list is one value of that annotation.
type list struct {
	text       string
	referenced bool
}

// ListText is the value of the annotation with that number.
func ListText(choice int) string {
	all := lists()
	return all[choice%len(all)].text
}

// follows reports whether a workload with that annotation follows a source, and whether that is
// because the annotation lists it.
func follows(text, source string) (followed, listed bool) {
	if text == "auto" {
		return true, false
	}
	elements := strings.Split(text, ", ")
	for i, element := range elements {
		if matches(element, source) && !slices.Contains(elements[i:], "!"+source) {
			return true, true
		}
	}
	return false, false
}

func matches(pattern, source string) bool {
	prefix, isGlob := strings.CutSuffix(pattern, "*")
	return pattern == source || isGlob && strings.HasPrefix(source, prefix)
}
