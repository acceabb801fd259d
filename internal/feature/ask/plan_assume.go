package ask

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// readRecord reads the workloads' entries.
func (p *planner) readRecord(ctx context.Context, keys []kube.Key) error {
	for _, key := range keys {
		e, found, err := p.Record.Entry(ctx, key)
		switch {
		case apierrors.IsForbidden(err):
			p.noRecord = true
			return nil
		case err != nil:
			return err
		case found:
			p.onRecord[key] = e
		}
	}
	return nil
}

// entry is a workload's entry. Where it can't be read or compared, the current versions
// count as delivered.
func (p *planner) entry(key kube.Key) (record.Entry, bool) {
	e, found := p.onRecord[key]
	w, exists := p.overlay.Before.Workload(key)
	switch {
	case p.noRecord && exists:
		return p.assumeAll(w), true
	case !found || !exists || e.UID != w.UID:
		return e, found
	}
	e = e.Clone()
	for id, given := range e.Inputs {
		if id.IsSource() && p.isAssumed(w.Key.Namespace, id) {
			given.Version = p.versionNow(w, id)
			e.Inputs[id] = given
		}
	}
	return e, true
}

// assumeAll is the entry of a workload to which all current versions were delivered.
func (p *planner) assumeAll(w *kube.Workload) record.Entry {
	e := record.Entry{ID: w.Key.ID(), UID: w.UID, Coverage: record.Coverage{RolledOutAt: w.RolledOutAt, Template: w.Template()}, Inputs: map[input.ID]record.Delivered{}}
	add := func(id input.ID) {
		e.Inputs[id] = record.Delivered{Version: p.versionNow(w, id), Shown: w.Shown[id]}
	}
	for _, ref := range w.Refs {
		add(ref.Source)
	}
	for _, pattern := range (settings.Native{}).Intent(w.Annotations, nil).Listed {
		if !pattern.IsGlob() {
			add(input.ID(pattern))
		}
		for id := range p.overlay.Before.SourcesMatching(w.Key.Namespace, pattern) {
			add(id)
		}
	}
	return e
}

// versionNow is the version of a source as the workload sees it now.
func (p *planner) versionNow(w *kube.Workload, id input.ID) fingerprint.Version {
	keys := fingerprint.AllKeys()
	for _, ref := range w.Refs {
		if ref.Source == id {
			keys = ref.Keys
		}
	}
	source, exists := p.overlay.Before.Source(w.Key.Namespace, id)
	if !exists {
		return p.overlay.Before.Absent(id.Kind, keys)
	}
	return source.Content.Version(keys)
}

// isAssumed reports whether a source's digests aren't meaningful to users: the source
// can't be read, or the key of the digests can't.
func (p *planner) isAssumed(namespace string, id input.ID) bool {
	return id.Kind == input.KindSecret && !p.KeyKnown || p.overlay.Before.IsGhost(namespace, id)
}

// assumedOf are a workload's inputs that are due or delivered, and about which something
// was assumed.
func (p *planner) assumedOf(g rollouts.Gathered) []input.ID {
	var all []input.ID
	for _, f := range g.Observation.Findings {
		if f.Reason != input.InStep && p.isAssumed(g.Workload.Key.Namespace, f.ID) {
			all = append(all, f.ID)
		}
	}
	return all
}
