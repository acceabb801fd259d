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
	// kind; or why there is no query.
	problem string
	kind    registry.FailureKind
	// refused is true when there is no query, because its namespace has too many.
	refused bool
}

const (
	// mostHosts limits the registries of a namespace, because the controller queries only so many.
	mostHosts = 32
	// mostImages limits the images of a namespace, because each query is kept in memory.
	mostImages = 2000
)

// queries counts those of one namespace, in all and by registry.
type queries struct {
	all   int
	hosts map[string]int
}

// room is the bound that another query of a registry would exceed, or empty.
func (q *queries) room(host string) registry.Bound {
	switch {
	case q == nil:
		return ""
	case q.all >= mostImages:
		return registry.NamespaceImages
	case q.hosts[host] == 0 && len(q.hosts) >= mostHosts:
		return registry.NamespaceHosts
	}
	return ""
}

// take counts a query.
func (i *Inputs) take(namespace, host string) {
	q := i.queries[namespace]
	if q == nil {
		q = &queries{hosts: map[string]int{}}
		i.queries[namespace] = q
	}
	q.all++
	q.hosts[host]++
}

func (i *Inputs) leave(namespace, host string) {
	q := i.queries[namespace]
	if q.hosts[host]--; q.hosts[host] == 0 {
		delete(q.hosts, host)
	}
	if q.all--; q.all == 0 {
		delete(i.queries, namespace)
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
			switch {
			case q.watch != nil:
				all = append(all, NextCheck{Workload: key.ID(), Container: container, At: q.watch.View().Next})
			case q.refused:
				all = append(all, NextCheck{Workload: key.ID(), Container: container, Refused: q.problem})
			}
		}
	}
	return all
}

// NextCheck is when the image of a container is checked next, or why it isn't.
type NextCheck struct {
	// Workload is the ID of its key.
	Workload  string    `json:"workload"`
	Container string    `json:"container"`
	At        time.Time `json:"at,omitzero"`
	// Refused is why the image isn't checked at all, empty if it is.
	Refused string `json:"refused,omitempty"`
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
		i.leave(key.Namespace, q.host)
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
	if name := question.Key(); q.name != name {
		key, host := w.Key, question.Repository.Host
		if before := q.watch; before != nil {
			i.leave(key.Namespace, q.host)
			defer before.Stop() // After the next one has begun, so shared parts stay.
		}
		if bound := i.queries[key.Namespace].room(host); bound != "" {
			return i.refuse(key, host, q, bound)
		}
		i.take(key.Namespace, host)
		q.name, q.host, q.refused = name, host, false
		q.watch = i.options.Watch(question, func() { i.wakeUp(key) })
	}
	return q.read(i.options.Now())
}

// refuse forgets the query of a container that would be one too many, or whose registry would.
func (i *Inputs) refuse(key kube.Key, host string, q *watched, bound registry.Bound) answer {
	i.options.Exceeded(bound)
	limit := fmt.Sprintf("%d registries; use fewer", mostHosts)
	if bound == registry.NamespaceImages {
		limit = fmt.Sprintf("%d images; follow fewer, or use another namespace", mostImages)
	}
	*q = watched{refused: true, problem: fmt.Sprintf("%s is not queried: namespace %s has reached the limit of %s", host, key.Namespace, limit)}
	return answer{refused: true, problem: q.problem}
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
	q := imagewatch.Question{Repository: request.Image.Repository, Spec: request.Image.Spec, Namespace: w.Key.Namespace}
	q.Credentials, q.Asker = credentials(w)
	if _, exact := q.Spec.Exact(); !exact && request.Image.Allows(has) {
		q.Running = has.Tag
	}
	if platform, err := registry.ParsePlatform(request.Platform); err == nil && (!request.ByDefault || w.Pull.Allows(platform.OS, platform.Architecture)) {
		q.Platforms, q.Child = append(q.Platforms, platform), true
	}
	return q
}
