package ledger

// Used is how many bytes of a ConfigMap of the record are taken.
type Used struct {
	Name string
	// All is what all workloads take, Namespaces what those of each namespace take.
	All        int
	Namespaces map[string]int
}

// Room is how many bytes of a ConfigMap of the record new workloads can take: those of one
// namespace, and all.
func Room() (namespace, all int) { return forNew().namespace, forNew().shard }

// used measures as the controller does.
func used(name string, data map[string]string) Used {
	t := newTally()
	for key, text := range data {
		o, _ := ownerOf(key, text)
		t.set(key, lot{o.namespace, len(key) + len(text)})
	}
	return Used{Name: name, All: t.all, Namespaces: t.namespaces}
}
