package cluster

import (
	"maps"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// globs is the index from the patterns of a namespace to the workloads that have them. A source
// is compared only with patterns of its kind whose prefix its name has, and with each of them
// once, however many workloads share it.
type globs struct {
	// byPrefix holds them by kind and prefix, and lengths counts the prefixes of each length.
	byPrefix map[input.ID]map[settings.Pattern]map[kube.Key]struct{}
	lengths  map[int]int
}

func newGlobs() *globs {
	return &globs{byPrefix: map[input.ID]map[settings.Pattern]map[kube.Key]struct{}{}, lengths: map[int]int{}}
}

func (g *globs) isEmpty() bool { return g == nil || len(g.byPrefix) == 0 }

func (g *globs) add(p settings.Pattern, key kube.Key) {
	at := input.ID{Kind: p.Kind, Name: p.Prefix()}
	if g.byPrefix[at] == nil {
		g.byPrefix[at] = map[settings.Pattern]map[kube.Key]struct{}{}
		g.lengths[len(at.Name)]++
	}
	if g.byPrefix[at][p] == nil {
		g.byPrefix[at][p] = map[kube.Key]struct{}{}
	}
	g.byPrefix[at][p][key] = struct{}{}
}

func (g *globs) remove(p settings.Pattern, key kube.Key) {
	at := input.ID{Kind: p.Kind, Name: p.Prefix()}
	if g == nil || g.byPrefix[at] == nil {
		return // the workload lists the pattern twice
	}
	delete(g.byPrefix[at][p], key)
	if len(g.byPrefix[at][p]) == 0 {
		delete(g.byPrefix[at], p)
	}
	if len(g.byPrefix[at]) == 0 {
		delete(g.byPrefix, at)
		if g.lengths[len(at.Name)]--; g.lengths[len(at.Name)] == 0 {
			delete(g.lengths, len(at.Name))
		}
	}
}

// addUsers adds the workloads with a pattern that the source matches.
func (g *globs) addUsers(keys map[kube.Key]struct{}, source input.ID) {
	for length := range g.lengths {
		if length > len(source.Name) {
			continue
		}
		for p, users := range g.byPrefix[input.ID{Kind: source.Kind, Name: source.Name[:length]}] {
			if p.Matches(source) {
				maps.Copy(keys, users)
			}
		}
	}
}
