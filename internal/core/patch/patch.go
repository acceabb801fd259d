// Package patch builds the smallest documents that change a pod template.
package patch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Target is the object that a patch was decided on.
type Target struct {
	// UID and ResourceVersion are preconditions: the API server refuses the patch when
	// the object is another one, or has changed since the decision.
	UID             string
	ResourceVersion string
	// Template is the path of the pod template: "spec.template".
	Template string
	// Metadata is how much metadata the template contains.
	Metadata Metadata
	// Annotated is true when the object itself has an annotation.
	Annotated bool
}

// Metadata is how much metadata a pod template contains. The API server refuses a JSON
// patch that adds to a missing map, and one that adds the map replaces an existing one.
type Metadata int

const (
	// HasAnnotations means that the template has at least one annotation. It is the zero value
	// because it is harmless: where it is wrong, the API server refuses.
	HasAnnotations Metadata = iota
	// NoAnnotations means that there is metadata, but it contains no annotation.
	NoAnnotations
	// NoMetadata means that there are neither labels nor annotations.
	NoMetadata
)

// Document is a patch and how the API server should read it.
type Document struct {
	Type types.PatchType
	Body []byte
}

// Change is one change of a pod template: SetAnnotation, RemoveAnnotation,
// SetVariable, RemoveVariable or SetImage; or one beside it: SetObjectAnnotation or Pause.
type Change interface {
	// add adds the change to a document.
	add(*changes)
}

// SetAnnotation sets an annotation of the template.
type SetAnnotation struct{ Key, Value string }

// RemoveAnnotation removes an annotation of the template.
type RemoveAnnotation struct{ Key string }

// SetObjectAnnotation sets an annotation of the object itself, which doesn't start a
// rollout.
type SetObjectAnnotation struct{ Key, Value string }

// SetVariable sets an environment variable at its position.
type SetVariable struct {
	Name, Value string
	// Container is the container's position in the template.
	Container int
	// Index is the variable's position when the container has it, else -1. A new
	// variable goes to the front, where a strategic merge puts it too.
	Index int
	// First is true when the container has no variables at all yet.
	First bool
	// Last puts a new variable at the end instead.
	Last bool
}

// RemoveVariable removes the environment variable at a position.
type RemoveVariable struct {
	// Container is the container's position in the template, Index that of the variable.
	Container, Index int
}

// Pause pauses a Deployment.
type Pause struct{}

// SetImage sets a container's image.
type SetImage struct {
	// Container is the container's position in the template.
	Container int
	// Init is true for the position of an init container.
	Init  bool
	Image string
}

// changes are sorted by how they are written.
type changes struct {
	// annotations by key; nil removes one.
	annotations map[string]*string
	// order is that in which annotations were named.
	order     []string
	ofObject  map[string]string
	variables []SetVariable
	removed   []RemoveVariable
	images    []SetImage
	pause     bool
}

func (a SetAnnotation) add(c *changes)       { c.annotate(a.Key, &a.Value) }
func (a RemoveAnnotation) add(c *changes)    { c.annotate(a.Key, nil) }
func (a SetObjectAnnotation) add(c *changes) { c.ofObject[a.Key] = a.Value }
func (v SetVariable) add(c *changes)         { c.variables = append(c.variables, v) }
func (v RemoveVariable) add(c *changes)      { c.removed = append(c.removed, v) }
func (i SetImage) add(c *changes)            { c.images = append(c.images, i) }
func (Pause) add(c *changes)                 { c.pause = true }

func (c *changes) annotate(key string, value *string) {
	if _, again := c.annotations[key]; !again {
		c.order = append(c.order, key)
	}
	c.annotations[key] = value
}

// Template is one document that makes all the changes of the pod template and touches
// nothing else. Annotations alone are a JSON merge patch. A change by position makes it a
// JSON patch, which also works for kinds for which the API server has no merge keys; the
// resource version guarantees that the positions hold.
func Template(t Target, list []Change) (Document, error) {
	if len(list) == 0 {
		return Document{}, errors.New("a patch needs a change")
	}
	sorted := &changes{annotations: map[string]*string{}, ofObject: map[string]string{}}
	for _, change := range list {
		change.add(sorted)
	}
	if len(sorted.variables) == 0 && len(sorted.removed) == 0 && len(sorted.images) == 0 {
		body, err := mergePatch(t, sorted)
		return Document{types.MergePatchType, body}, err
	}
	body, err := json.Marshal(sorted.operations(t))
	return Document{types.JSONPatchType, body}, err
}

func mergePatch(t Target, c *changes) ([]byte, error) {
	var template any = map[string]any{"metadata": map[string]any{"annotations": c.annotations}}
	fields := strings.Split(t.Template, ".")
	for i := len(fields) - 1; i > 0; i-- {
		template = map[string]any{fields[i]: template}
	}
	metadata := map[string]any{"uid": t.UID, "resourceVersion": t.ResourceVersion}
	if len(c.ofObject) > 0 {
		metadata["annotations"] = c.ofObject
	}
	if c.pause {
		template.(map[string]any)["paused"] = true
	}
	return json.Marshal(map[string]any{"metadata": metadata, fields[0]: template})
}

// Annotations is a JSON merge patch that sets annotations of the object itself, and
// removes those whose value is nil. The resource version is a precondition if it is
// known.
func Annotations(t Target, annotations map[string]*string) ([]byte, error) {
	metadata := map[string]any{"uid": t.UID, "annotations": annotations}
	if t.ResourceVersion != "" {
		metadata["resourceVersion"] = t.ResourceVersion
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// operations are the changes as a JSON patch. New variables come last, because they shift
// the following ones.
func (c *changes) operations(t Target) []operation {
	all := []operation{
		{"replace", "/metadata/uid", t.UID},
		{"replace", "/metadata/resourceVersion", t.ResourceVersion},
	}
	all = append(all, c.objectOperations(t.Annotated)...)
	if c.pause {
		all = append(all, operation{"add", "/spec/paused", true})
	}
	template := "/" + strings.ReplaceAll(t.Template, ".", "/")
	all = append(all, c.annotationOperations(template, t.Metadata)...)
	for _, i := range c.images {
		list := "containers"
		if i.Init {
			list = "initContainers"
		}
		all = append(all, operation{"replace", fmt.Sprintf("%s/spec/%s/%d/image", template, list, i.Container), i.Image})
	}
	return append(all, c.variableOperations(template+"/spec/containers")...)
}

func (c *changes) objectOperations(annotated bool) []operation {
	if len(c.ofObject) > 0 && !annotated {
		return []operation{{"add", "/metadata/annotations", c.ofObject}}
	}
	var all []operation
	for _, key := range slices.Sorted(maps.Keys(c.ofObject)) {
		all = append(all, operation{"add", "/metadata/annotations/" + escape(key), c.ofObject[key]})
	}
	return all
}

func (c *changes) annotationOperations(template string, has Metadata) []operation {
	if has == HasAnnotations {
		return c.eachAnnotation(template + "/metadata/annotations/")
	}
	set := map[string]string{}
	for key, value := range c.annotations {
		if value != nil {
			set[key] = *value
		}
	}
	switch {
	case len(set) == 0:
		return nil
	case has == NoAnnotations:
		return []operation{{"add", template + "/metadata/annotations", set}}
	}
	return []operation{{"add", template + "/metadata", map[string]any{"annotations": set}}}
}

func (c *changes) eachAnnotation(dir string) []operation {
	all := make([]operation, 0, len(c.order))
	for _, key := range c.order {
		path := dir + escape(key)
		if value := c.annotations[key]; value != nil {
			all = append(all, operation{"add", path, *value})
			continue
		}
		all = append(all, operation{"remove", path, nil})
	}
	return all
}

// escape writes a key as an element of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func (c *changes) variableOperations(containers string) []operation {
	var replaced, added []operation
	begun := map[int]bool{}
	for _, v := range c.variables {
		env := fmt.Sprintf("%s/%d/env", containers, v.Container)
		if v.Index >= 0 {
			replaced = append(replaced, operation{"replace", fmt.Sprintf("%s/%d", env, v.Index), envVar{v.Name, v.Value}})
			continue
		}
		if v.First && !begun[v.Container] {
			added = append(added, operation{"add", env, []envVar{}})
		}
		begun[v.Container] = true
		position := "/0"
		if v.Last {
			position = "/-"
		}
		added = append(added, operation{"add", env + position, envVar{v.Name, v.Value}})
	}
	return append(append(replaced, c.removals(containers)...), added...)
}

// removals remove the last variable of a container first, because a removal shifts the following
// ones.
func (c *changes) removals(containers string) []operation {
	sorting.By(c.removed, func(a, b RemoveVariable) int { return cmp.Compare(b.Index, a.Index) })
	all := make([]operation, len(c.removed))
	for i, v := range c.removed {
		all[i] = operation{"remove", fmt.Sprintf("%s/%d/env/%d", containers, v.Container, v.Index), nil}
	}
	return all
}
