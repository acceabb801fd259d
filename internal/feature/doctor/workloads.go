package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

func checkRegistries(f Facts) Check {
	if len(f.Workloads.Errs) > 0 && len(f.Workloads.All) == 0 {
		return unread(Registries, f.Workloads.Errs[0])
	}
	if len(f.Registries) == 0 {
		return ok(Registries, "no workload follows an image")
	}
	c := ok(Registries, "reachable: %s", strings.Join(sortedKeys(f.Registries), ", "))
	for _, host := range sortedKeys(f.Registries) {
		if err := f.Registries[host]; err != nil {
			c.Result = Problem
			c.Details = append(c.Details, err.Error())
		}
	}
	if c.Result == Problem {
		c.Found = fmt.Sprintf("%d of %d registries that workloads need did not answer this machine", len(c.Details), len(f.Registries))
		c.Do = "check the names and the network; the controller may reach registries that this machine can't: \"lockstep explain\" shows its last error"
	}
	if f.Controller.Installation.isKnown() && !f.Controller.Installation.ImagesOn {
		c.Result = Warning // a registry that doesn't answer doesn't affect this controller
		c.Details = append(c.Details, "workloads request images, and the controller does not follow images")
		c.Do = "enable images in the controller"
	}
	c.Details = some(c.Details)
	return c
}

func checkSettings(f Facts) Check {
	if len(f.Workloads.Errs) > 0 && len(f.Workloads.All) == 0 {
		return unread(Settings, f.Workloads.Errs[0])
	}
	c := ok(Settings, "")
	f.tellMistakes(&c)
	asking, followed := f.asking()
	if asking > 0 && f.Controller.Installation.isKnown() && !f.Controller.Installation.ReloadOn {
		c.Result = worse(c.Result, Warning)
		c.Details = append(c.Details, fmt.Sprintf("the controller does not follow ConfigMaps and Secrets; workloads that request them: %d (%s)", asking, input.ReloadOff))
		c.Do = also(c.Do, "enable reload in the controller, or remove the annotations")
	}
	if moved := f.rolledOutByPods(); moved > 0 && f.Controller.Installation.isKnown() && !f.Controller.Installation.PodsOn {
		c.Result = worse(c.Result, Warning)
		c.Details = append(c.Details, fmt.Sprintf("the controller does not evict or refresh pods; workloads that request it: %d (%s)", moved, input.StrategyOff))
		c.Do = also(c.Do, "enable pod strategies in the controller, or remove the annotations")
	}
	if len(f.Kinds.Asking) > 0 {
		c.Result = worse(c.Result, Warning)
		c.Details = append(c.Details, fmt.Sprintf("workloads request to be followed, and the controller does not follow their kind: %s (%s)", strings.Join(some(f.Kinds.Asking), ", "), input.KindOff))
		c.Do = also(c.Do, "enable the kind in the controller, or remove the annotations")
	}
	if len(f.Namespaces.Beyond) > 0 {
		c.Result = worse(c.Result, Warning)
		c.Details = append(c.Details, "workloads request to be followed in namespaces that the controller does not watch: "+strings.Join(some(f.Namespaces.Beyond), ", "))
		c.Do = also(c.Do, "let the controller watch these namespaces, or remove the annotations")
	}
	if f.Namespaces.Unwatched != "" {
		c.Result = worse(c.Result, Warning)
		c.Details = append(c.Details, "the controller does not watch namespace "+f.Namespaces.Unwatched)
		c.Do = also(c.Do, "name a namespace that it watches, or let it watch this one")
	}
	c.Found = fmt.Sprintf("%s checked, %d followed", counted(len(f.Workloads.All), "workload"), followed)
	if c.Result != OK {
		c.Found += ", " + counted(len(c.Details), "finding")
	}
	c.Details = some(c.Details)
	return f.partly(c)
}

// also joins two pieces of advice.
func also(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// asking counts the workloads that ask for ConfigMaps or Secrets, and followed those whose
// requests are served, including images.
func (f Facts) asking() (asking, followed int) {
	reload, images := !f.Controller.Installation.isKnown() || f.Controller.Installation.ReloadOn, !f.Controller.Installation.isKnown() || f.Controller.Installation.ImagesOn
	for _, w := range f.Workloads.All {
		if w.isFollowed() {
			asking++
		}
		if w.isFollowed() && reload || len(w.Intent.Images) > 0 && images {
			followed++
		}
	}
	return asking, followed
}

// rolledOutByPods counts the workloads that ask for another strategy than a new template.
func (f Facts) rolledOutByPods() int {
	count := 0
	for _, w := range f.Workloads.All {
		if s := w.Intent.Strategy; w.isFollowed() && (s == settings.StrategyEvict || s == settings.StrategyRefresh) {
			count++
		}
	}
	return count
}

// tellMistakes adds the mistakes in the settings of workloads, namespaces and sources.
func (f Facts) tellMistakes(c *Check) {
	for _, name := range f.Namespaces.Absent {
		c.Result, c.Do = Problem, "correct the name of the namespace, or create it"
		c.Details = append(c.Details, "namespace "+name+" does not exist")
	}
	notes := slices.Clone(f.Notes)
	sorting.By(notes, func(a, b Note) int { return cmp.Compare(a.Object, b.Object) })
	order := make([]review.Order, len(f.Workloads.All))
	for i, w := range f.Workloads.All {
		order[i] = review.Order{Namespace: w.Namespace, Name: w.Name, After: w.After}
	}
	inOrder := review.OfOrder(order, "does not exist")
	for i, w := range f.Workloads.All {
		for _, finding := range append(review.OfWorkload(w.Review, f.Hints.Nearest), inOrder[i]...) {
			notes = append(notes, Note{w.String(), finding})
		}
	}
	for _, n := range notes {
		if n.Rule == review.WrittenByLockstep { // In a cluster that is expected.
			continue
		}
		result := Warning
		if n.Severity == review.Error {
			result = Problem
		}
		c.Result, c.Do = worse(c.Result, result), cmp.Or(c.Do, "correct the annotations; \"lockstep lint\" finds the same in files")
		c.Details = append(c.Details, fmt.Sprintf("%s: %s (%s)", n.Object, n.Message, n.Rule))
	}
}

// partly reports which workloads were not checked.
func (f Facts) partly(c Check) Check {
	for _, err := range slices.Concat(f.Workloads.Errs, optional(f.Namespaces.Err)) {
		if c.Result == OK {
			c.Result = Unknown
		}
		c.Do = cmp.Or(c.Do, unread(c.Name, err).Do)
		c.Details = append(c.Details, "not checked: "+err.Error())
	}
	return c
}

func optional(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func checkReferences(f Facts) Check {
	switch {
	case len(f.Workloads.Errs) > 0 && len(f.Workloads.All) == 0:
		return unread(References, f.Workloads.Errs[0])
	case f.Sources.Err != nil:
		return unread(References, f.Sources.Err)
	case f.Controller.Installation.isKnown() && !f.Controller.Installation.ReloadOn:
		return ok(References, "the controller does not follow ConfigMaps and Secrets")
	}
	c, needed := ok(References, ""), 0
	for _, w := range f.Workloads.All {
		if !w.isFollowed() {
			continue
		}
		for id, words := range w.needs() {
			needed++
			if !f.Sources.Exist[SourceKey{w.Namespace, id}] {
				c.Details = append(c.Details, fmt.Sprintf("%s %s %s, which does not exist", w, words, id))
			}
		}
	}
	slices.Sort(c.Details)
	c.Found = fmt.Sprintf("%s of followed workloads, all to existing objects", counted(needed, "reference"))
	if len(c.Details) > 0 {
		c.Result = Warning
		c.Found = fmt.Sprintf("%d of %s of followed workloads are to missing objects", len(c.Details), counted(needed, "reference"))
		c.Do = "create the objects, or correct the names, because pods don't start without them"
	}
	c.Details = some(c.Details)
	return f.partly(c)
}

// needs are the sources without which the workload's pods don't start, and those that its
// annotation names, each with the verb for the message.
func (w Workload) needs() map[input.ID]string {
	all := map[input.ID]string{}
	for _, listed := range w.Intent.Listed {
		if !listed.IsGlob() {
			all[input.ID(listed)] = "lists"
		}
	}
	for _, ref := range w.Review.Refs {
		if !ref.Optional {
			all[ref.Source] = "needs"
		}
	}
	return all
}

// checkProbes names the followed workloads whose failures are hard to see.
func checkProbes(f Facts) Check {
	if len(f.Workloads.Errs) > 0 && len(f.Workloads.All) == 0 {
		return unread(Probes, f.Workloads.Errs[0])
	}
	c, followed, unprobed := ok(Probes, ""), 0, map[string]bool{}
	for _, w := range f.Workloads.All {
		unprobed[w.String()] = w.Unprobed
	}
	for _, w := range f.Workloads.All {
		if !w.isFollowed() && len(w.Intent.Images) == 0 {
			continue
		}
		followed++
		if w.Unprobed || unprobed[w.Lender] {
			c.Details = append(c.Details, w.String())
		}
	}
	c.Found = fmt.Sprintf("%s checked: none lacks a readiness probe", counted(followed, "followed workload"))
	if len(c.Details) > 0 {
		c.Result = Warning
		c.Found = fmt.Sprintf("%d of %s without a readiness probe", len(c.Details), counted(followed, "followed workload"))
		c.Do = "add a readiness probe: without one, a pod counts as ready as soon as its process has started, and a change that breaks the application isn't always stopped"
	}
	slices.Sort(c.Details)
	c.Details = some(c.Details)
	return f.partly(c)
}

func checkReloaders(f Facts) Check {
	if len(f.Workloads.Errs) > 0 && len(f.Workloads.All) == 0 {
		return unread(Reloaders, f.Workloads.Errs[0])
	}
	c := ok(Reloaders, "no other reloader restarts Lockstep's workloads")
	runs := map[string]bool{}
	for _, p := range f.Others.Programs {
		runs[p.Tool] = true
	}
	shared := 0
	for _, w := range f.Workloads.All {
		if !w.isFollowed() && len(w.Intent.Images) == 0 {
			continue
		}
		result, details := w.sharers(runs, f.Namespace)
		if len(details) > 0 {
			shared++
		}
		if len(w.Tools) > 0 {
			c.Do = "remove the annotations of one of them: two reloaders restart a workload twice"
		}
		c.Result, c.Details = worse(c.Result, result), append(c.Details, details...)
	}
	if c.Result != OK {
		c.Found = fmt.Sprintf("Lockstep shares %s with another reloader, or with another installation", counted(shared, "workload"))
		c.Do = cmp.Or(c.Do, "check whether that installation still watches the namespace; if not, the next reload ends this warning")
	}
	c = f.sharesAll(c)
	c.Details = some(c.Details)
	for _, p := range f.Others.Programs {
		if !p.All { // otherwise it is already reported
			c.Details = append(c.Details, p.Tool+" runs: "+p.Where)
		}
	}
	if f.Others.Err != nil {
		if c.Result == OK {
			c.Result = Unknown
		}
		c.Details = append(c.Details, "it is not known whether other reloaders run: "+f.Others.Err.Error())
	}
	return f.partly(c)
}

// sharesAll reports programs that take every workload, whatever its annotations.
func (f Facts) sharesAll(c Check) Check {
	for _, where := range f.Others.Installations {
		if f.isElsewhere() {
			break // it is the intended one
		}
		c.Result, c.Do = Problem, "let each of them watch its own namespaces"
		c.Found = "another installation of Lockstep watches the same namespaces"
		c.Details = append(c.Details, "Lockstep runs too: "+where)
	}
	for _, p := range f.Others.Programs {
		if p.All {
			if c.Result == OK {
				c.Found = "another reloader restarts all workloads that its flags do not exclude"
			}
			c.Result, c.Do = worse(c.Result, Warning), cmp.Or(c.Do, "let it restart only workloads with its annotations, or exclude Lockstep's namespaces")
			c.Details = append(c.Details, p.Tool+" runs for all workloads: "+p.Where)
		}
	}
	return c
}

// sharers are the other programs that act on the workload: tools, some of which run, and
// other installations.
func (w Workload) sharers(runs map[string]bool, own string) (result Result, details []string) {
	result = OK
	for _, tool := range w.Tools {
		if runs[tool] {
			result, details = Problem, append(details, fmt.Sprintf("%s also has %s annotations, and %s is running", w, tool, tool))
			continue
		}
		result, details = worse(result, Warning), append(details, fmt.Sprintf("%s also has %s annotations, but %s doesn't seem to be running", w, tool, tool))
	}
	if w.RolledOutBy != "" && w.RolledOutBy != own {
		result, details = worse(result, Warning), append(details, fmt.Sprintf("%s was last rolled out by the installation in namespace %s", w, w.RolledOutBy))
	}
	return result, details
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
