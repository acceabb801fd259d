package reloader

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// maxJobName is how long the name of a Job may be so its pods can have names too.
const maxJobName = 63

// runOf creates a Job from a CronJob. Its name follows from the changes, so they cause one Job even
// if the process ends before they are on record.
func (r *Reloader) runOf(o client.Object, all []due) action {
	cron := o.(*batchv1.CronJob)
	created := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cron.Namespace, Name: runName(cron, all), Labels: maps.Clone(cron.Spec.JobTemplate.Labels),
			Annotations:     map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: *cron.Spec.JobTemplate.Spec.DeepCopy(),
	}
	maps.Copy(created.Annotations, cron.Spec.JobTemplate.Annotations)
	r.mark(&created.Spec.Template, cron.Namespace, all)
	alone := cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && !r.RerunJobs
	return action{alone: alone, do: func(ctx context.Context) error {
		err := r.Client.Create(ctx, created.DeepCopy(), client.FieldOwner(FieldManager))
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}}
}

// runsFor is the owner of a Job that hasn't finished. The status of a CronJob lists only Jobs that
// its schedule has started.
func runsFor(o client.Object) (owner types.UID, runs bool) {
	job, ok := o.(*batchv1.Job)
	if !ok || hasFinished(job) {
		return "", false
	}
	by := metav1.GetControllerOf(job)
	if by == nil {
		return "", false
	}
	return by.UID, true
}

func runName(cron *batchv1.CronJob, all []due) string {
	sum := sha256.New()
	sum.Write([]byte(cron.UID))
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = fmt.Sprintf("/%s/%s/%s/%s", d.Type, d.Name, d.hash, d.version)
	}
	slices.Sort(names) // The next process may find the changes in another order.
	sum.Write([]byte(strings.Join(names, "")))
	suffix := "-" + hex.EncodeToString(sum.Sum(nil))[:8]
	return cron.Name[:min(len(cron.Name), maxJobName-len(suffix))] + suffix
}

// mark shows what is due in the template of an object that is created.
func (r *Reloader) mark(t *corev1.PodTemplateSpec, namespace string, all []due) {
	if r.Strategy == Annotations {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[stakater.LastReloadedFrom] = r.lastOf(observation{Workload: stakater.Workload{Template: t}, namespace: namespace}, all).Text()
		return
	}
	for _, d := range lastOfEach(all) {
		c := &t.Spec.Containers[d.container]
		name := stakater.Variable(d.Type, d.Name)
		at, _ := variableIn(*c, name)
		switch {
		case d.event == deleted:
			c.Env = append(c.Env[:at:at], c.Env[at+1:]...)
		case at >= 0:
			c.Env[at] = corev1.EnvVar{Name: name, Value: d.hash}
		default:
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: d.hash})
		}
	}
}

const (
	// goneWithin is how long a deleted Job may stay, for finalizers.
	goneWithin = 20 * time.Second
	lookEvery  = 100 * time.Millisecond
	// createWithin is how long a Job is tried to be created again. It continues when the process
	// is told to stop: the Job exists nowhere else.
	createWithin = 25 * time.Second
)

// replacementOf deletes a Job and creates it again. A dry run shows first whether the API server
// would accept it.
func (r *Reloader) replacementOf(o client.Object, all []due) action {
	old := o.(*batchv1.Job).DeepCopy()
	fresh := r.copyOf(old, all)
	return action{do: func(ctx context.Context) error {
		trial := fresh.DeepCopy()
		trial.Name, trial.GenerateName = "", strings.TrimRight(old.Name[:min(len(old.Name), maxJobName-6)], "-.")+"-"
		if err := r.Client.Create(ctx, trial, client.DryRunAll, client.FieldOwner(FieldManager)); err != nil {
			return fmt.Errorf("it isn't deleted, because it couldn't be created again: %w", err)
		}
		gone := client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion}
		if err := r.Client.Delete(ctx, old, gone, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
		return r.create(context.WithoutCancel(ctx), fresh, old.UID)
	}}
}

// copyOf is the Job as it is created again.
func (r *Reloader) copyOf(old *batchv1.Job, all []due) *batchv1.Job {
	fresh := old.DeepCopy()
	fresh.ResourceVersion, fresh.UID, fresh.CreationTimestamp, fresh.Generation = "", "", metav1.Time{}, 0
	fresh.ManagedFields, fresh.Status = nil, batchv1.JobStatus{}
	if !ptr.Deref(old.Spec.ManualSelector, false) {
		fresh.Spec.Selector = nil
		for _, label := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
			delete(fresh.Spec.Template.Labels, label)
		}
	}
	r.mark(&fresh.Spec.Template, old.Namespace, all)
	return fresh
}

// create creates a Job as soon as its predecessor is gone, unless another writer has done so.
func (r *Reloader) create(ctx context.Context, fresh *batchv1.Job, predecessor types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, createWithin)
	defer cancel()
	var last error
	err := wait.PollUntilContextTimeout(ctx, lookEvery, goneWithin, true, func(ctx context.Context) (bool, error) {
		last = r.Client.Create(ctx, fresh.DeepCopy(), client.FieldOwner(FieldManager))
		if apierrors.IsAlreadyExists(last) {
			present := &batchv1.Job{}
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(fresh), present)
			return err == nil && present.UID != predecessor, nil
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, errors.Join(last, err))
	}
	return nil
}

// errGone is for a Job that was deleted and exists no longer.
var errGone = errors.New("it was deleted and can't be created again")
