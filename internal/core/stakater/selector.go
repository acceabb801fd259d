package stakater

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Selector joins the items of a list flag to a label selector that wants all of them. An item
// may have a legacy form: k:v for k=v, and k:* or k=* for a key that exists. Without items it
// selects everything.
func Selector(items []string) (labels.Selector, error) {
	wanted := make([]string, len(items))
	for i, item := range items {
		wanted[i] = modern(item)
	}
	return labels.Parse(strings.Join(wanted, ","))
}

// modern is the current form of an item. Like the original it reads an item with several
// colons up to the second one: "a:1,b:2" is a=1,b.
func modern(item string) string {
	if parts := strings.Split(item, ":"); len(parts) > 1 {
		item = parts[0] + "=" + parts[1]
	}
	return strings.TrimSuffix(item, "=*")
}
