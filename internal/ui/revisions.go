package ui

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// revisions are a timeline, the newest first.
func (v *workloadView) revisions() node {
	if v.History == nil {
		return ""
	}
	all := v.History.Revisions
	shown := all[:min(len(all), mostRevisions)]
	return section("timeline", "Revisions",
		when(len(shown) > 0, el("ol", "", each(shown, v.revision))),
		rest(len(all)-len(shown), "older revisions"),
		notes(v.History.Notes))
}

func (v *workloadView) revision(r ask.Revision) node {
	number := strconv.FormatInt(r.Number, 10)
	name := "revision"
	// A revision that was made current again has several places.
	place := number + "-" + r.Name
	if r.Again {
		place += "-again"
	}
	if r.Current {
		name += " current"
	}
	return el("li", class(name)+attr("id", "revision-"+place),
		el("h3", "", text("Revision "+number), when(r.Current, el("span", class("place"), text(" current")))),
		el("dl", "",
			fact("Started", moment(r.Started, v.Now)),
			fact("Changed", text(r.ChangedWords())),
			fact("By", text(r.By)),
			factIf("Pods", podWords(r)),
			factIf("Outcome", r.Outcome)),
		given(r, "given-"+place))
}

// podWords is how many pods run a revision.
func podWords(r ask.Revision) string {
	switch {
	case r.Pods == nil:
		return ""
	case *r.Pods == 1:
		return "1 pod runs it"
	}
	return fmt.Sprintf("%d pods run it", *r.Pods)
}

// given are the inputs and images that a revision was started with.
func given(r ask.Revision, id string) node {
	if len(r.Inputs)+len(r.Images) == 0 {
		return ""
	}
	return el("details", attr("id", id),
		el("summary", "", text("started with")),
		el("dl", "", versions(r.Inputs, ""), versions(r.Images, "image of ")))
}

func versions(all map[string]string, prefix string) node {
	return each(slices.Sorted(maps.Keys(all)), func(name string) node { return fact(prefix+name, digest(all[name])) })
}
