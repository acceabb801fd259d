package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

const (
	// fewRows is how many rows a page has, mostRows how many one has that shows all.
	fewRows  = 50
	mostRows = 5000
	// mostNamespaces and mostSources limit the choices of a filter. Another source can be typed, and
	// another namespace as the filter's text.
	mostNamespaces = 2000
	mostSources    = 200
	// longestFilter is how much of a text is searched for.
	longestFilter = 200
)

// entry is a workload of the overview, ready to be filtered.
type entry struct {
	*ask.Summary

	group ask.Group
	// words are what the text of a filter is searched in.
	words string
}

func newSnapshot(status ask.Status, err error) *snapshot {
	s := &snapshot{Status: status, err: err, entries: make([]entry, 0, len(status.Workloads))}
	namespaces, sources := map[string]int{}, map[string]int{}
	for i := range status.Workloads {
		w := &status.Workloads[i]
		e := entry{Summary: w, group: w.State.Group()}
		_, name, _ := strings.Cut(w.Workload, "/")
		words := []string{w.Namespace + "/" + w.Workload, w.Namespace + "/" + name, w.State.Reason, string(e.group)}
		for _, in := range w.Inputs {
			words = append(words, in.Input)
			sources[in.Input]++
		}
		namespaces[w.Namespace]++
		e.words = strings.ToLower(strings.Join(words, " "))
		s.entries = append(s.entries, e)
	}
	s.namespaces, s.sources = mostUsed(namespaces, mostNamespaces), mostUsed(sources, mostSources)
	return s
}

// mostUsed are the most common names, in order.
func mostUsed(counts map[string]int, most int) []string {
	names := sorting.Keys(counts, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	names = slices.Clone(names[:min(len(names), most)])
	slices.Sort(names)
	return names
}

// filter selects workloads.
type filter struct {
	text      string
	namespace string
	state     string
	source    string
	all       bool
}

func filterOf(query url.Values) filter {
	get := func(name string) string {
		value := query.Get(name)
		return strings.TrimSpace(value[:min(len(value), longestFilter)])
	}
	return filter{text: get("q"), namespace: get("ns"), state: get("state"), source: get("source"), all: get("all") != ""}
}

// address is the overview with this filter.
func (f filter) address() string {
	query := url.Values{}
	for name, value := range map[string]string{"q": f.text, "ns": f.namespace, "state": f.state, "source": f.source} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.all {
		query.Set("all", "1")
	}
	return (&url.URL{Path: "/", RawQuery: query.Encode()}).String()
}

// in is the filter with another state.
func (f filter) in(state string) filter {
	f.state, f.all = state, false
	return f
}

// isEmpty reports whether every workload passes.
func (f filter) isEmpty() bool { return f.text+f.namespace+f.state+f.source == "" }

// apply returns the workloads that pass, and how many of each group pass apart from the state.
func (f filter) apply(entries []entry) (passed []entry, counts map[ask.Group]int) {
	counts = map[ask.Group]int{}
	words := strings.Fields(strings.ToLower(f.text))
	source := strings.ToLower(f.source)
	for _, e := range entries {
		if !f.passes(e, words, source) {
			continue
		}
		counts[e.group]++
		if f.state == "" || f.state == string(e.group) {
			passed = append(passed, e)
		}
	}
	return passed, counts
}

func (f filter) passes(e entry, words []string, source string) bool {
	if f.namespace != "" && f.namespace != e.Namespace {
		return false
	}
	for _, word := range words {
		if !strings.Contains(e.words, word) {
			return false
		}
	}
	return source == "" || slices.ContainsFunc(e.Inputs, func(i ask.InputStatus) bool { return strings.Contains(strings.ToLower(i.Input), source) })
}

// shown are the workloads that a page has room for.
func (f filter) shown(passed []entry) []entry {
	room := fewRows
	if f.all {
		room = mostRows
	}
	return passed[:min(len(passed), room)]
}
