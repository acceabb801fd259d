package review

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// keys checks the keys of one map. Where names the object for a message.
func (r *report) keys(at Metadata, set map[string]string, known []string, where string) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		switch {
		case slices.Contains(known, key):
		case isAnnotationForImages(key) && at == Annotations && isForWorkloads(known):
		case !settings.IsOurs(key):
			r.domain(at, key)
		case slices.Contains(settings.Written(), key):
			r.add(WrittenByLockstep, at, key, fmt.Sprintf("%s %s is written by Lockstep: leave it out", at.singular(), key))
		case isAnnotationForImages(key) || slices.Contains(users(), key):
			r.misplaced(at, key, where)
		default:
			r.add(UnknownKey, at, key, fmt.Sprintf("%s %s is unknown and has no effect%s", at.singular(), key, r.hint(prefixOf(key), nameOf(key), namesWith(prefixOf(key)))))
		}
	}
}

// misplaced reports a key that has a meaning elsewhere, and where.
func (r *report) misplaced(at Metadata, key, where string) {
	what := Annotations
	if slices.Contains(settings.LabelsForSources(), key) {
		what = Labels
	}
	r.add(MisplacedKey, at, key, fmt.Sprintf("%s %s has no effect on %s; it belongs in the %s of a %s", at.singular(), key, where, what, home(key)))
}

// home names the objects that a key is for, as the reference does.
func home(key string) string {
	if isAnnotationForImages(key) {
		return "workload"
	}
	var on []string
	for _, r := range settings.References() {
		if r.Key == key {
			on = append(on, strings.Split(strings.TrimSuffix(r.On, " (label)"), ", ")...)
		}
	}
	if len(on) < 2 {
		return strings.Join(on, "")
	}
	last := len(on) - 1
	return strings.Join(on[:last], ", ") + " or " + on[last]
}

// domain finds a key whose domain is almost one of ours.
func (r *report) domain(at Metadata, key string) {
	domain, name, found := strings.Cut(key, "/")
	if !found {
		return
	}
	if below, is := strings.CutSuffix(domain, "."+strings.TrimSuffix(settings.Prefix, "/")); is {
		r.belowOurs(at, key, below)
		return
	}
	prefix := r.prefixLike(domain)
	// Another project may use such a domain. It is a mistake only if the name is ours too.
	if prefix != "" && isKey(prefix+name) {
		r.add(UnknownKey, at, key, fmt.Sprintf("%s %s is unknown and has no effect; did you mean %s?", at.singular(), key, prefix+name))
	}
}

// belowOurs reports a key whose domain is below ours, but isn't one of ours. Some users write
// a name there that belongs after the slash.
func (r *report) belowOurs(at Metadata, key, below string) {
	hint := ""
	if prefix := r.prefixLike(domainOf(key)); prefix != "" && isKey(prefix+nameOf(key)) {
		hint = "; did you mean " + prefix + nameOf(key) + "?"
	} else if slices.Contains(users(), settings.Prefix+below) {
		hint = "; did you mean " + settings.Prefix + below + "?"
	}
	r.add(UnknownKey, at, key, fmt.Sprintf("%s %s is unknown and has no effect%s", at.singular(), key, hint))
}

// prefixLike is our prefix whose domain is nearest to another one, or the same except for the
// part after the last dot; empty when there is none.
func (r *report) prefixLike(domain string) string {
	ours := map[string]string{}
	for _, prefix := range prefixes() {
		ours[strings.TrimSuffix(prefix, "/")] = prefix
	}
	if near := r.nearest(domain, slices.Sorted(maps.Keys(ours))); len(near) > 0 {
		return ours[near[0]]
	}
	for own, prefix := range ours {
		if strings.TrimSuffix(own, path.Ext(own)) == strings.TrimSuffix(domain, path.Ext(domain)) {
			return prefix
		}
	}
	return ""
}

// isKey reports whether a key is one that users write.
func isKey(key string) bool {
	_, image := settings.ImageContainer(key)
	return image || slices.Contains(users(), key)
}

// hint lists what a misspelt word may mean, each after the prefix.
func (r *report) hint(prefix, word string, candidates []string) string {
	near := r.nearest(word, candidates)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}

// users are all keys that users write, except those that end in a container's name.
func users() []string {
	all := slices.Concat(settings.ForWorkloads(), settings.ForNamespaces(), settings.ForSources(), settings.LabelsForSources())
	slices.Sort(all)
	return slices.Compact(all)
}

func prefixes() []string {
	return []string{settings.Prefix, settings.ImagePrefix, settings.PlatformPrefix}
}

func prefixOf(key string) string { return domainOf(key) + "/" }

func domainOf(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	return domain
}

func nameOf(key string) string {
	_, name, _ := strings.Cut(key, "/")
	return name
}

// namesWith are the names of the keys that begin with a prefix.
func namesWith(prefix string) []string {
	var names []string
	for _, key := range users() {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			names = append(names, name)
		}
	}
	return names
}

func isAnnotationForImages(key string) bool {
	container, ok := settings.ImageContainer(key)
	return ok && container != ""
}

// isForWorkloads reports whether the known keys are those of a workload, which may have
// image annotations too.
func isForWorkloads(known []string) bool {
	return slices.Contains(known, settings.Strategy)
}

// singular is what one entry of the map is called.
func (m Metadata) singular() string {
	if m == Labels || m == TemplateLabels {
		return "label"
	}
	return "annotation"
}
