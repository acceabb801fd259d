package configs

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// View is what configs reads of the cluster.
type View interface {
	Source(namespace string, id input.ID) (*kube.Source, bool)
	SourcesMatching(namespace string, match func(input.ID) bool) []input.ID
	Namespace(name string) (*kube.Namespace, bool)
	// Knows reports whether the sources of a kind have been listed at all. Without
	// that, a source that is not found may well exist.
	Knows(kind input.Kind, namespace string) bool
	// Absent is the version of a source that does not exist.
	Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version
}

// Options of the inputs.
type Options struct {
	View View
	// Revisions asks the API server for a workload's revisions.
	Revisions func(context.Context, *kube.Workload) ([]lineage.Revision, error)
	// Since is from when on the workload's kind and this kind of its sources are
	// followed, by the API server's clock; false when they were not before.
	Since func(w *kube.Workload, kind input.Kind) (since time.Time, begun bool)
}

// Inputs are the ConfigMaps and Secrets of workloads.
type Inputs struct {
	options Options

	mu sync.Mutex
	// looked holds revisions that were asked for while their workload waits, so
	// that a quiet window does not ask again at each turn.
	looked map[kube.Key]look
}

// look is what the API server said of one workload's revisions.
type look struct {
	uid       string
	revisions []lineage.Revision
}

// New makes the inputs.
func New(o Options) *Inputs {
	return &Inputs{options: o, looked: map[kube.Key]look{}}
}

// Assess tells, for each source that the workload follows, whether it was given
// what exists.
func (i *Inputs) Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, given record.Entry) ([]input.Finding, error) {
	refs := i.followed(w, intent, given)
	findings := make([]input.Finding, 0, len(refs))
	asked := false
	for _, ref := range refs {
		if !i.options.View.Knows(ref.Source.Kind, w.Key.Namespace) {
			findings = append(findings, input.Finding{ID: ref.Source, Reason: input.Unreadable, Given: given.Inputs[ref.Source].Version})
			continue
		}
		source, exists := i.options.View.Source(w.Key.Namespace, ref.Source)
		o := i.observe(w, ref, source, given)
		v := Decide(o)
		if exists && !source.ContentWritten.Exact() && i.needsHistory(v, w, ref.Source.Kind, given) {
			revisions, err := i.history(ctx, w)
			if err != nil {
				return nil, err
			}
			asked = true
			o.Away = i.away(w, source, revisions, given)
			v = Decide(o)
		}
		findings = append(findings, i.finding(ref, o, v, source, intent.Quiet))
	}
	if !asked {
		i.Drop(w.Key)
	}
	return findings, nil
}

// needsHistory: only what looks due, and a workload that was made while nobody
// watched, are worth a question to the API server.
func (i *Inputs) needsHistory(v Verdict, w *kube.Workload, kind input.Kind, given record.Entry) bool {
	return v.Standing == input.Due || v.Reason == input.Baseline && i.madeMeanwhile(w, kind, given)
}

// madeMeanwhile reports whether the workload was made while nobody watched. It is
// new to the record and not made before our eyes: it came with a list, so its
// beginning is unknown. It is younger than our following of its kind, and what asks
// for it was not written before our eyes either. One whose entry cannot be read had
// one.
func (i *Inputs) madeMeanwhile(w *kube.Workload, kind input.Kind, given record.Entry) bool {
	if given.Lost || len(given.Inputs) > 0 || w.TemplateWritten.Min > 0 || i.askedSince(w).Min > 0 {
		return false
	}
	since, begun := i.options.Since(w, kind)
	return begun && w.Created.After(since)
}

// askedAt is when the annotation that asks for the workload was last written, its
// own or its namespace's; zero when that cannot be told.
func (i *Inputs) askedAt(w *kube.Workload) time.Time {
	if _, own := w.Annotations[settings.Reload]; own {
		return w.AskedAt
	}
	if ns, ok := i.options.View.Namespace(w.Key.Namespace); ok {
		return ns.AskedAt
	}
	return time.Time{}
}

func (i *Inputs) observe(w *kube.Workload, ref podrefs.Ref, source *kube.Source, given record.Entry) Observation {
	known := given.Inputs[ref.Source]
	o := Observation{
		Given:           known.Version,
		Required:        !ref.Optional,
		Template:        w.TemplateWritten,
		Followed:        i.followedSince(w, ref.Source.Kind),
		RecordedVersion: known.Shown,
		ShownVersion:    w.Shown[ref.Source],
		Unwritten:       unwritten(w, ref.Source, given),
		Current:         i.options.View.Absent(ref.Source.Kind, ref.Keys),
	}
	if source != nil {
		o.Current = source.Content.Version(ref.Keys)
		o.Content, o.New = source.ContentWritten, source.New
		o.Followed = o.Followed.Later(source.AskWritten)
		o.CurrentShown = source.Content.Version(fingerprint.AllKeys()).Short()
	}
	return o
}

// followedSince bounds since when the workload is followed as it is now: not before
// its kind and that of its source are followed at all, which is when they were
// listed, and not before it or its namespace asked.
func (i *Inputs) followedSince(w *kube.Workload, kind input.Kind) timeline.Bounds {
	since := i.askedSince(w)
	if begun, ok := i.options.Since(w, kind); !ok || !w.Created.After(begun) {
		since = since.Later(w.Listed)
	}
	return since
}

// askedSince bounds when the workload or its namespace last changed what is asked
// for it.
func (i *Inputs) askedSince(w *kube.Workload) timeline.Bounds {
	since := w.SettingsWritten
	if ns, ok := i.options.View.Namespace(w.Key.Namespace); ok {
		since = since.Later(ns.SettingsWritten)
	}
	return since
}

func (i *Inputs) away(w *kube.Workload, source *kube.Source, revisions []lineage.Revision, given record.Entry) *Away {
	a := &Away{
		MadeMeanwhile: i.madeMeanwhile(w, source.ID.Kind, given),
		AskedAt:       i.askedAt(w),
		SourceCreated: source.Created,
		DataWrittenAt: source.DataWrittenAt,
	}
	for _, r := range revisions {
		if r.Created.After(a.RevisionCreated) {
			a.RevisionCreated = r.Created
		}
	}
	a.NewerRevisionShows = shownSince(w, source, revisions, given)
	return a
}

// shownSince reports whether the source's content was delivered after our record.
// What our last patch wrote is still in the template, unless somebody has written
// another one since; then the revisions tell. They tell nothing of a version that
// the template on record shows: somebody else's rollout may have kept that.
func shownSince(w *kube.Workload, source *kube.Source, revisions []lineage.Revision, given record.Entry) bool {
	current := source.Content.Version(fingerprint.AllKeys()).Short()
	if unwritten(w, source.ID, given) {
		return w.Shown[source.ID] == current
	}
	if given.Inputs[source.ID].Shown == current {
		return false
	}
	return slices.ContainsFunc(revisions, func(r lineage.Revision) bool {
		return r.Shown[source.ID] == current && (given.IsBefore(r.Created) || usedAgain(r, given) && w.Shown[source.ID] != current)
	})
}

// unwritten reports whether a patch of ours that is not on record wrote what the
// template shows of a source. Two patches may bear the same second; then another
// version than the one on record tells.
func unwritten(w *kube.Workload, id input.ID, given record.Entry) bool {
	if w.MovedAt.IsZero() || !w.MovedAt.Equal(given.MovedAt) {
		return w.MovedAt.After(given.MovedAt)
	}
	recorded := given.Inputs[id].Shown
	return recorded != "" && recorded != w.Shown[id]
}

// usedAgain reports whether a revision has become the current one after the one that
// is on record, which came after MovedFrom. Content that goes back to
// an earlier version finds that one's revision again, with a new number. (When the
// template still shows it, a person may have gone back to it, and the content
// after them: then the pods have not read it.)
func usedAgain(r lineage.Revision, given record.Entry) bool {
	return given.MovedFrom > 0 && r.Number > given.MovedFrom+1
}

func (i *Inputs) finding(ref podrefs.Ref, o Observation, v Verdict, source *kube.Source, quiet time.Duration) input.Finding {
	f := input.Finding{
		ID: ref.Source, Standing: v.Standing, Reason: v.Reason,
		Given: o.lastGiven(), Current: o.Current, Shows: o.CurrentShown,
		Env: ref.Env, SubPath: ref.SubPath, Volume: ref.Volume, Listed: ref.Listed,
	}
	if v.Reason == input.Undone {
		f.Barred = input.Undone
	}
	if source == nil {
		return f
	}
	f.ChangedAt, f.ResourceVersion, f.Legacy = changedAt(source, quiet), source.ResourceVersion, source.Legacy
	if wrong := settings.ScopeProblems(source.Annotations); len(wrong) > 0 {
		f.Warning = source.ID.String() + ": " + wrong[0].String()
	}
	if own := settings.ForSource(source.Annotations); own.Held {
		f.Barred, f.BarredBy = input.Held, own.HeldBy
	}
	return f
}

// changedAt is when the content last changed, as well as we know. Of a change
// that nobody watched only the API server's times tell; they are trusted no
// further than to shorten the quiet window.
func changedAt(s *kube.Source, quiet time.Duration) time.Time {
	if !s.ChangedAt.IsZero() {
		return s.ChangedAt
	}
	earliest := s.SeenAt.Add(-quiet)
	if s.DataWrittenAt.IsZero() || s.DataWrittenAt.After(s.SeenAt) {
		return s.SeenAt
	}
	if s.DataWrittenAt.Before(earliest) {
		return earliest
	}
	return s.DataWrittenAt
}

// followed lists the sources that the workload follows: those that its template
// references and those that its annotation names.
func (i *Inputs) followed(w *kube.Workload, intent settings.Intent, given record.Entry) []podrefs.Ref {
	var refs []podrefs.Ref
	referenced := map[input.ID]bool{}
	for _, ref := range w.Refs {
		referenced[ref.Source] = true
		if intent.Follows(ref.Source, true, i.ownSettings(w.Key.Namespace, ref.Source, given)) {
			if intent.Whole {
				ref.Keys = fingerprint.AllKeys()
			}
			refs = append(refs, ref)
		}
	}
	for _, source := range i.listed(w.Key.Namespace, intent, given) {
		if !referenced[source] {
			refs = append(refs, podrefs.Ref{Source: source, Keys: fingerprint.AllKeys(), Optional: true, Listed: true})
		}
	}
	return refs
}

// listed resolves the patterns of the annotation. A source that was delivered
// by a pattern stays listed when it is gone, so that its return is noticed.
func (i *Inputs) listed(namespace string, intent settings.Intent, given record.Entry) []input.ID {
	found := map[input.ID]bool{}
	for _, p := range intent.Listed {
		if !p.IsGlob() {
			found[input.ID(p)] = true
			continue
		}
		for _, s := range i.options.View.SourcesMatching(namespace, p.Matches) {
			found[s] = true
		}
		for s := range given.Inputs {
			if p.Matches(s) {
				found[s] = true
			}
		}
	}
	sources := make([]input.ID, 0, len(found))
	for s := range found {
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b input.ID) int { return strings.Compare(a.String(), b.String()) })
	return sources
}

// ownSettings are what the source asks for. One that is gone, or cannot be seen, asks
// for what it did: who was given it wants to know of its return.
func (i *Inputs) ownSettings(namespace string, id input.ID, given record.Entry) settings.Source {
	source, ok := i.options.View.Source(namespace, id)
	if ok {
		return settings.ForSource(source.Annotations)
	}
	if _, followed := given.Inputs[id]; followed {
		return settings.Source{Mode: settings.Follow}
	}
	return settings.Source{}
}

// history returns the workload's revisions, asking once while it waits.
func (i *Inputs) history(ctx context.Context, w *kube.Workload) ([]lineage.Revision, error) {
	i.mu.Lock()
	known, ok := i.looked[w.Key]
	i.mu.Unlock()
	if ok && known.uid == w.UID {
		return known.revisions, nil
	}
	revisions, err := i.options.Revisions(ctx, w)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looked[w.Key] = look{w.UID, revisions}
	return revisions, nil
}

// Drop forgets what was asked about a workload that is gone or waits no more.
func (i *Inputs) Drop(key kube.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.looked, key)
}
