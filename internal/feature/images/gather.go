package images

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// refusedCheck is when a workload is looked at again whose registry isn't queried.
const refusedCheck = time.Minute

// Options of the inputs.
type Options struct {
	// Watch queries a registry regularly, and calls wake when the answer has changed.
	Watch       func(q imagewatch.Question, wake func()) Watch
	Credentials Credentials
	// Platforms are those for which the workload's images are needed; an empty list
	// requires no platform. It is false while that isn't known.
	Platforms func(*kube.Workload) ([]v1.Platform, bool)
	// Exceeded, if set, is called when a namespace reaches a bound.
	Exceeded func(registry.Bound)
	// Shared, if set, reports whether the images of that repository are one change in all
	// namespaces.
	Shared func(input.ID) bool
	// Enforced is true where nothing is recorded: the rule is Enforce.
	Enforced bool
	Now      func() time.Time
}

// Credentials are those with which the workload's pods pull, and a name that identifies
// them.
type Credentials func(*kube.Workload) (source keychain.Source, name string)

// Watch is a registry query that is repeated regularly.
type Watch interface {
	View() imagewatch.View
	Stop()
}

// Inputs are the images of workloads.
type Inputs struct {
	options Options

	mu      sync.Mutex
	wake    func(kube.Key)
	watched map[kube.Key]map[string]*watched
	queries map[string]*queries // by namespace
}

// New makes the inputs.
func New(o Options) *Inputs {
	if o.Exceeded == nil {
		o.Exceeded = func(registry.Bound) {}
	}
	return &Inputs{options: o, wake: func(kube.Key) {}, watched: map[kube.Key]map[string]*watched{}, queries: map[string]*queries{}}
}

// Kinds are the kinds of inputs that this family knows.
func (i *Inputs) Kinds() []input.Kind { return []input.Kind{input.KindImage} }

// Assess reports, for each container that an annotation names, whether the pod template
// contains the requested digest.
func (i *Inputs) Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, entry record.Entry, past kube.AskPast) (input.Assessment, error) {
	var all input.Assessment
	i.keep(w.Key, intent.Images)
	if w.Problem != "" {
		return all, nil
	}
	for _, request := range intent.Images {
		if _, ok := w.ImageOf(request.Container); !ok {
			all.Warnings = append(all.Warnings, unknownContainer(w, request))
			continue
		}
		o := Observe(w, request, intent, entry, i.options.Now())
		answer := i.ask(w, request, o.Template.Has)
		o.Found = Pin{Tag: answer.Tag, Digest: answer.Digest}
		o.Template.Shown = w.Shown[input.Image(request.Container)] == markOf(o.Found) && o.Found != (Pin{})
		if answer.first && o.mayBeDeliveredBefore() {
			before, err := past(ctx, timeline.FromRevisions)
			if err != nil {
				return input.Assessment{}, err
			}
			o.DeliveredBefore = wasDelivered(w, o, entry, before)
		}
		v := i.decide(&o)
		f := finding(w, o, v, answer)
		f.Change = i.change(w, o, v)
		all.Findings = append(all.Findings, f)
		all.Warnings = append(all.Warnings, warnings(o, v, answer)...)
		if o.Trial.On && !v.Proven {
			all.AwaitsStatus, all.Recheck = true, w.Status.Left(w.Stalled(o.Now))
		}
		if answer.refused && all.Recheck == 0 {
			all.Recheck = refusedCheck
		}
	}
	return all, nil
}

// decide applies the rule. Enforce has no record: the template's digest is the delivered
// one.
func (i *Inputs) decide(o *Observation) Verdict {
	if !i.options.Enforced {
		return Decide(*o)
	}
	o.Delivered = versionOf(Pin{Digest: o.Template.Has.Digest})
	return Enforce(*o)
}

// referenceIn parses a container's image. One that can't be parsed isn't the requested
// one.
func referenceIn(at kube.ContainerImage) tagspec.Reference {
	reference, err := tagspec.ParseReference(at.Image)
	if err != nil {
		return tagspec.Reference{}
	}
	return reference
}

// Observe gathers everything that the verdict depends on, except the registry's answer.
func Observe(w *kube.Workload, request settings.ImageRequest, intent settings.Intent, entry record.Entry, now time.Time) Observation {
	before := entry.Inputs[input.Image(request.Container)]
	at, _ := w.ImageOf(request.Container)
	has := referenceIn(at)
	return Observation{
		Request: request,
		Template: Template{
			Image: at.Image, Has: has,
			Ours: has.Digest != "" && w.Shown[input.Image(request.Container)] == markOf(Pin{Digest: has.Digest}),
		},
		Delivered: before.Version, Memo: ParseMemo(before.Memo),
		Released: intent.Release > entry.Released, Reverted: before.RevertedTo != "", Observed: intent.Observe, Enforced: intent.Enforce,
		Trial: Trial{
			On: before.Trial != "" && before.Trial == w.Template().Sum, Mixed: before.Mixed,
			Health:  health.Of(w.Status.Status, w.Stalled(now)).State,
			HasPods: !w.Status.Counted || w.Status.Counts.Available > 0,
		},
		Now: now,
	}
}

// mayBeDeliveredBefore reports whether revisions can show a digest that isn't on record.
func (o Observation) mayBeDeliveredBefore() bool {
	return !o.isNew() && o.Found != (Pin{}) && o.Delivered != versionOf(o.Found)
}

// wasDelivered reports whether a digest was delivered before the controller stopped and
// undone before it restarted. That is checked once, for this process's first answer.
func wasDelivered(w *kube.Workload, o Observation, entry record.Entry, past timeline.Past) bool {
	id := input.Image(o.Request.Container)
	return timeline.Timeline{
		ID:       id,
		Workload: timeline.Workload{RolledOutAt: w.RolledOutAt, Shows: w.Shown[id]},
		Record:   timeline.Record{Known: true, Shown: entry.Inputs[id].Shown, RolledOutAt: entry.RolledOutAt, AsOf: entry.AsOf, Accounted: entry.Accounted},
		Input:    timeline.Input{Shows: markOf(o.Found)}, Past: past,
	}.DeliveredUnrecorded()
}

func finding(w *kube.Workload, o Observation, v Verdict, a answer) input.Finding {
	f := input.Finding{
		ID: input.Image(o.Request.Container), Standing: v.Standing, Reason: v.Reason,
		Versions:  input.Versions{Delivered: o.Delivered, Current: versionOf(v.To), Shows: markOf(v.To)},
		ChangedAt: a.since,
		Pace:      input.Pace{Source: input.Image(o.Request.Image.Repository.String() + ":" + o.Request.Image.Spec.String())},
		Notes:     input.Notes{Memo: v.Memo.String(), MemoIfDelivered: v.MemoIfDelivered.String(), Proven: v.Proven},
	}
	if v.To != (Pin{}) && v.To.Digest != o.Template.Has.Digest || v.Standing == input.Due {
		f.Image = pinnedImage(o.Request.Image.Repository, v.To)
	}
	if v.Reason == input.Unresolved {
		f.Current, f.Shows = o.Delivered, w.Shown[f.ID]
	}
	if v.Reason == input.PutBack {
		f.ChangedAt = time.Time{}
		f.Why = fmt.Sprintf("the rollout of %s failed (%s), and the image is quarantined: Lockstep tries the next digest, and \"lockstep release\" allows this one again", short(o.Template.Has), health.Of(w.Status.Status, w.Stalled(o.Now)).Message)
	}
	if v.Reason == input.Enforced {
		f.Why = fmt.Sprintf("another writer had chosen %s, and annotation %s replaces it", short(o.Template.Has), settings.Enforce)
	}
	if v.Bar != "" {
		f.Bars = []input.Bar{{Reason: v.Bar, By: barredBy(w, o, v)}}
	}
	return f
}

// change is the digest in its repository, whichever containers run it; zero without a digest.
// When a healthy one is restored, it is the one that failed. Without an answer of the registry, it
// is the one in the template.
func (i *Inputs) change(w *kube.Workload, o Observation, v Verdict) input.Change {
	pin := v.To
	if v.Reason == input.PutBack || pin == (Pin{}) {
		pin = Pin{Digest: o.Template.Has.Digest}
	}
	if pin == (Pin{}) {
		return input.Change{}
	}
	c := input.Change{Namespace: w.Key.Namespace, ID: input.Image(o.Request.Image.Repository.String()), Version: versionOf(pin).Short()}
	if i.options.Shared != nil && i.options.Shared(c.ID) {
		c.Namespace = ""
	}
	return c
}

// pinnedImage is an image reference with tag and digest. A digest whose tag isn't known
// stands alone.
func pinnedImage(repository tagspec.Repository, p Pin) string {
	if p.Tag == "" {
		return repository.Written + "@" + p.Digest
	}
	return repository.Written + ":" + p.Tag + "@" + p.Digest
}

// short is an image in readable form.
func short(r tagspec.Reference) string {
	version := versionOf(Pin{Digest: r.Digest})
	if r.Digest == "" {
		return r.Repository.Written + ":" + r.Tag
	}
	return strings.TrimSuffix(r.Repository.Written+":"+r.Tag, ":") + "@" + version.Short()
}
