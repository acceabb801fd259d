package images

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// watched is the query for the image of one container.
type watched struct {
	// name is the same for the same query.
	name  string
	watch Watch
	// host is the registry that is queried.
	host string
	// digest is that of the last answer, first seen at since; answers counts the answers in
	// this process.
	digest  string
	since   time.Time
	answers int
	// problem is the last failure, in the wording of its first occurrence, and kind its
	// kind.
	problem string
	kind    registry.FailureKind
	// refused is true when there is no query, because its namespace has too many registries.
	refused bool
}

// mostHosts limits the registries of a namespace, because the controller queries only so many.
const mostHosts = 32

// hosts count the queries by namespace and registry.
type hosts map[string]map[string]int

// take reports whether a namespace may query a registry, and counts it.
func (h hosts) take(namespace, host string) bool {
	all := h[namespace]
	if all[host] == 0 && len(all) >= mostHosts {
		return false
	}
	if all == nil {
		all = map[string]int{}
		h[namespace] = all
	}
	all[host]++
	return true
}

func (h hosts) leave(namespace, host string) {
	all := h[namespace]
	if all[host]--; all[host] <= 0 {
		delete(all, host)
	}
	if len(all) == 0 {
		delete(h, namespace)
	}
}

// answer is what is known about a query.
type answer struct {
	imagewatch.View
	// since is when the digest was first seen, and first is true when this process saw no
	// earlier one.
	since time.Time
	first bool
	// problem explains why the last check failed, in the same words for the same kind of
	// failure.
	problem string
	// refused is true when there is no check.
	refused bool
	// outage is true when the registry can't be queried, whatever the image.
	outage bool
}

// Wake sets the function that is called with a workload whose image has changed.
func (i *Inputs) Wake(f func(kube.Key)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = f
}

// WakeAll wakes every workload that requests an image: its query may be another one now.
func (i *Inputs) WakeAll() {
	i.mu.Lock()
	wake, keys := i.wake, slices.Collect(maps.Keys(i.watched))
	i.mu.Unlock()
	for _, key := range keys {
		wake(key)
	}
}

// NextChecks list when the registry is next queried for each container's image.
func (i *Inputs) NextChecks() []NextCheck {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []NextCheck
	for key, containers := range i.watched {
		for container, q := range containers {
			if q.watch != nil {
				all = append(all, NextCheck{Workload: key.ID(), Container: container, At: q.watch.View().Next})
			}
		}
	}
	return all
}

// NextCheck is when the image of a container is checked next.
type NextCheck struct {
	// Workload is the ID of its key.
	Workload  string    `json:"workload"`
	Container string    `json:"container"`
	At        time.Time `json:"at"`
}

// Drop ends the queries for a workload that is gone.
func (i *Inputs) Drop(key kube.Key) { i.keep(key, nil) }

// keep ends the queries for containers that are no longer requested.
func (i *Inputs) keep(key kube.Key, requests []settings.ImageRequest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for container, q := range i.watched[key] {
		if slices.ContainsFunc(requests, func(r settings.ImageRequest) bool { return r.Container == container }) {
			continue
		}
		i.end(key, q)
		delete(i.watched[key], container)
	}
	if len(i.watched[key]) == 0 {
		delete(i.watched, key)
	}
}

// end ends a query, if there is one.
func (i *Inputs) end(key kube.Key, q *watched) {
	if q.watch != nil {
		q.watch.Stop()
		i.hosts.leave(key.Namespace, q.host)
		q.watch = nil
	}
}

// ask returns the last answer for a container, and starts the query if necessary.
func (i *Inputs) ask(w *kube.Workload, request settings.ImageRequest, has tagspec.Reference) answer {
	question, known := i.question(w, request, has)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.watched[w.Key] == nil {
		i.watched[w.Key] = map[string]*watched{}
	}
	q := i.watched[w.Key][request.Container]
	if q == nil {
		q = &watched{}
		i.watched[w.Key][request.Container] = q
	}
	if !known {
		return answer{}
	}
	if name := nameOf(question); q.name != name {
		key, host := w.Key, question.Repository.Host
		if !i.hosts.take(key.Namespace, host) {
			return i.refuse(key, host, q)
		}
		next := i.options.Watch(question, func() { i.wakeUp(key) })
		i.end(key, q) // After the next one has begun, so shared parts stay.
		q.name, q.watch, q.host, q.refused = name, next, host, false
	}
	return q.read(i.options.Now())
}

// refuse ends the query of a container whose registry would be one too many.
func (i *Inputs) refuse(key kube.Key, host string, q *watched) answer {
	i.end(key, q)
	*q = watched{refused: true}
	i.options.Exceeded(registry.NamespaceHosts)
	return answer{refused: true, problem: fmt.Sprintf(
		"%s is not asked: the images of namespace %s come from %d other registries already, and this is the limit; use fewer", host, key.Namespace, mostHosts)}
}

func (i *Inputs) wakeUp(key kube.Key) {
	i.mu.Lock()
	wake := i.wake
	i.mu.Unlock()
	wake(key)
}

// read records changes since the last call.
func (q *watched) read(now time.Time) answer {
	view := q.watch.View()
	if view.Digest != "" && view.Digest != q.digest {
		q.digest, q.since = view.Digest, now
		q.answers++
	}
	switch kind := registry.KindOf(view.Err); {
	case view.Err == nil:
		q.problem, q.kind = "", ""
	case q.isLeftAlone(view.Err):
	case q.problem == "" || q.kind != kind:
		q.problem, q.kind = view.Err.Error(), kind
	}
	return answer{View: view, since: q.since, first: q.answers == 1, problem: q.problem, outage: isOutage(q.kind)}
}

// isLeftAlone reports whether the registry wasn't queried for a while because of the
// failure before.
func (q *watched) isLeftAlone(err error) bool {
	return registry.KindOf(err) == registry.Limited && (q.kind == registry.Unreachable || q.kind == registry.Broken)
}

// checked is the last check of an image.
type checked struct{ host, result string }

// lastChecks counts the containers by the last check of their image.
func (i *Inputs) lastChecks() map[checked]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := map[checked]int{}
	for _, containers := range i.watched {
		for _, q := range containers {
			if q.watch == nil {
				if q.refused {
					all[checked{otherHosts, string(registry.TooLarge)}]++
				}
				continue
			}
			view := q.watch.View()
			switch {
			case view.Err == nil && view.Digest == "": // not checked yet
			case q.isLeftAlone(view.Err):
				all[checked{q.host, string(q.kind)}]++
			default:
				all[checked{labelOf(q.host, view.Err), resultOf(view.Err)}]++
			}
		}
	}
	return all
}

// question is the registry query for a container. It is false while the platforms aren't
// known.
func (i *Inputs) question(w *kube.Workload, request settings.ImageRequest, has tagspec.Reference) (imagewatch.Question, bool) {
	q := Question(w, request, has, i.options.Credentials)
	if q.Child {
		return q, true
	}
	platforms, known := i.options.Platforms(w)
	q.Platforms = platforms
	return q, known
}

// Question is the registry query for the image of a container, without the platforms of
// the nodes.
func Question(w *kube.Workload, request settings.ImageRequest, has tagspec.Reference, credentials Credentials) imagewatch.Question {
	q := imagewatch.Question{Repository: request.Image.Repository, Spec: request.Image.Spec}
	q.Credentials, q.Asker = credentials(w)
	if _, exact := q.Spec.Exact(); !exact && request.Image.Allows(has) {
		q.Running = has.Tag
	}
	if platform, err := registry.ParsePlatform(request.Platform); err == nil && (!request.ByDefault || w.Pull.Allows(platform.OS, platform.Architecture)) {
		q.Platforms, q.Child = append(q.Platforms, platform), true
	}
	return q
}

func nameOf(q imagewatch.Question) string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%v\n%t", q.Repository, q.Spec, q.Asker, q.Running, q.Platforms, q.Child)
}
