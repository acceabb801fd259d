package settings

import (
	"fmt"
	"maps"
	"slices"
)

// Translation is a request in another tool's annotations, as annotations of ours.
type Translation struct {
	// Annotations are ours.
	Annotations map[string]string
	// Lost are the other tool's annotations without a counterpart. The value of each is a
	// sentence that says what Lockstep does instead.
	Lost map[string]string
}

// ReloadWords are another tool's annotations that request reloads.
type ReloadWords interface {
	// Knows reports whether the annotation belongs to the tool.
	Knows(key string) bool
	// Workload translates the annotations of a workload and of its pod template.
	Workload(kind string, own, template map[string]string) Translation
	// Source translates the annotations of a ConfigMap or Secret.
	Source(kind string, own map[string]string) Translation
}

// Translator is a vocabulary that reads other tools' annotations as ours.
type Translator interface {
	// OfWorkload replaces the other tools' annotations among those of a workload. What has no
	// counterpart stays under its key, with a sentence as the value.
	OfWorkload(kind string, own, template map[string]string) map[string]string
	// OfSource does the same for a ConfigMap or Secret.
	OfSource(kind string, own map[string]string) map[string]string
}

// OfWorkload implements Translator. Our own reload annotation wins.
func (n Native) OfWorkload(kind string, own, template map[string]string) map[string]string {
	for _, words := range n.Reads {
		own = replaced(own, words, func() Translation { return words.Workload(kind, own, template) })
	}
	return own
}

// OfSource implements Translator. Our own reload annotation wins.
func (n Native) OfSource(kind string, own map[string]string) map[string]string {
	for _, words := range n.Reads {
		own = replaced(own, words, func() Translation { return words.Source(kind, own) })
	}
	return own
}

func replaced(own map[string]string, words ReloadWords, translate func() Translation) map[string]string {
	var t Translation
	if _, ours := own[Reload]; !ours {
		t = translate()
	}
	if len(t.Annotations)+len(t.Lost) > 0 && own == nil {
		own = map[string]string{}
	}
	maps.DeleteFunc(own, func(key, _ string) bool { return words.Knows(key) })
	maps.Copy(own, t.Annotations)
	maps.Copy(own, t.Lost)
	return own
}

// lost lists the annotations that OfWorkload found no counterpart for.
func (n Native) lost(workload map[string]string) []string {
	var all []string
	for key, sentence := range workload {
		if slices.ContainsFunc(n.Reads, func(words ReloadWords) bool { return words.Knows(key) }) {
			all = append(all, fmt.Sprintf("annotation %s: %s", key, sentence))
		}
	}
	slices.Sort(all)
	return all
}
