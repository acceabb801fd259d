package histories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// person does what people and tools do, through a client: that of the small server or of a
// real one.
type person struct {
	client    client.Client
	namespace string
	// kind is that of the workload, and canary is true when that is a Rollout.
	kind   kube.Kind
	canary bool
	// lent is true for a Rollout that uses the template of a Deployment.
	lent bool
	// contents are those that each source has had.
	contents map[string][]string
	// last is the workload as it was deleted; nil after one that took everything along.
	last  *appsv1.Deployment
	turns int
	// digests are those of contents, nil where they can change.
	digests map[string]string
}

func newPerson(c client.Client, namespace string, kind kube.Kind) *person {
	return &person{client: c, namespace: namespace, kind: kind, canary: kind.Kind == kube.Rollout().Kind, contents: map[string][]string{}}
}

// begin makes the sources and the workload.
func (p *person) begin(ctx context.Context) error {
	for _, source := range []string{histories.ConfigMap, histories.Secret} {
		if err := p.setContent(ctx, source, p.fresh(source)); err != nil {
			return err
		}
	}
	d, err := p.manifest(ctx)
	if err != nil {
		return err
	}
	return p.create(ctx, d)
}

// manifest is the workload as its owner wrote it. An API server fills in what the template
// of a Deployment or ReplicaSet leaves out. In a Rollout it does not, so that the template
// would not be the one of its own revision.
func (p *person) manifest(ctx context.Context) (*appsv1.Deployment, error) {
	d := testkit.Deployment(testkit.Web, "app", "db")
	delete(d.Annotations, settings.Quiet)
	limit := int32(1000) // a history is longer than the default
	d.Spec.RevisionHistoryLimit = &limit
	if !p.canary {
		return d, nil
	}
	d.Namespace = p.namespace
	filled := d.DeepCopy()
	err := p.client.Create(ctx, filled, client.DryRunAll)
	d.Spec.Template = filled.Spec.Template
	return d, err
}

// fresh is a content that a source never had.
func (p *person) fresh(source string) string {
	p.turns++
	content := fmt.Sprintf("%s %d", source, p.turns)
	return content
}

// do carries an action out; what is none of a person's is left alone.
func (p *person) do(ctx context.Context, a histories.Action) error {
	switch a.Verb {
	case histories.Change:
		return p.setContent(ctx, a.Source, p.fresh(a.Source))
	case histories.ChangeBack:
		return p.setContent(ctx, a.Source, p.before(a.Source))
	case histories.Restore:
		return p.write(ctx, a.Source, p.contents[a.Source][len(p.contents[a.Source])-1])
	case histories.Remove:
		return client.IgnoreNotFound(p.client.Delete(ctx, p.source(a.Source, "")))
	case histories.HoldSource, histories.FreeSource:
		return p.holdSource(ctx, a.Source, a.Verb == histories.HoldSource)
	case histories.Orphan, histories.Delete:
		return p.remove(ctx, a.Verb == histories.Orphan)
	case histories.Make:
		return p.makeAgain(ctx)
	case histories.Undo:
		return p.undo(ctx, a.Revision)
	case histories.Abort, histories.Retry, histories.Promote:
		return p.decide(ctx, a.Verb)
	default: // the rest changes the workload, or is none of a person's
	}
	change := p.changeOf(a.Verb)
	if change == nil {
		return nil
	}
	return p.change(ctx, change)
}

// changeOf is how an action changes the workload, nil when it does not.
func (p *person) changeOf(verb histories.Verb) func(*appsv1.Deployment) {
	mark := func(key string, on bool) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			if on {
				d.Annotations[key] = "history"
			} else {
				delete(d.Annotations, key)
			}
		}
	}
	switch verb {
	case histories.Rollout:
		p.turns++
		return func(d *appsv1.Deployment) { setOn(&d.Spec.Template, "edited", strconv.Itoa(p.turns)) }
	case histories.Strip:
		return func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, settings.Inputs) }
	case histories.Pause, histories.Resume:
		return func(d *appsv1.Deployment) { d.Spec.Paused = verb == histories.Pause }
	case histories.Hold, histories.Free:
		return mark(settings.Hold, verb == histories.Hold)
	case histories.Release:
		return func(d *appsv1.Deployment) { d.Annotations[settings.Release] = d.ResourceVersion }
	case histories.Leave:
		return func(d *appsv1.Deployment) { delete(d.Annotations, settings.Reload) }
	case histories.Refuse, histories.Ask:
		wish := map[histories.Verb]string{histories.Refuse: "never", histories.Ask: "auto"}[verb]
		return func(d *appsv1.Deployment) { d.Annotations[settings.Reload] = wish }
	case histories.Scale:
		p.turns++
		return func(d *appsv1.Deployment) { *d.Spec.Replicas = int32(p.turns % 2) }
	default: // those that change the workload
	}
	return nil
}

func setOn(t *corev1.PodTemplateSpec, key, value string) {
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[key] = value
}

// change changes the workload, if there is one.
func (p *person) change(ctx context.Context, change func(*appsv1.Deployment)) error {
	for {
		d, err := p.get(ctx)
		if d == nil {
			return err
		}
		before := d.DeepCopy()
		change(d)
		if same(before, d) {
			return nil
		}
		err = p.update(ctx, before, d)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// update writes the changed workload. That of a Rollout with workloadRef is two objects.
func (p *person) update(ctx context.Context, before, d *appsv1.Deployment) error {
	if !p.lent && *before.Spec.Replicas != *d.Spec.Replicas {
		return p.client.Update(ctx, p.written(d), client.FieldOwner("scale")) // as if by that subresource
	}
	if !p.lent {
		return p.client.Update(ctx, p.written(d))
	}
	if templateText(before) != templateText(d) {
		lender := &appsv1.Deployment{}
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(d), lender); err != nil {
			return err
		}
		lender.Spec.Template = d.Spec.Template
		if err := p.client.Update(ctx, lender); err != nil {
			return err
		}
	}
	if maps.Equal(before.Annotations, d.Annotations) && before.Spec.Paused == d.Spec.Paused && *before.Spec.Replicas == *d.Spec.Replicas {
		return nil
	}
	rollout, _ := p.splits(d)
	return p.client.Update(ctx, rollout)
}

func same(a, b *appsv1.Deployment) bool {
	return templateText(a) == templateText(b) && maps.Equal(a.Annotations, b.Annotations) && a.Spec.Paused == b.Spec.Paused && *a.Spec.Replicas == *b.Spec.Replicas
}

func templateText(d *appsv1.Deployment) string {
	t := &d.Spec.Template
	if t.Labels[hashLabel] != "" || t.Labels[canaryHashLabel] != "" {
		t = plain(*t)
	}
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// source is a ConfigMap or Secret with a content.
func (p *person) source(name, content string) client.Object {
	kind, name, _ := strings.Cut(name, "/")
	meta := metav1.ObjectMeta{Namespace: p.namespace, Name: name}
	if kind == "secret" {
		return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(content)}}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": content}}
}

// before is the content before the current one.
func (p *person) before(source string) string {
	all := p.contents[source]
	return all[max(0, len(all)-2)]
}

func (p *person) setContent(ctx context.Context, source, content string) error {
	p.contents[source] = append(p.contents[source], content)
	return p.write(ctx, source, content)
}

// write gives a source that content, and makes one that is not there.
func (p *person) write(ctx context.Context, source, content string) error {
	o := p.source(source, content)
	old := p.source(source, "")
	err := p.client.Get(ctx, client.ObjectKeyFromObject(o), old)
	if apierrors.IsNotFound(err) {
		return p.client.Create(ctx, o)
	}
	if err != nil {
		return err
	}
	o.SetAnnotations(old.GetAnnotations())
	o.SetResourceVersion(old.GetResourceVersion())
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	return p.client.Update(ctx, o)
}

func (p *person) holdSource(ctx context.Context, source string, hold bool) error {
	o := p.source(source, "")
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return client.IgnoreNotFound(err)
	}
	annotations := map[string]string{}
	if hold {
		annotations[settings.Hold] = "history"
	}
	o.SetAnnotations(annotations)
	return p.client.Update(ctx, o)
}

// remove deletes the workload, and remembers it as it was when its revisions stay.
func (p *person) remove(ctx context.Context, orphan bool) error {
	d, err := p.get(ctx)
	if d == nil {
		return err
	}
	p.last = nil
	policy := metav1.DeletePropagationForeground
	if orphan {
		p.last, policy = d.DeepCopy(), metav1.DeletePropagationOrphan
	}
	return p.client.Delete(ctx, p.written(d), client.PropagationPolicy(policy))
}

// get reads the workload, nil when there is none.
func (p *person) get(ctx context.Context) (*appsv1.Deployment, error) {
	o := p.kind.NewObject()
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: testkit.Web}, o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	d := asDeployment(o)
	if !p.lent {
		return d, nil
	}
	lender := &appsv1.Deployment{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(d), lender); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	d.Spec.Template = lender.Spec.Template
	return d, nil
}

// written is the workload in the form of its kind.
func (p *person) written(d *appsv1.Deployment) client.Object {
	switch p.kind.Kind {
	case kube.Rollout().Kind:
		return asRollout(d)
	case kube.StatefulSet().Kind:
		return asStatefulSet(d)
	case kube.DaemonSet().Kind:
		return asDaemonSet(d)
	case kube.CronJob().Kind:
		return asCronJob(d)
	}
	return d
}

// decide decides on a canary that is under way, as Argo's plugin for kubectl writes it:
// "abort", "retry rollout" and "promote --full".
func (p *person) decide(ctx context.Context, verb histories.Verb) error {
	o := kube.Rollout().NewObject().(*unstructured.Unstructured)
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: testkit.Web}, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	status := statusOf(o)
	if asDeployment(o).Spec.Paused || status.CurrentPodHash == status.StableRS || verb != histories.Promote && status.Abort == (verb == histories.Abort) {
		return nil
	}
	body := map[histories.Verb]string{
		histories.Abort: `{"status":{"abort":true}}`, histories.Retry: `{"status":{"abort":false}}`, histories.Promote: `{"status":{"promoteFull":true}}`,
	}[verb]
	return p.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
}

func (p *person) makeAgain(ctx context.Context) error {
	d, err := p.manifest(ctx)
	if err != nil {
		return err
	}
	if p.last != nil {
		d.Annotations, d.Spec = p.last.Annotations, p.last.Spec
	}
	err = p.create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (p *person) create(ctx context.Context, d *appsv1.Deployment) error {
	d.Namespace = p.namespace
	if !p.lent {
		return p.client.Create(ctx, p.written(d))
	}
	rollout, lender := p.splits(d)
	if err := p.client.Create(ctx, lender); err != nil {
		return err
	}
	return p.client.Create(ctx, rollout)
}

// undo goes to another revision as "kubectl rollout undo" does: the template, and the
// annotations of the Deployment as they were then. kubectl refuses a paused one; other
// tools write its template alone, and so does Argo's plugin.
func (p *person) undo(ctx context.Context, choice int) error {
	if p.kind.Kind == kube.StatefulSet().Kind || p.kind.Kind == kube.DaemonSet().Kind {
		return p.undoStatefulSet(ctx, choice)
	}
	sets := &appsv1.ReplicaSetList{}
	if err := p.client.List(ctx, sets, client.InNamespace(p.namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
		return err
	}
	slices.SortFunc(sets.Items, func(a, b appsv1.ReplicaSet) int { return int(numberOf(&b) - numberOf(&a)) })
	return p.change(ctx, func(d *appsv1.Deployment) {
		others := slices.DeleteFunc(slices.Clone(sets.Items), func(rs appsv1.ReplicaSet) bool {
			return templateOf(&rs) == templateText(d)
		})
		if len(others) == 0 {
			return
		}
		to := others[choice%len(others)]
		d.Spec.Template = *plain(to.Spec.Template)
		if d.Spec.Paused || p.canary {
			return
		}
		number := d.Annotations[revisionKey]
		d.Annotations = maps.Clone(to.Annotations)
		for _, key := range []string{historyKey, "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"} {
			delete(d.Annotations, key)
		}
		d.Annotations[revisionKey] = number
	})
}

// undoStatefulSet goes to another revision as "kubectl rollout undo" does: the template alone.
func (p *person) undoStatefulSet(ctx context.Context, choice int) error {
	list := &appsv1.ControllerRevisionList{}
	if err := p.client.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
		return err
	}
	return p.change(ctx, func(d *appsv1.Deployment) {
		var others []*appsv1.Deployment
		for i := range list.Items {
			if to := storedIn(&list.Items[i]); templateText(to) != templateText(d) {
				others = append(others, to)
			}
		}
		if len(others) > 0 {
			d.Spec.Template = others[choice%len(others)].Spec.Template
		}
	})
}

// factOf is what a write says, of a workload or a source.
func factOf(o client.Object) histories.Fact {
	f := histories.Fact{}
	_, f.Held = o.GetAnnotations()[settings.Hold]
	switch o := o.(type) {
	case *corev1.ConfigMap:
		f.Source, f.Content = histories.ConfigMap, o.Data["key"]
	case *corev1.Secret:
		f.Source, f.Content = histories.Secret, string(o.Data["key"])
	default:
		d := asDeployment(o)
		release, _ := strconv.ParseInt(d.Annotations[settings.Release], 10, 64)
		wish := d.Annotations[settings.Reload]
		f.Workload = &histories.Workload{
			UID: string(d.UID), Template: templateText(d),
			Paused: d.Spec.Paused, Held: f.Held, Release: release, Left: wish == "" || wish == "never",
		}
	}
	return f
}

// wordOf is what Lockstep says by its last reason and its record.
func wordOf(reason string, entry record.Entry, p *person, digests kube.Hashers) histories.Word {
	said := histories.Word{Reason: reason, Kept: entry.Hold.Undone, Delivered: map[string]string{}, Back: map[string]bool{}}
	for id, versions := range p.versions(digests) {
		name, given := id.String(), entry.Inputs[id]
		said.Delivered[name], said.Back[name] = histories.Unknown, given.RevertedTo != ""
		if given.Version.IsAbsent() {
			said.Delivered[name] = ""
		}
		if content, known := versions[given.Version.Short()]; known {
			said.Delivered[name] = content
		}
	}
	return said
}

// showsOf is what Lockstep shows in a template: the content of each source.
func showsOf(text string, p *person, digests kube.Hashers) map[string]string {
	shows, shown := map[string]string{}, input.ParseShown(text)
	for id, versions := range p.versions(digests) {
		if content, known := versions[shown[id].Digest]; known {
			shows[id.String()] = content
		}
	}
	return shows
}

// versions are the contents that each source has had, by their digests.
func (p *person) versions(digests kube.Hashers) map[input.ID]map[string]string {
	all := map[input.ID]map[string]string{}
	for name, contents := range p.contents {
		id, err := input.ParseSource(name)
		if err != nil {
			panic(err)
		}
		for _, content := range contents {
			if all[id] == nil {
				all[id] = map[string]string{}
			}
			all[id][p.digest(name, content, digests)] = content
		}
	}
	return all
}

// digest is that of a content of a source.
func (p *person) digest(name, content string, digests kube.Hashers) string {
	if known, ok := p.digests[content]; ok {
		return known
	}
	source, err := digests.Slim(p.source(name, content), settings.Native{})
	if err != nil {
		panic(err)
	}
	digest := source.Content.Version(fingerprint.AllKeys()).Short()
	if p.digests != nil {
		p.digests[content] = digest
	}
	return digest
}
