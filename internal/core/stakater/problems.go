package stakater

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxProblems = 10
	// maxQuoted is in bytes, of a value in a problem.
	maxQuoted = 60
)

// Problems are annotations of a workload of the kind whose value the original ignores or fails
// on: a bad pattern, an auto that is neither true nor false, another word for a search, a pause
// period or strategy that isn't one. The list is short, and so is each problem.
func (w Words) Problems(on Workload, kind string) []string {
	var found problems
	for _, t := range types() {
		place, keys := w.place(on, t), w.Keys.of(t)
		found.inAuto(w.Keys.Auto, place)
		found.inAuto(keys.auto, place)
		found.inPatterns(keys.named, place)
		found.inSearch(w.Keys.Search, place)
	}
	if strategy := on.Annotations[w.Keys.RolloutStrategy]; kind == "Rollout" && strategy != "" && strategy != "rollout" && strategy != "restart" {
		found.add(w.Keys.RolloutStrategy, quote(strategy)+" is neither rollout nor restart")
	}
	if period, ok := on.Annotations[w.Keys.PausePeriod]; ok {
		switch {
		case kind != "Deployment":
			found.add(w.Keys.PausePeriod, "Reloader pauses only Deployments")
		case w.Pause(on.Annotations) == 0:
			found.add(w.Keys.PausePeriod, quote(period)+" isn't a positive duration such as 30s")
		}
	}
	return found
}

type problems []string

func (p *problems) add(key, problem string) {
	if text := key + ": " + problem; len(*p) < maxProblems && !slices.Contains(*p, text) {
		*p = append(*p, text)
	}
}

func (p *problems) inAuto(key string, place map[string]string) {
	value := place[key]
	if _, err := strconv.ParseBool(value); err != nil && value != "" {
		p.add(key, quote(value)+" is neither true nor false")
	}
}

func (p *problems) inSearch(key string, place map[string]string) {
	if value := place[key]; value != "" && value != "true" && value != "false" {
		p.add(key, quote(value)+" isn't true, the only value with an effect")
	}
}

func (p *problems) inPatterns(key string, place map[string]string) {
	for _, err := range patterns(place[key]) {
		if err != nil {
			p.add(key, err.Error())
		}
		if len(*p) == maxProblems {
			return
		}
	}
}

// quote is the beginning of a value, in quotes.
func quote(value string) string {
	if len(value) > maxQuoted {
		value = strings.ToValidUTF8(value[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", value)
}
