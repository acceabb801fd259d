package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// share is what an entry of the managed fields owns of a value: the entry's index, and its set of
// fields.
type share struct {
	entry int
	set   map[string]any
}

// ownersOf are the entries that own the differences between two values. It reports false if a difference
// belongs to none of them, so its writer isn't known: a removed field, another order of a list, or a
// field whose owner isn't kept.
func ownersOf(before, after any, all []share) (map[int]bool, bool) {
	whole, inner := map[int]bool{}, false
	for _, s := range all {
		if len(s.set) == 0 || before == nil {
			whole[s.entry] = true
		}
		inner = inner || ownsInside(s.set)
	}
	switch {
	case reflect.DeepEqual(before, after):
		return nil, true
	case after == nil:
		return nil, false
	case before == nil:
		return whole, len(whole) > 0 // the API server's defaults in what is new belong to no manager
	case !inner:
		// The owner of a whole list or map. The owner of an empty one may not have emptied it.
		return whole, len(whole) > 0 && !isEmpty(after)
	}
	found := map[int]bool{}
	for _, p := range partsOf(before, after, all) {
		owners, explained := ownersOf(p.before, p.after, p.shares)
		if !explained {
			return nil, false
		}
		maps.Copy(found, owners)
	}
	return found, len(found) > 0
}

// ownsInside reports whether a set has fields of a value, beyond the value itself.
func ownsInside(set map[string]any) bool {
	for element := range set {
		if element != "." {
			return true
		}
	}
	return false
}

func isEmpty(value any) bool {
	fields, isMap := value.(map[string]any)
	items, isList := value.([]any)
	return isMap && len(fields) == 0 || isList && len(items) == 0
}

// part is a field of two maps, or an item of two lists.
type part struct {
	before, after any
	shares        []share
}

// partsOf are the parts of two values. There are none if the values can't be compared by part.
func partsOf(before, after any, all []share) []part {
	switch from := before.(type) {
	case map[string]any:
		to, _ := after.(map[string]any)
		return pairs(from, to, func(name string) []share { return sharesAt(all, "f:"+name) })
	case []any:
		to, _ := after.([]any)
		return pairsOfItems(from, to, all)
	}
	return nil
}

// pairs are the parts of two maps. A part that is missing in one of them is nil there.
func pairs(before, after map[string]any, shares func(name string) []share) []part {
	names := sorting.Keys(before, strings.Compare)
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	list := make([]part, len(names))
	for i, name := range names {
		list[i] = part{before[name], after[name], shares(name)}
	}
	return list
}

// pairsOfItems pairs the items of two lists by the keys that the API defines for the list. Managed fields
// name an item by its key: k:{"containerPort":8080,"protocol":"TCP"} is a port. There are no parts if
// the key isn't known, if it isn't unique, or if items changed places.
func pairsOfItems(before, after []any, all []share) []part {
	elements := map[string]string{}
	var key []string
	for _, s := range all {
		for element := range s.set {
			if item := itemOf(element); item != nil {
				key = slices.Sorted(maps.Keys(item))
				elements[keyOf(item, key)] = element
			}
		}
	}
	from, orderBefore := byKey(before, key)
	to, orderAfter := byKey(after, key)
	missing := func(other map[string]any) func(string) bool {
		return func(name string) bool { _, has := other[name]; return !has }
	}
	if from == nil || to == nil || !slices.Equal(slices.DeleteFunc(orderBefore, missing(to)), slices.DeleteFunc(orderAfter, missing(from))) {
		return nil
	}
	return pairs(from, to, func(name string) []share { return sharesAt(all, elements[name]) })
}

// itemOf is the key in a path element, nil for another element.
func itemOf(element string) map[string]any {
	text, isKey := strings.CutPrefix(element, "k:")
	if !isKey {
		return nil
	}
	var item map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // a port is an int64 in the template
	if d.Decode(&item) != nil {
		return nil
	}
	return item
}

func keyOf(item map[string]any, key []string) string {
	values := make([]string, len(key))
	for i, name := range key {
		values[i] = fmt.Sprintf("%q", fmt.Sprint(item[name]))
	}
	return strings.Join(values, ",")
}

// byKey are the items of a list by their keys, and the keys in order. It is nil if items can't be told
// apart.
func byKey(items []any, key []string) (map[string]any, []string) {
	found, order := map[string]any{}, make([]string, len(items))
	for i := range items {
		item, _ := items[i].(map[string]any)
		order[i] = keyOf(item, key)
		if _, twice := found[order[i]]; twice || item == nil || len(key) == 0 {
			return nil, nil
		}
		found[order[i]] = item
	}
	return found, order
}

// sharesAt are the shares of a part.
func sharesAt(all []share, element string) []share {
	var list []share
	for _, s := range all {
		if set, owns := s.set[element].(map[string]any); owns {
			list = append(list, share{s.entry, set})
		}
	}
	return list
}
