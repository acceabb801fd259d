package lint

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/core/review"
)

// strict finds metadata below the paths that the API server refuses, and duplicate keys. It
// returns the object without those values, so the others can be read.
func (c *checking) strict(o manifest.Object, paths ...[]string) manifest.Object {
	for _, d := range o.Duplicates() {
		c.note(o, d.Line, review.DuplicateKey, fmt.Sprintf("%s is already set in line %d, and only one of them counts", d.Key, d.First))
	}
	rest := o
	rest.Unstructured = o.DeepCopy()
	for _, path := range paths {
		for _, set := range []review.Metadata{review.Annotations, review.Labels} {
			c.strings(rest, slices.Concat(path, []string{"metadata", string(set)}))
		}
	}
	return rest
}

// strings removes values that aren't strings from a map. The API server treats null as an
// empty string.
func (c *checking) strings(o manifest.Object, path []string) {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found || value == nil {
		return
	}
	set, isMap := value.(map[string]any)
	if !isMap {
		c.note(o, o.LineOf(path...), review.WrongType, fmt.Sprintf("%s isn't a map of strings", path[len(path)-1]))
		unstructured.RemoveNestedField(o.Object, path...)
		return
	}
	for key, value := range set {
		if _, isString := value.(string); isString || value == nil {
			continue
		}
		line := o.LineOf(slices.Concat(path, []string{key})...)
		c.note(o, line, review.WrongType, fmt.Sprintf("%s %s isn't a string: quote it", singular(path), key))
		delete(set, key)
	}
}

// singular is what one entry of the map is called.
func singular(path []string) string {
	if path[len(path)-1] == string(review.Labels) {
		return "label"
	}
	return "annotation"
}

// note adds an error at a line of the file.
func (c *checking) note(o manifest.Object, line int, rule review.Rule, message string) {
	c.result.Findings = append(c.result.Findings, Mistake{File: o.File, Line: line, Severity: review.Error, Rule: rule, Object: o.Called(), Namespace: o.GetNamespace(), Message: message})
}
