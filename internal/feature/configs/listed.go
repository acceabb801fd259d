package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// searched are digests of the patterns that were just resolved. A pattern whose kind
// can't be listed isn't included: when it can be listed, its sources may have existed for
// long.
func (i *Inputs) searched(namespace string, intent settings.Intent) []string {
	var all []string
	for _, p := range intent.Listed {
		if p.IsGlob() && i.options.View.Knows(p.Kind, namespace) {
			all = append(all, digestOf(p))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wasSearched reports whether a pattern that matches the source was resolved before.
func wasSearched(id input.ID, intent settings.Intent, given record.Entry) bool {
	return slices.ContainsFunc(intent.Listed, func(p settings.Pattern) bool {
		return p.IsGlob() && p.Matches(id) && slices.Contains(given.Searched, digestOf(p))
	})
}

// digestOf is a short name of a pattern, which may be long: the record has little room.
func digestOf(p settings.Pattern) string {
	const enough = 4
	sum := sha256.Sum256([]byte(string(p.Kind) + "/" + p.Name))
	return hex.EncodeToString(sum[:enough])
}

// isToken reports whether the source is a service account token. The cluster renews those
// by itself, so pods are restarted only for tokens that a user named.
func (i *Inputs) isToken(namespace string, id input.ID) bool {
	source, ok := i.options.View.Source(namespace, id)
	return ok && source.Token && !i.options.Original
}

// mayMatch reports whether a pattern can match the source. A source that refuses is
// followed only by its exact name, and so is a token.
func (i *Inputs) mayMatch(namespace string, id input.ID) bool {
	source, ok := i.options.View.Source(namespace, id)
	return !ok || !i.isToken(namespace, id) && settings.ForSource(source.Annotations).Mode != settings.Never
}

// isRunning reports whether a pod of the workload has started from its template. While
// older pods are left, the running ones may be older and the template's pods may still
// wait.
func isRunning(w *kube.Workload) bool {
	s := w.Status.Status
	if s.Counted {
		return !s.HasOlderPods() && s.Counts.Available > 0
	}
	return health.Of(s, 0).State == health.Done
}
