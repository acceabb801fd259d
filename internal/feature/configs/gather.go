package configs

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// View is the part of the cluster that configs reads.
type View interface {
	Source(namespace string, id input.ID) (*kube.Source, bool)
	SourcesMatching(namespace string, p settings.Pattern) iter.Seq[input.ID]
	Namespace(name string) (*kube.Namespace, bool)
	// Knows reports whether the sources of a kind have been listed at all. Until then, a
	// source that isn't found may still exist.
	Knows(kind input.Kind, namespace string) bool
	// Absent is the version of a source that does not exist.
	Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version
}

// Options of the inputs.
type Options struct {
	View View
	// Since is since when the workload's kind and this kind of its sources are followed,
	// by the API server's clock; false when they weren't before.
	Since func(w *kube.Workload, kind input.Kind) (since time.Time, begun bool)
	// Shared, if set, reports whether the sources of that name are one change in all
	// namespaces.
	Shared func(input.ID) bool
	// Original is true for a drop-in, which follows the same sources as its original.
	Original bool
}

// Inputs are the ConfigMaps and Secrets of workloads.
type Inputs struct {
	options Options
	// matching bounds the patterns that are compared with names at the same time. Crafted ones
	// take a millisecond each, and without the bound they would take every processor for as
	// long as a tenant likes.
	matching chan struct{}
	gaps     gaps
}

// New makes the inputs.
func New(o Options) *Inputs {
	return &Inputs{options: o, matching: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// Kinds are the kinds of inputs that this family knows.
func (i *Inputs) Kinds() []input.Kind {
	return []input.Kind{input.KindConfigMap, input.KindSecret}
}

// Assess reports, for each source that the workload follows, whether its current version
// was delivered.
func (i *Inputs) Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, entry record.Entry, past kube.AskPast) (input.Assessment, error) {
	refs := i.followed(w, intent, entry)
	if excess := cmp.Or(tooManyNamed(w, intent, refs), input.Excess(sourcesOf(refs))); excess != "" {
		return input.Assessment{TooMany: excess}, nil
	}
	all := input.Assessment{Findings: make([]input.Finding, 0, len(refs)), Searched: i.searched(w.Key.Namespace, intent)}
	for _, ref := range refs {
		if !i.options.View.Knows(ref.Source.Kind, w.Key.Namespace) {
			all.Findings = append(all.Findings, i.unread(w, ref, entry))
			continue
		}
		source, _ := i.options.View.Source(w.Key.Namespace, ref.Source)
		o := i.observe(w, ref, source, entry)
		o.Timeline.Record.Searched = ref.Listed && wasSearched(ref.Source, intent, entry)
		v := Decide(o)
		if o.needsRevisions(v) {
			var err error
			if o.Timeline.Past, err = past(ctx, timeline.FromRevisions); err != nil {
				return input.Assessment{}, err
			}
			v = Decide(o)
		}
		if o.needsPods(v) {
			var err error
			if o.Timeline.Past, err = past(ctx, timeline.FromPods); err != nil {
				return input.Assessment{}, err
			}
			v = Decide(o)
		}
		// A release accepts what the pods of a revert run, so a gap before that doesn't count any more.
		reverted := entry.Inputs[ref.Source].RevertedTo != "" && !o.Timeline.Record.Unaccounted
		if o.Timeline.IsInGap() && (reverted || o.Timeline.Loaded() == timeline.Yes) {
			i.gaps.check(w.Key, ref.Source, source.Missed)
		}
		f := finding(ref, o, v, source, intent.Quiet)
		f.Change = i.change(source)
		all.Findings = append(all.Findings, f)
		all.Warnings = append(all.Warnings, warnings(ref, source)...)
	}
	return all, nil
}

// tooManyNamed describes that the template names more sources than Lockstep keeps, empty when it
// doesn't, or when the workload follows only sources that it lists.
func tooManyNamed(w *kube.Workload, intent settings.Intent, refs []podrefs.Ref) string {
	excess := input.Excess(sourcesOf(w.Refs))
	byReference := func(r podrefs.Ref) bool { return !intent.Follows(r.Source, false, settings.Source{}) }
	if excess == "" || intent.Mode == settings.Follow && intent.Auto || slices.ContainsFunc(refs, byReference) {
		return excess
	}
	return ""
}

// unread is the finding on a source whose content isn't known. Its delivered version stays on record. If
// another writer's rollout was the first to use it, what that rollout has loaded will not be known later either.
func (i *Inputs) unread(w *kube.Workload, ref podrefs.Ref, entry record.Entry) input.Finding {
	o := i.observe(w, ref, nil, entry)
	f := input.Finding{ID: ref.Source, Reason: input.Unreadable, Versions: input.Versions{Delivered: o.Delivered}, Live: true}
	if t := o.Timeline; o.Delivered.IsZero() && t.Record.Known && t.Begun && t.RolledOutUnaccounted() {
		f.Standing, f.Current = input.Record, o.Current.Unknown()
	}
	return f
}

// observe gathers everything that the verdict on one source depends on.
func (i *Inputs) observe(w *kube.Workload, ref podrefs.Ref, source *kube.Source, entry record.Entry) Observation {
	onRecord := entry.Inputs[ref.Source].Version
	o := Observation{
		Delivered: onRecord,
		Required:  !ref.Optional, Mixed: ref.Mixed,
		Original: i.options.Original,
		Running:  !i.options.Original && isRunning(w), Unobserved: !i.options.Original && !w.Status.Observed,
		Sealed: entry.Inputs[ref.Source].Sealed, Between: entry.Inputs[ref.Source].Between,
		Unrolled: w.IsUnrolled() && !w.IsPausedUnseen(),
		Current:  i.options.View.Absent(ref.Source.Kind, ref.Keys),
	}
	o.Timeline = i.timeline(w, ref.Source, entry)
	if source != nil {
		o.Current = source.Content.Version(ref.Keys)
		o.Delivered = onRecord.ComparedWith(o.Current)
		o.Timeline.Input = timeline.Input{
			Created: source.Created, WrittenAt: source.ContentWrittenAt,
			Content: source.ContentWritten, Missed: i.gaps.left(w.Key, ref.Source, source.Missed), Asked: source.AskWritten, New: source.New, Shows: shows(source), Version: o.Current.Short(),
			Mounted: ref.Volume, Sealed: source.Immutable,
		}
		if o.isOlderThanRecord() {
			o.Timeline.Input.WrittenAt = time.Time{}
		}
	}
	if !onRecord.IsZero() && !i.options.Original && !onRecord.SameKeys(o.Current) {
		// The record may list a template from a pause, whose rollout it hasn't seen.
		o.Timeline.Record.Unaccounted = true
	}
	o.Timeline.Record.Waits = o.waitedFor()
	return o
}

// timeline is what is known about the workload and the record.
func (i *Inputs) timeline(w *kube.Workload, id input.ID, entry record.Entry) timeline.Timeline {
	t := timeline.Timeline{
		ID: id,
		Workload: timeline.Workload{
			Created: w.Created, Template: w.TemplateWritten, TemplateAt: w.TemplateAt, Unrevised: !w.HasRevision() || entry.Inherited == w.StartsFrom(), Asked: w.SettingsWritten, AskedAt: w.AskedAt,
			Listed: w.Listed, RolledOutAt: w.RolledOutAt, Rewritten: w.TemplateAt.After(w.RolledOutAt), Shows: w.Shown[id], Unrolled: w.IsUnrolled(),
			OlderPods: w.OlderPods && !i.options.Original && !w.Status.Aborted,
		},
		Record: timeline.Record{
			Known: entry.IsKnown(), Version: entry.Version, KnowsTemplate: entry.HasTemplate(), Shown: entry.Inputs[id].Shown,
			RolledOutAt: entry.RolledOutAt, AsOf: entry.AsOf, Accounted: entry.Accounted, Delivering: input.ParseShown(entry.Eviction.For)[id],
			From: entry.Inputs[id].From, Was: entry.Inputs[id].Was, TakenOver: entry.TakenOver,
		},
	}
	// A later number shows that the template, or another one, was rolled out before the pause.
	t.Record.Unaccounted = entry.Template.IsReplacedBy(w.Template()) && (!w.Status.Paused || w.IsPausedUnseen() && w.Revision > entry.Template.Number)
	_, onRecord := entry.Inputs[id]
	t.Record.Unaccounted = t.Record.Unaccounted || onRecord && mayHaveComeBack(w, entry)
	t.Following, t.Begun = i.options.Since(w, id.Kind)
	ns, known := i.options.View.Namespace(w.Key.Namespace)
	if known {
		t.Workload.Asked = t.Workload.Asked.Later(ns.SettingsWritten)
	}
	if _, own := w.Annotations[settings.Reload]; !own {
		t.Workload.AskedAt = time.Time{}
		if known {
			t.Workload.AskedAt = ns.AskedAt
		}
	}
	return t
}

// mayHaveComeBack reports whether the template on record may have been another one for a while that no watch saw, and
// whose pods loaded another version. Pods that were taken over are of the workload before.
func mayHaveComeBack(w *kube.Workload, entry record.Entry) bool {
	isUnseen := w.TemplateWritten.Min == 0 && !w.Status.Paused && !entry.TakenOver
	isNews := w.TemplateAt.IsZero() || w.TemplateAt.After(entry.AsOf) && w.TemplateAt.After(entry.RolledOutAt)
	return isUnseen && isNews && entry.Template.MayBeReplacedBy(w.Template())
}

// shows is the mark in a template to which the current version was delivered.
func shows(s *kube.Source) input.Mark {
	return input.Tracked(s.Content.Version(fingerprint.AllKeys()).Short())
}

func finding(ref podrefs.Ref, o Observation, v Verdict, source *kube.Source, quiet time.Duration) input.Finding {
	f := input.Finding{
		ID: ref.Source, Standing: v.Standing, Reason: v.Reason,
		Versions: input.Versions{Delivered: o.lastDelivered(), Current: o.Current, Skipped: o.isGone() && (ref.Optional || ref.Mixed), Shows: o.Timeline.Input.Shows},
		Live:     true, Refresh: refreshed(ref),
	}
	if o.ranWithout() {
		f.Current = o.Current.Unknown()
	}
	switch {
	case o.Current.IsAbsent() && o.Required && !o.Original:
		f.Bars = append(f.Bars, input.Bar{Reason: input.Missing})
	case v.Reason == input.ImmutableReplaced:
		f.Bars = append(f.Bars, input.Bar{Reason: v.Reason})
	}
	if source != nil {
		f.ChangedAt, f.ResourceVersion, f.Sealed = changedAt(source, quiet), source.ResourceVersion, source.Immutable
		own := settings.ForSource(source.Annotations)
		if own.Held {
			f.Bars = append(f.Bars, input.Bar{Reason: input.Held, By: own.HeldBy})
		}
		f.Pace = input.Pace{AtOnce: own.NoRamp, Resumed: own.Resume}
	}
	return f
}

// change is the whole content of a source, whichever keys a workload uses; zero for one that
// doesn't exist. The digest of a Secret depends on its namespace. That of a shared Secret
// doesn't, so it is never shown.
func (i *Inputs) change(source *kube.Source) input.Change {
	if source == nil {
		return input.Change{}
	}
	return ChangeOf(source, i.options.Shared != nil && i.options.Shared(source.ID))
}

// ChangeOf is the whole content of a source, as all workloads that use it see it.
func ChangeOf(source *kube.Source, shared bool) input.Change {
	if shared {
		return input.Change{ID: source.ID, Version: source.Content.SharedDigest()}
	}
	return input.Change{Namespace: source.Namespace, ID: source.ID, Version: source.Content.Version(fingerprint.AllKeys()).Short()}
}

// refreshed is how much of a source the kubelets refresh in running pods: mounted files,
// unless mounted by sub-path. A container's environment is set at its start.
func refreshed(ref podrefs.Ref) input.Extent {
	switch {
	case !ref.Volume:
		return input.Nothing
	case ref.Env || ref.SubPath:
		return input.Some
	}
	return input.Everything
}

// warnings are probable mistakes: an annotation names a source that doesn't exist, or a
// setting on the source has no effect. Of a source with too many keys, Lockstep doesn't see
// which ones changed.
func warnings(ref podrefs.Ref, source *kube.Source) []input.Warning {
	if source == nil {
		if !ref.Listed {
			return nil
		}
		return []input.Warning{{Reason: input.SourceUnknown, Text: "the annotation names " + ref.Source.String() + ", which does not exist"}}
	}
	var all []input.Warning
	if source.Content.IsWhole() && !source.Content.Version(ref.Keys).IsContentOf(ref.Keys) {
		all = append(all, input.Warning{Reason: input.TooManyKeys, Text: fmt.Sprintf(
			"a change to any key of %s rolls out the workload, which uses only some of them, because its keys take more than %d KiB; split it", ref.Source, fingerprint.MaxKeys>>10)})
	}
	for _, wrong := range settings.SourceProblems(source.Annotations) {
		all = append(all, input.Warning{Reason: input.InvalidAnnotation, Text: source.ID.String() + ": " + wrong.String() + "; it has no effect"})
	}
	return all
}

// changedAt is when the content last changed, as far as known. For a change that no watch
// saw, only the API server's times are known; they may only shorten the quiet window.
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
// references and those that its annotation names. If the template references more than Lockstep
// keeps, a list in the annotation replaces the references.
func (i *Inputs) followed(w *kube.Workload, intent settings.Intent, entry record.Entry) []podrefs.Ref {
	var refs []podrefs.Ref
	referenced := map[input.ID]bool{}
	byReference := intent.Auto || len(intent.Listed) == 0 || input.Excess(sourcesOf(w.Refs)) == ""
	for _, ref := range w.Refs {
		if i.isToken(w.Key.Namespace, ref.Source) {
			continue
		}
		referenced[ref.Source] = true
		if intent.Follows(ref.Source, byReference, i.ownSettings(w.Key.Namespace, ref.Source, entry)) {
			if intent.Whole {
				ref.Keys = fingerprint.AllKeys()
			}
			refs = append(refs, ref)
		}
	}
	for _, source := range i.listed(w.Key.Namespace, intent, entry) {
		if !referenced[source] {
			refs = append(refs, podrefs.Ref{Source: source, Keys: fingerprint.AllKeys(), Optional: true, Listed: true})
		}
	}
	return refs
}

// listed resolves the patterns of the annotation. A source that was delivered by a
// pattern stays listed when it is gone, so its return is noticed.
func (i *Inputs) listed(namespace string, intent settings.Intent, entry record.Entry) []input.ID {
	found := map[input.ID]bool{}
	for _, p := range intent.Listed {
		switch {
		case p.IsGlob():
			i.find(found, namespace, p, intent, entry)
		case intent.Follows(input.ID(p), false, settings.Source{}):
			found[input.ID(p)] = true
		}
	}
	return sorting.Keys(found, func(a, b input.ID) int { return strings.Compare(a.String(), b.String()) })
}

// find adds the sources that match a pattern and let it, except those that the workload leaves
// out.
func (i *Inputs) find(found map[input.ID]bool, namespace string, p settings.Pattern, intent settings.Intent, entry record.Entry) {
	i.matching <- struct{}{}
	defer func() { <-i.matching }()
	isNew := func(s input.ID) bool {
		return !found[s] && i.mayMatch(namespace, s) && intent.Follows(s, false, settings.Source{})
	}
	for s := range i.options.View.SourcesMatching(namespace, p) {
		if isNew(s) {
			found[s] = true
		}
		if len(found) > input.MaxInputs {
			return // The rest doesn't matter: these are too many.
		}
	}
	for s := range entry.Inputs {
		if p.Matches(s) && isNew(s) {
			found[s] = true
		}
	}
}

func sourcesOf(refs []podrefs.Ref) []input.ID {
	ids := make([]input.ID, 0, len(refs))
	for _, ref := range refs {
		ids = append(ids, ref.Source)
	}
	return ids
}

// ownSettings are the source's settings. A source that is gone or can't be read keeps its
// settings: a workload to which it was delivered needs to notice its return.
func (i *Inputs) ownSettings(namespace string, id input.ID, entry record.Entry) settings.Source {
	source, ok := i.options.View.Source(namespace, id)
	if ok {
		return settings.ForSource(source.Annotations)
	}
	if _, followed := entry.Inputs[id]; followed {
		return settings.Source{Mode: settings.Follow}
	}
	return settings.Source{}
}

// Drop forgets what was checked.
func (i *Inputs) Drop(key kube.Key) { i.gaps.drop(key) }
