// Package patch knows the smallest documents that change a pod template.
package patch

import (
	"encoding/json"
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
