package ui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// imageView is what the page of an image shows.
type imageView struct {
	ask.ImageExplanation

	Now   time.Time
	Shell shell
}

// imagePage is which containers follow an image and what is known of it. No registry is asked for
// it.
func imagePage(v *imageView) node {
	where := "all namespaces"
	if v.Namespace != "" {
		where = "namespace " + v.Namespace
	}
	return together(
		el("header", class("subject"), el("h1", "", text(v.Image), el("span", class("place"), text(" in "+where)))),
		section("state", "State",
			el("dl", "",
				each(v.digests(), func(d string) node { return fact("Digest", digest(d)) }),
				fact("Registry", v.registry()),
				stopFacts(v.Stops, nil, v.Now),
				fact("Controller", text(v.Controller.Words(v.Now)))),
			notes(v.Notes)),
		v.containers(),
		commandList(v.commands()),
		eventTable("events", "Events", v.Events, v.Now),
	)
}

// digests are the current ones: the containers of one tag have the same, once each has it.
func (v *imageView) digests() []string {
	var all []string
	for _, u := range v.Containers {
		full := u.Current
		if u.InStep() && u.Digest != "" {
			full = u.Digest
		}
		if full != "" && len(all) < mostDigests {
			all = append(all, full)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mostDigests bounds the list of digests: usually there is one, and two during a rollout.
const mostDigests = 20

// registry is what the registry last answered, as far as an event is left of it.
func (v *imageView) registry() node {
	var last *ask.Event
	for _, u := range v.Containers {
		if u.Problem != nil && (last == nil || u.Problem.At.After(last.At)) {
			last = u.Problem
		}
	}
	switch {
	case last == nil && !v.isAnswered():
		return text("the controller hasn't asked it, as far as the record and events show")
	case last == nil:
		return text("no problem was reported in the events that are left")
	}
	return together(text("a problem was reported "), moment(&last.At, v.Now), text(", and may be over: "), reason(last.Reason), text(": "+last.Note))
}

// isAnswered reports whether the record or an event shows a digest, which only the registry knows.
func (v *imageView) isAnswered() bool {
	return slices.ContainsFunc(v.Containers, func(u ask.ImageUse) bool { return u.Digest != "" || !u.InStep() }) ||
		slices.ContainsFunc(v.Events, func(e ask.Event) bool {
			switch input.Reason(e.Reason) {
			case input.ImagesOff, input.KindOff, input.InvalidAnnotation, input.Following, input.ReleasedByHand, input.RolledByHand:
				return false
			default:
				return true
			}
		})
}

// containers are who runs which digest, and what keeps the others from it.
func (v *imageView) containers() node {
	shown := v.Containers[:min(len(v.Containers), mostUsers)]
	if len(shown) == 0 {
		return section("users", "Used by", el("p", "", text("no container follows it: the annotation "+settings.ImagePrefix+"CONTAINER names what a container follows")))
	}
	return section("users", "Used by",
		table("Containers that follow it", []string{"Workload", "Container", "Tags", "State", "Delivered", "Current", "Why", "Quarantine"}, each(shown, v.container)),
		rest(len(v.Containers)-len(shown), "further containers"))
}

func (v *imageView) container(u ask.ImageUse) node {
	return row(
		cell("Workload", link(workloadAddress(u.Namespace, u.Workload), u.Workload)),
		cell("Container", text(u.Container)),
		cell("Tags", text(u.Spec)),
		cell("State", v.badge(u)),
		cell("Delivered", digest(u.Delivered)),
		cell("Current", digest(u.Current)),
		cell("Why", stateWords(u.State, v.Now)),
		cell("Quarantine", text(quarantineWords(u))))
}

// badge is the state of the workload, unless that doesn't include the image: the controller may not
// follow images, or hasn't found one yet.
func (v *imageView) badge(u ask.ImageUse) node {
	if u.Delivered == "" && u.State.IsInStep() {
		return el("span", class("badge"), text("no digest on record"))
	}
	return stateBadge(u.State, v.Controller)
}

// quarantineWords are which digests failed here, and what was healthy before.
func quarantineWords(u ask.ImageUse) string {
	var words []string
	if len(u.Quarantined) > 0 {
		words = append(words, "failed here: "+strings.Join(u.Quarantined, ", "))
	}
	if u.Contested {
		words = append(words, "another writer keeps restoring its image")
	}
	if u.Healthy != "" {
		words = append(words, "last healthy with "+u.Healthy)
	}
	return dashed(strings.Join(words, "; "))
}

// commands are what a user can find out about the image on a command line.
func (v *imageView) commands() []offer {
	offers := []offer{{"Compare what runs with what the registry has now", v.Shell.lockstep(append([]string{"images", "-n", v.Namespace}, v.Shell.own()...)...)}}
	if _, err := tagspec.ParseImage(v.Image); err == nil {
		offers = append(offers, offer{"Ask the registry which image the tags mean now", v.Shell.resolve(v.Image)})
	}
	return append(offers, v.Shell.resume(v.Namespace, "", v.Stops, nil)...)
}

// viewImage is the page of an image.
func (s *Server) viewImage(ctx context.Context, r request) (page, error) {
	namespace, ref := r.path["namespace"], r.query.Get("ref")
	if problem := imageProblem(ref); problem != nil {
		return badImage(ref, r.query.Get("annotation"), problem), nil
	}
	explained, err := s.answers.Image(ctx, namespace, ref)
	if err != nil {
		return page{}, err
	}
	v := &imageView{ImageExplanation: explained, Now: r.now, Shell: s.shell()}
	return page{title: shown(ref) + " in " + namespace, namespace: namespace, body: imagePage(v)}, nil
}

// imageProblem is why a text names no image.
func imageProblem(ref string) error {
	_, err := tagspec.ParseImage(ref)
	if err == nil {
		return nil
	}
	if _, other := tagspec.ParseReference(ref); other == nil {
		return nil
	}
	return err
}

// badImage says which annotation has to be corrected.
func badImage(ref, annotation string, problem error) page {
	if !strings.HasPrefix(annotation, settings.ImagePrefix) {
		annotation = settings.ImagePrefix + "CONTAINER"
	}
	return page{title: "Not an image", status: http.StatusBadRequest, body: together(
		el("h1", "", text("Not an image")),
		el("p", class("note"), text("The annotation "+annotation+" has the value "), el("code", "", text(ref)), text(", which Lockstep can't read: "+problem.Error())))}
}
