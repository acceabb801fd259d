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
				each(v.pins(), func(pin string) node { return fact("Digest", digest(pin)) }),
				fact("Registry", v.registry()),
				stopFacts(v.Stops, nil, v.Now),
				fact("Controller", text(v.Controller.Words(v.Now)))),
			notes(v.Notes)),
		v.containers(),
		commandList(v.commands()),
		eventTable("events", "Events", v.Events, v.Now),
	)
}

// pins are the current tags and digests: the containers of one tag have the same, once each has it.
func (v *imageView) pins() []string {
	var all []string
	for i := range v.Containers {
		if pin := v.Containers[i].Pin(); pin != "" {
			all = append(all, pin)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostPins)]
}

// mostPins bounds the list: usually there is one, and two during a rollout.
const mostPins = 20

// registry is what the registry last answered. A problem starts with its reason, which is a link.
func (v *imageView) registry() node {
	words := v.RegistryWords(v.Now)
	if after, problem := strings.CutPrefix(words, string(input.Unresolved)); problem {
		return together(reason(string(input.Unresolved)), text(after))
	}
	return text(words)
}

// containers are who runs which digest, and what keeps the others from it.
func (v *imageView) containers() node {
	shown := v.Containers[:min(len(v.Containers), mostUsers)]
	if len(shown) == 0 {
		return section("users", "Used by", el("p", "", text("no container follows it; to follow an image, a workload needs the annotation "+settings.ImagePrefix+"CONTAINER")))
	}
	return section("users", "Used by",
		table("Containers that follow it", []string{"Workload", "Container", "Tags", "State", "Delivered", "Current", "Why", "Quarantine", "Last healthy"}, each(shown, v.container)),
		rest(len(v.Containers)-len(shown), "further containers"))
}

func (v *imageView) container(u ask.ImageUse) node {
	return row(
		cell("Workload", link(workloadAddress(u.Namespace, u.Workload), u.Workload)),
		cell("Container", text(u.Container)),
		cell("Tags", text(u.Spec)),
		cell("State", stateBadge(u.State, v.Controller)),
		cell("Delivered", digest(u.Delivered)),
		cell("Current", digest(u.Current)),
		cell("Why", stateWords(u.State, v.Now)),
		cell("Quarantine", text(u.QuarantineWords())),
		cell("Last healthy", digest(u.HealthyWords())))
}

// commands are what a user can find out about the image on a command line.
func (v *imageView) commands() []offer {
	offers := []offer{{"Compare the running images with the registry", v.Shell.lockstep(append([]string{"images", "-n", v.Namespace}, v.Shell.own()...)...)}}
	if _, err := tagspec.ParseImage(v.Image); err == nil {
		offers = append(offers, offer{"Query the registry for the current images of the tags", v.Shell.resolve(v.Image)})
	}
	return append(offers, v.Shell.resume(v.Namespace, "", v.Stops, nil)...)
}

// viewImage is the page of an image.
func (s *Server) viewImage(ctx context.Context, r request) (page, error) {
	namespace, ref := r.path["namespace"], r.query.Get("ref")
	if ref == "" {
		return page{title: "No image", status: http.StatusBadRequest, body: together(
			el("h1", "", text("No image")),
			el("p", class("note"), text("The address doesn't name an image. Open one from the page of a workload that follows it.")))}, nil
	}
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
