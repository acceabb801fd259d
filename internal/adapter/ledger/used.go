package ledger

// Used is how many bytes of a record ConfigMap are taken.
type Used struct {
	Name string
	// All is the total of all workloads, Namespaces the total of each namespace.
	All        int
	Namespaces map[string]int
}

// Room is how many bytes of a record ConfigMap new workloads can take: those of one namespace,
// and all.
func Room() (namespace, all int) { return forNew().namespace, forNew().shard }

// used measures in the same way as the controller.
func used(name string, data map[string]string) Used {
	t := newTally()
	for key, text := range data {
		o, _ := ownerOf(key, text)
		t.set(key, lot{o.namespace, len(key) + len(text)})
	}
	return Used{Name: name, All: t.all, Namespaces: t.namespaces}
}
