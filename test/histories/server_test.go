package histories_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// server is an API server that is small enough to read. It is what the histories in
// process need of a real one: one sequence of resource versions, generations, times that
// are a second coarse, preconditions, and the managed fields that Lockstep reads.
type server struct {
	version uint64
	made    int // objects so far, for their UIDs
	objects map[string]client.Object
	// written is told of each write, with nil for what is gone. The writer is a field manager.
	written []func(writer string, old, now client.Object)
	// orphaning is true while a deletion leaves the revisions.
	orphaning bool
	// hasPods is true in a world with kubelets. Elsewhere nothing shows when pods started.
	hasPods bool
}

func newServer() *server {
	return &server{objects: map[string]client.Object{}}
}

// as is a client that writes under the name of a field manager.
func (s *server) as(manager string) client.Client {
	return caller{server: s, manager: manager}
}

// caller is a client of the server. What histories do not need is not there, and a call
// of it ends the test.
type caller struct {
	client.Client

	server  *server
	manager string
	salt    string
}

const namespace = "shop"

// nameOf names an object of one namespace.
func nameOf(o client.Object, name string) string {
	return reflect.TypeOf(o).String() + "/" + name
}

// placeOf names an object among all objects.
func placeOf(o client.Object) string {
	return nameIn(o, o.GetNamespace(), o.GetName())
}

func nameIn(o client.Object, namespace, name string) string {
	return nameOf(o, namespace+"/"+name)
}

func notFound(o client.Object, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, name)
}

func (c caller) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	stored, ok := c.server.objects[nameIn(into, key.Namespace, key.Name)]
	if !ok {
		return notFound(into, key.Name)
	}
	return fill(into, stored)
}

// fill copies a stored object into one of a caller.
func fill(into, stored client.Object) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}

func (c caller) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	switch list := list.(type) {
	case *appsv1.ReplicaSetList:
		for _, rs := range c.server.setsThat(func(rs *appsv1.ReplicaSet) bool {
			return rs.Namespace == asked.Namespace && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(rs.Labels)))
		}) {
			list.Items = append(list.Items, *salted(rs, c.salt).(*appsv1.ReplicaSet).DeepCopy())
		}
	case *appsv1.ControllerRevisionList:
		for _, r := range c.server.revisions() {
			list.Items = append(list.Items, *salted(r, c.salt).(*appsv1.ControllerRevision).DeepCopy())
		}
	case *metav1.PartialObjectMetadataList: // of the ReplicaSet that controls a pod
		for _, rs := range c.server.sets() {
			byName := asked.FieldSelector == nil || asked.FieldSelector.Matches(fields.Set{"metadata.name": rs.Name})
			if byName && rs.Namespace == asked.Namespace && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(rs.Labels))) {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: rs.ObjectMeta})
			}
		}
	case *corev1.PodList:
		for _, pod := range c.server.pods() {
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	default:
		return fmt.Errorf("the histories list no %T", list)
	}
	return nil
}

// sets are the ReplicaSets, in the order in which they were made.
func (s *server) sets() []*appsv1.ReplicaSet {
	return s.setsThat(func(*appsv1.ReplicaSet) bool { return true })
}

func (s *server) setsThat(match func(*appsv1.ReplicaSet) bool) []*appsv1.ReplicaSet {
	var all []*appsv1.ReplicaSet
	for _, o := range s.objects {
		if rs, ok := o.(*appsv1.ReplicaSet); ok && match(rs) {
			all = append(all, rs)
		}
	}
	slices.SortFunc(all, func(a, b *appsv1.ReplicaSet) int { return slices.Compare([]byte(a.UID), []byte(b.UID)) })
	return all
}

// setsOf are the ReplicaSets that match a workload's selector.
func (s *server) setsOf(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	return s.setsThat(func(rs *appsv1.ReplicaSet) bool {
		return rs.Namespace == d.Namespace && rs.Labels["app"] == d.Spec.Selector.MatchLabels["app"]
	})
}

func (c caller) Create(_ context.Context, o client.Object, options ...client.CreateOption) error {
	var asked client.CreateOptions
	if asked.ApplyOptions(options); len(asked.DryRun) > 0 {
		return nil
	}
	if _, exists := c.server.objects[placeOf(o)]; exists {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	c.server.made++
	o.SetUID(types.UID(fmt.Sprintf("%06d", c.server.made)))
	o.SetCreationTimestamp(now())
	o.SetGeneration(1)
	o.SetManagedFields(nil)
	c.server.store(c.manager, nil, o)
	return nil
}

// now is a time of the API server: a second coarse.
func now() metav1.Time {
	return metav1.NewTime(time.Now().Truncate(time.Second))
}

// Update replaces an object that is still the one that was read.
func (c caller) Update(_ context.Context, o client.Object, options ...client.UpdateOption) error {
	var asked client.UpdateOptions
	asked.ApplyOptions(options)
	old, ok := c.server.objects[placeOf(o)]
	switch {
	case !ok:
		return notFound(o, o.GetName())
	case o.GetUID() != old.GetUID() || o.GetResourceVersion() != old.GetResourceVersion():
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("written meanwhile"))
	}
	if rollout, ok := o.(*unstructured.Unstructured); ok { // its status is written by itself
		rollout.Object["status"] = old.DeepCopyObject().(*unstructured.Unstructured).Object["status"]
	}
	switch o := o.(type) { // so it is with these
	case *appsv1.StatefulSet:
		o.Status = old.(*appsv1.StatefulSet).Status
	case *appsv1.DaemonSet:
		o.Status = old.(*appsv1.DaemonSet).Status
	}
	o.SetManagedFields(old.GetManagedFields())
	o.SetGeneration(old.GetGeneration())
	if hasNewSpec(old, o) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
	c.server.store(cmp.Or(asked.FieldManager, c.manager), old, o)
	return nil
}

// hasNewSpec: the API server counts the annotations of a Deployment too, unless its
// controller writes them with the status; of the others only the specification.
func hasNewSpec(old, now client.Object) bool {
	if rollout, ok := old.(*unstructured.Unstructured); ok {
		return !apiequality.Semantic.DeepEqual(rollout.Object["spec"], now.(*unstructured.Unstructured).Object["spec"])
	}
	if set, ok := old.(*appsv1.StatefulSet); ok {
		return !apiequality.Semantic.DeepEqual(set.Spec, now.(*appsv1.StatefulSet).Spec)
	}
	if set, ok := old.(*appsv1.DaemonSet); ok {
		return !apiequality.Semantic.DeepEqual(set.Spec, now.(*appsv1.DaemonSet).Spec)
	}
	if job, ok := old.(*batchv1.CronJob); ok {
		return !apiequality.Semantic.DeepEqual(job.Spec, now.(*batchv1.CronJob).Spec)
	}
	before, ok := old.(*appsv1.Deployment)
	after, _ := now.(*appsv1.Deployment)
	return ok && (!apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations))
}

// updateStatus is a write of the Deployment controller.
func (s *server) updateStatus(d *appsv1.Deployment) {
	s.store("kube-controller-manager", s.objects[placeOf(d)], d)
}

// Patch is a JSON merge patch, the form in which Lockstep writes.
func (c caller) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	body, err := p.Data(o)
	if err != nil {
		return err
	}
	patched, err := c.server.merge(o, body)
	if err != nil {
		return err
	}
	if err := c.Update(ctx, patched); err != nil {
		return err
	}
	return fill(o, salted(patched, c.salt))
}

// merge is the object with a JSON merge patch.
func (s *server) merge(o client.Object, body []byte) (client.Object, error) {
	stored, ok := s.objects[placeOf(o)]
	if !ok {
		return nil, notFound(o, o.GetName())
	}
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return nil, err
	}
	patched := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	return patched, json.Unmarshal(after, patched)
}

// Status writes the status of a Rollout, which leaves its generation.
func (c caller) Status() client.SubResourceWriter { return statusCaller{caller: c} }

type statusCaller struct {
	client.SubResourceWriter

	caller caller
}

// Patch is a JSON merge patch that has nothing but a status.
func (c statusCaller) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := p.Data(o)
	if err != nil {
		return err
	}
	patched, err := c.caller.server.merge(o, body)
	if err != nil {
		return err
	}
	c.caller.server.store(c.caller.manager, c.caller.server.objects[placeOf(o)], patched)
	return nil
}

// Delete deletes an object, and the revisions of a workload unless they are orphaned.
func (c caller) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	old, ok := c.server.objects[placeOf(o)]
	if !ok {
		return notFound(o, o.GetName())
	}
	var asked client.DeleteOptions
	asked.ApplyOptions(options)
	orphan := asked.PropagationPolicy != nil && *asked.PropagationPolicy == metav1.DeletePropagationOrphan
	c.server.version++
	delete(c.server.objects, placeOf(old))
	if d := asDeployment(old); d != nil {
		for _, rs := range c.server.setsOf(d) {
			if !orphan {
				delete(c.server.objects, placeOf(rs))
				continue
			}
			rs.OwnerReferences = nil
		}
		for _, r := range c.server.revisions() {
			if !orphan {
				delete(c.server.objects, placeOf(r))
				continue
			}
			r.OwnerReferences = nil
		}
	}
	c.server.orphaning = orphan
	for _, tell := range c.server.written {
		tell(c.manager, old, nil)
	}
	return nil
}

// store writes an object down and tells of it.
func (s *server) store(writer string, old, o client.Object) {
	s.version++
	o.SetResourceVersion(strconv.FormatUint(s.version, 10))
	manage(writer, old, o)
	kept := o.DeepCopyObject().(client.Object)
	s.objects[placeOf(o)] = kept
	for _, tell := range s.written {
		tell(writer, old, kept)
	}
}

// managed are the fields of an object whose writers Lockstep reads, with their values.
func managed(o client.Object) map[string]string {
	switch o.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.CronJob, *unstructured.Unstructured:
		template := noted(o, "edited") + noted(o, references) + noted(o, container)
		return map[string]string{settings.Reload: o.GetAnnotations()[settings.Reload], settings.Inputs: noted(o, settings.Inputs), "template": template}
	case *corev1.Pod:
		return nil
	}
	return map[string]string{"data": ""}
}

// noted is an annotation of a workload's template.
func noted(o client.Object, key string) string {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Annotations[key]
	case *appsv1.StatefulSet:
		return o.Spec.Template.Annotations[key]
	case *appsv1.DaemonSet:
		return o.Spec.Template.Annotations[key]
	case *batchv1.CronJob:
		return o.Spec.JobTemplate.Spec.Template.Annotations[key]
	}
	text, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "template", "metadata", "annotations", key)
	return text
}

// manage keeps the managed fields: the last writer of a field owns it.
func manage(writer string, old, o client.Object) {
	values := managed(o)
	var before map[string]string
	if _, isData := values["data"]; old != nil && !isData {
		before = managed(old)
	}
	owners, times := map[string]string{}, map[string]metav1.Time{}
	for _, e := range o.GetManagedFields() {
		times[e.Manager] = *e.Time
		for field := range values {
			if strings.Contains(e.FieldsV1.GetRawString(), fieldText(field)) {
				owners[field] = e.Manager
			}
		}
	}
	if !onlyRemoves(old, o) {
		times[writer] = now()
	}
	for field, value := range values {
		if before == nil || before[field] != value {
			owners[field] = writer
		}
	}
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range slices.Sorted(maps.Keys(times)) {
		at, owned := times[manager], []string{}
		for _, field := range slices.Sorted(maps.Keys(owners)) {
			if owners[field] == manager {
				owned = append(owned, fieldText(field)+"{}")
			}
		}
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:all":{` + strings.Join(owned, ",") + `}}`)})
	}
	o.SetManagedFields(entries)
}

// onlyRemoves: a write that only removes keys of a source leaves no time.
func onlyRemoves(old, o client.Object) bool {
	before, after := dataOf(old), dataOf(o)
	if before == nil || len(after) >= len(before) {
		return false
	}
	for key, value := range after {
		if before[key] != value {
			return false
		}
	}
	return true
}

func fieldText(field string) string { return `"f:` + field + `":` }

var _ client.Client = caller{manager: kube.FieldManager}
