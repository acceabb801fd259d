package ask

import (
	"cmp"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Summary is one workload, as the controller sees it.
type Summary struct {
	Namespace string `json:"namespace"`
	// Workload is its kind and name, such as "deployment/web".
	Workload string `json:"workload"`
	// State is the controller's decision.
	State Report `json:"state"`
	// Inputs are the recorded inputs that it follows.
	Inputs []InputStatus `json:"inputs,omitempty"`
}

// InputStatus is one input of a workload.
type InputStatus struct {
	// Input is its kind and name, such as "configmap/app".
	Input string `json:"input"`
	// Delivered is the last delivered version: "absent" if the object didn't exist, "unknown" if no
	// controller saw the delivered version.
	Delivered string `json:"delivered"`
	// Current is the current version: "absent" if the object doesn't exist.
	Current string `json:"current"`
	// Image is the image that a container follows, such as "registry.example/app:1.4.*". It is
	// omitted for a source.
	Image string `json:"image,omitempty"`
}

// InStep reports whether the current version was delivered.
func (i InputStatus) InStep() bool { return i.Delivered == i.Current }

// Known is what was read about many workloads.
type Known struct {
	Workloads []cluster.Header
	// Entries are the entries on record; nil without the permission to read them.
	Entries map[kube.Key]record.Entry
	// Failures are the versions with which workloads failed, as record.Published names them.
	Failures map[input.Change]record.Failure
	// Events are Lockstep's events, by the UID of the workload, where NeedsEvents.
	Events map[string][]announce.Reported
	// Serves is what the controller follows.
	Serves Serves
}

// StatusOf lists the workloads that are followed, or that ask to be: those that are not in
// step first.
func StatusOf(k Known) []Summary {
	rows := []Summary{}
	lines := Fleet{Entries: k.Entries, Failures: k.Failures, First: FirstOf(k.Workloads), Serves: k.Serves}.lineup()
	for _, w := range k.Workloads {
		intent := settings.Native{}.Intent(w.Annotations, nil)
		row := Summary{Namespace: w.Key.Namespace, Workload: w.Kind.Name() + "/" + w.Key.Name}
		entry, found := k.entry(w)
		if found {
			row.State, row.Inputs = onRecord(entry), inputsOnRecord(entry)
		} else if told, ok := toldBy(k.Events[w.UID]); ok && told.standsFor(k.Entries != nil) {
			row.State = told
		} else if asksToBeFollowed(intent) {
			row.State = Report{Reason: NotOnRecord, Message: notOnRecord(k.Entries != nil), Ends: firstLook(k.Entries != nil), From: FromEstimate}
		} else {
			continue
		}
		row.State = k.Serves.State(row.State, w.Key, intent.Mode == settings.Follow || hasSource(entry), len(intent.Images) > 0)
		row.State = lines.precise(row.State, w.Key, entry)
		row.Inputs = k.Serves.inputs(row, entry)
		for i := range row.Inputs {
			row.Inputs[i].Image = imageOf(row.Inputs[i].Input, intent)
		}
		rows = append(rows, row)
	}
	sorting.By(rows, func(a, b Summary) int {
		return cmp.Or(compareStates(&a.State, &b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	return rows
}

// NeedsEvents reports whether the record isn't enough: it can't be read, or a workload that asks
// to be followed isn't on it.
func (k Known) NeedsEvents() bool {
	return k.Entries == nil || slices.ContainsFunc(k.Workloads, func(w cluster.Header) bool {
		_, found := k.entry(w)
		return !found && asksToBeFollowed(settings.Native{}.Intent(w.Annotations, nil))
	})
}

// entry is the workload's entry, and not that of an earlier workload of its name.
func (k Known) entry(w cluster.Header) (record.Entry, bool) {
	entry, found := k.Entries[w.Key]
	return entry, found && (entry.TooNew || entry.UID == w.UID)
}

// asksToBeFollowed reports whether the workload's own annotations ask for it. A namespace
// or a controller flag may ask for it too; then the record shows more.
func asksToBeFollowed(intent settings.Intent) bool {
	return intent.Mode == settings.Follow || len(intent.Images)+len(intent.Mistakes.Problems)+len(intent.Mistakes.Refused) > 0
}

// hasSource reports whether a ConfigMap or Secret is on a workload's record.
func hasSource(e record.Entry) bool {
	for id := range e.Inputs {
		if id.IsSource() {
			return true
		}
	}
	return false
}

func notOnRecord(readable bool) string {
	if !readable {
		return "the record cannot be read with your permissions, and the events that you can read don't show it"
	}
	return "it requests to be followed and is not on record: it doesn't use anything that can be followed, or no controller has seen it"
}

// inputsOnRecord are the inputs of an entry, in order.
func inputsOnRecord(e record.Entry) []InputStatus {
	all := make([]InputStatus, 0, len(e.Inputs))
	for id, given := range e.Inputs {
		all = append(all, inputOnRecord(id, given))
	}
	sorting.By(all, func(a, b InputStatus) int { return cmp.Compare(a.Input, b.Input) })
	return all
}

// imageOf is what the annotation asks for, empty for an input that isn't an image.
func imageOf(name string, intent settings.Intent) string {
	for _, request := range intent.Images {
		if input.Image(request.Container).String() == name {
			return request.Image.String()
		}
	}
	return ""
}

func inputOnRecord(id input.ID, given record.Delivered) InputStatus {
	delivered := given.Version.Short()
	return InputStatus{Input: id.String(), Delivered: delivered, Current: cmp.Or(given.Due, delivered)}
}
