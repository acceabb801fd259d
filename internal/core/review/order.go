package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/core/window"
)

// Order is a workload with those that go before it.
type Order struct {
	// Namespace is empty in a file that names none.
	Namespace string
	// Name is "deployment/web", and After are names of the same form.
	Name  string
	After []string
}

// OfOrder lists the mistakes in the order of workloads, for each of them: names that aren't
// among them, with the ending that explains it, and workloads that wait for each other.
func OfOrder(all []Order, missing string) [][]Mistake {
	found := make([][]Mistake, len(all))
	for i, w := range all {
		if len(w.After) == 0 {
			continue
		}
		r := report{}
		for _, name := range w.After {
			if !slices.ContainsFunc(all, func(o Order) bool { return o.Name == name && w.near(o) }) {
				r.add(MissingReference, Annotations, settings.After, fmt.Sprintf("%s, which the annotation %s names, %s", name, settings.After, missing))
			}
		}
		if cycle, _ := spread.Cycle(w.Name, w.among(all)); cycle != nil {
			r.add(Contradiction, Annotations, settings.After, fmt.Sprintf("annotation %s: %s is a cycle, so one of them doesn't wait", settings.After, strings.Join(append(cycle, w.Name), " -> ")))
		}
		found[i] = r.all
	}
	return found
}

// near reports whether both are in the same namespace. One without a namespace may be applied
// to any.
func (w Order) near(o Order) bool {
	return w.Namespace == o.Namespace || w.Namespace == "" || o.Namespace == ""
}

// among are the names that go before a workload of the same namespace.
func (w Order) among(all []Order) func(string) []string {
	return func(name string) []string {
		for _, o := range all {
			if o.Name == name && w.near(o) {
				return o.After
			}
		}
		return nil
	}
}

// windows checks the maintenance windows that are on the object itself.
func (r *report) windows(intent settings.Intent, on settings.Place) {
	for _, placed := range intent.Windows {
		if placed.On != on {
			continue
		}
		if _, err := window.Parse(placed.Text); err != nil {
			r.add(InvalidValue, Annotations, settings.Window, settings.WindowProblem(placed.Text, err).String())
		}
	}
}
