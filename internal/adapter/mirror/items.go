package mirror

import "k8s.io/apimachinery/pkg/types"

// items are copies by namespace and name, so a query for one namespace doesn't scan the others.
type items[T Slim[T]] map[string]map[string]T

func (i items[T]) put(key types.NamespacedName, item T) {
	if i[key.Namespace] == nil {
		i[key.Namespace] = map[string]T{}
	}
	i[key.Namespace][key.Name] = item
}

func (i items[T]) remove(key types.NamespacedName) {
	delete(i[key.Namespace], key.Name)
	if len(i[key.Namespace]) == 0 {
		delete(i, key.Namespace)
	}
}

func (i items[T]) len() int {
	n := 0
	for _, names := range i {
		n += len(names)
	}
	return n
}

// eachDifference visits the items that a list changed, with the zero value for a side that does
// not exist.
func eachDifference[T Slim[T]](before, after items[T], visit func(old, now T)) {
	var none T
	for namespace, names := range after {
		for name, item := range names {
			old, known := before[namespace][name]
			if !known || !item.SameAs(old) {
				visit(old, item)
			}
		}
	}
	for namespace, names := range before {
		for name, old := range names {
			if _, kept := after[namespace][name]; !kept {
				visit(old, none)
			}
		}
	}
}

// eachKept visits the items that exist before and after a list.
func eachKept[T Slim[T]](before, after items[T], visit func(old, now T)) {
	for namespace, names := range after {
		for name, item := range names {
			if old, known := before[namespace][name]; known {
				visit(old, item)
			}
		}
	}
}
