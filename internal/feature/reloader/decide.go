package reloader

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// observation is what a decision on one workload is made from.
type observation struct {
	stakater.Workload
	uid        types.UID
	namespace  string
	kind, name string
	manner     manner
	// created is when the workload was, and nativeAt when Lockstep's own controller last wrote the
	// versions in its template, both by the API server's clock.
	created, nativeAt time.Time
	// templateAt is when the template was last written, zero when that isn't known.
	templateAt time.Time
	// shown are these versions.
	shown input.Shown
	// left is why it isn't reloaded whatever changes, empty if it may be.
	left string
	// changes wait in its namespace.
	changes []*change
	now     time.Time
}

// decision is what follows for one workload.
type decision struct {
	// due are the changes that it gets.
	due []due
	// wait is how long until it may be reloaded, zero for now.
	wait time.Duration
	// shows are changes that its template shows.
	shows []id
	// native are changes that Lockstep's own controller has delivered.
	native []id
}

// due is a change for a workload.
type due struct {
	*change
	// container is the position of the container that shows it.
	container int
	// unseen is true when the template already shows the hash of the change, so something else
	// of it has to change.
	unseen bool
}

// rules are the options that a decision depends on.
type rules struct {
	words    stakater.Words
	strategy Strategy
	quiet    time.Duration
	maxDelay time.Duration
}

// decide decides which changes a workload gets now. All of its changes wait for the last one, but
// not longer than the maximum delay after the first. A workload that is younger than the content
// doesn't need it, unless its template shows another version: it was created again, perhaps around
// pods that are older ("kubectl delete --cascade=orphan").
func (r rules) decide(o observation) decision {
	var d decision
	if o.left != "" || !r.words.Follows(o.Workload) {
		return d
	}
	quiet, most := time.Duration(0), r.maxDelay
	asks := r.words.Read(o.Workload)
	for _, c := range o.changes {
		if !c.concerns(o.kind, o.name) || c.has[o.uid] {
			continue
		}
		container, ok := asks.Match(c.Source)
		if !ok || c.isBefore(o.created) && r.shows(o, c, container) == "" {
			continue
		}
		if o.isNative(c) {
			d.native = append(d.native, c.id())
			continue
		}
		needed, unseen := r.needs(o, c, container)
		if !needed {
			d.shows = append(d.shows, c.id())
			continue
		}
		d.due = append(d.due, due{change: c, container: container, unseen: unseen})
		quiet = max(quiet, c.last.Add(r.quiet).Sub(o.now))
		most = min(most, c.first.Add(r.maxDelay).Sub(o.now))
	}
	d.wait = max(0, min(quiet, most))
	return d
}

// isBefore reports whether the source certainly had its content at that time.
func (c *change) isBefore(at time.Time) bool { return !c.written.IsZero() && at.After(c.written) }

// needs reports whether the workload has to be written for a change that concerns it, and whether
// its template shows the hash of the change nevertheless. A template that shows the hash of a new
// version has got it, from another writer or before a crash. When the hash is that of the earlier
// version too (contents that share a hash, or one that came back), it proves nothing. Neither does
// a template that was written before the source: "kubectl rollout undo" restores an earlier hash,
// but the pods load the content of that moment.
func (r rules) needs(o observation, c *change, container int) (needed, unseen bool) {
	shows := r.shows(o, c, container)
	switch {
	case c.event == deleted && r.strategy == EnvVars:
		return shows != "" && o.manner != byRun && !r.words.Restarts(o.Annotations), false
	case shows == c.hash:
		return c.before == c.hash || !o.templateAt.IsZero() && c.dataWrittenAt.After(o.templateAt), true
	}
	return true, false
}

// shows is the hash of a source in the template, empty without one.
func (r rules) shows(o observation, c *change, container int) string {
	if r.strategy == Annotations {
		last, _ := stakater.ParseReloaded(o.Template.Annotations[stakater.LastReloadedFrom])
		if last.Type == c.Type && last.Name == c.Name {
			return last.Hash
		}
		return ""
	}
	_, value := variableIn(o.Template.Spec.Containers[container], stakater.Variable(c.Type, c.Name))
	return value
}

// variableIn finds an environment variable, at -1 without one.
func variableIn(c corev1.Container, name string) (at int, value string) {
	for i, e := range c.Env {
		if e.Name == name {
			return i, e.Value
		}
	}
	return -1, ""
}

// isNative reports whether Lockstep's own controller has delivered the change: it has rolled out the
// workload since the source was written. Times have a resolution of one second. A controller that
// rolled out the version before in that second delivers this one too.
func (o observation) isNative(c *change) bool {
	if c.written.IsZero() || o.nativeAt.Before(c.written) {
		return false
	}
	for native := range o.shown {
		if native.Name == c.Name && strings.EqualFold(string(native.Kind), string(c.Type)) {
			return true
		}
	}
	return false
}

func compareIDs(a, b id) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
}
