package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

func checkStops(f Facts) Check {
	if f.Controller.StopErr != nil {
		return unread(Stops, f.Controller.StopErr)
	}
	c := ok(Stops, "nothing is stopped")
	stop := f.Controller.Stop
	if stop.All != nil {
		c.Details = append(c.Details, "every automatic change is stopped"+because(*stop.All))
	}
	for _, namespace := range sortedKeys(stop.Namespaces) {
		c.Details = append(c.Details, "every automatic change in namespace "+namespace+" is stopped"+because(stop.Namespaces[namespace]))
	}
	if len(c.Details) > 0 {
		c.Found, c.Do = "an operator stopped automatic changes", "run \"lockstep resume\" to allow them again"
	}
	if failed := f.stoppedVersions(); len(failed) > 0 {
		if len(c.Details) == 0 {
			c.Found = "a version failed, so Lockstep doesn't deliver it to further workloads"
		}
		c.Details = append(c.Details, failed...)
		c.Do = also(c.Do, "correct the source, or deliver the version anyway with \"lockstep resume KIND/NAME\"")
	}
	if len(c.Details) > 0 {
		c.Result, c.Details = Warning, some(c.Details)
	}
	return c
}

// stoppedVersions are the versions for which workloads wait because they failed elsewhere.
func (f Facts) stoppedVersions() []string {
	var all []string
	for of, failure := range f.Record.Stored.Failures {
		waiting := f.waitingFor(of)
		if waiting == 0 {
			continue
		}
		failed := make([]string, len(failure.On))
		for i, id := range failure.On {
			failed[i] = objectname.OfID(id)
		}
		where := " in namespace " + of.Namespace
		if of.IsShared() {
			where = ""
		}
		all = append(all, fmt.Sprintf("%s%s failed on %s; waiting: %s", of, where, strings.Join(failed, ", "), counted(waiting, "workload")))
	}
	slices.Sort(all)
	return all
}

// waitingFor counts the workloads that wait because of a version that failed.
func (f Facts) waitingFor(of input.Change) int {
	count := 0
	for key, e := range f.Record.Stored.Entries {
		if e.Decision.Reason != input.VersionStopped || !of.IsShared() && key.Namespace != of.Namespace {
			continue
		}
		for id, given := range e.Inputs {
			if given.Due != "" && (id == of.ID || !id.IsSource() && given.Due == of.Version) {
				count++
				break
			}
		}
	}
	return count
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
