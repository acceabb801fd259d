// Package patch knows the smallest documents that change a pod template.
package patch

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Target is the object that a patch was decided on.
type Target struct {
	// UID and ResourceVersion are preconditions: the API server refuses the patch
	// when the object is another one, or is no longer what the decision saw.
	UID             string
	ResourceVersion string
	// Template is the path of the pod template: "spec.template".
	Template string
}

// TemplateAnnotations is a JSON merge patch that sets annotations of the pod
// template and touches nothing else.
func TemplateAnnotations(t Target, annotations map[string]string) ([]byte, error) {
	var template any = map[string]any{"metadata": map[string]any{"annotations": annotations}}
	fields := strings.Split(t.Template, ".")
	for i := len(fields) - 1; i > 0; i-- {
		template = map[string]any{fields[i]: template}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": t.UID, "resourceVersion": t.ResourceVersion},
		fields[0]:  template,
	})
}

// Annotations is a JSON merge patch that sets annotations of the object itself.
func Annotations(t Target, annotations map[string]string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": t.UID, "annotations": annotations},
	})
}

// Variable is an environment variable and the place where it goes.
type Variable struct {
	Name, Value string
	// Container is the container's position in the template.
	Container int
	// Index is the variable's position when the container has it, else -1.
	Index int
	// First is true when the container has no variables at all yet.
	First bool
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// escape writes a key as an element of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Environment is a JSON patch that sets environment variables of the template's
// containers. It speaks of positions, so that it serves kinds for which the API
// server knows no merge keys; the resource version makes sure that they hold. A
// variable that is new goes to the front, where a strategic merge puts it too.
// The stale annotations of the template are removed.
func Environment(t Target, variables []Variable, stale ...string) ([]byte, error) {
	operations := []operation{
		{"replace", "/metadata/uid", t.UID},
		{"replace", "/metadata/resourceVersion", t.ResourceVersion},
	}
	template := "/" + strings.ReplaceAll(t.Template, ".", "/")
	for _, key := range stale {
		operations = append(operations, operation{"remove", template + "/metadata/annotations/" + escape(key), nil})
	}
	containers := template + "/spec/containers"
	begun := map[int]bool{}
	var added []Variable
	for _, v := range variables {
		if v.Index < 0 {
			added = append(added, v)
			continue
		}
		path := fmt.Sprintf("%s/%d/env/%d", containers, v.Container, v.Index)
		operations = append(operations, operation{"replace", path, envVar{v.Name, v.Value}})
	}
	for _, v := range added {
		env := fmt.Sprintf("%s/%d/env", containers, v.Container)
		if v.First && !begun[v.Container] {
			operations = append(operations, operation{"add", env, []envVar{}})
		}
		begun[v.Container] = true
		operations = append(operations, operation{"add", env + "/0", envVar{v.Name, v.Value}})
	}
	return json.Marshal(operations)
}
