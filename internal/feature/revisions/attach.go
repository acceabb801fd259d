package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// Request is what one run should attach.
type Request struct {
	// Kind is the workload's kind.
	Kind     kube.Kind
	Workload types.NamespacedName
	// Objects are in the workload's namespace: owner references cannot leave it.
	Objects []input.ID
	// RequireReference attaches only objects that the newest revision's template names.
	RequireReference bool
	// Grace is how long to wait for a revision that names all objects. If a workload is applied a
	// moment after this run began, its objects must not be attached to the previous revision
	// only. Then each object is attached by itself, and without RequireReference also one that
	// the template doesn't name. Default 10 s.
	Grace time.Duration
	// Timeout bounds the whole run. Default 4 minutes: Helm waits 5 minutes for a Job,
	// and missing objects must be reported before.
	Timeout time.Duration
	// WaitForWorkload waits, within Timeout, for a workload that doesn't exist yet: this
	// run may start before the workload is created, or changed. If the newest revision owns all
	// objects already, it waits for the grace period, because a deploy that changes none of them
	// may follow.
	WaitForWorkload bool
	// AsController makes the newest revision the controller of an object, as
	// configmap-attacher did, unless the controller isn't one of the workload's revisions.
	AsController bool
}

// DefaultRequest returns a request that lacks only names.
func DefaultRequest() Request {
	return Request{RequireReference: true, Grace: 10 * time.Second, Timeout: 4 * time.Minute}
}

// Outcome is the result for one object.
type Outcome struct {
	Object input.ID
	// Owners that were added or found, by name.
	Owners []string
	// Unchanged is true when the object had them all.
	Unchanged bool
	// Warning is something that the caller should know even though the run succeeded.
	Warning string
}

// Attacher makes objects dependents of the revisions that use them, once.
type Attacher struct {
	// Client reads the workload and its revisions, and writes owners.
	Client client.WithWatch
	// Report is called for each object that was attached, as it happens.
	Report func(Outcome)
	// Waiting is called with what an object waits for, whenever that changes; it may be
	// nil.
	Waiting func(object input.ID, message string)
}

// Attach attaches every object of the request, waiting for the revision that names it.
// All objects are tried; the error joins all failures.
func (a *Attacher) Attach(ctx context.Context, r Request) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTooLate)
	defer cancel()
	run := &run{Attacher: a, request: r, pending: map[input.ID]Verdict{}}
	for _, object := range r.Objects {
		run.pending[object] = Verdict{Message: "it hasn't been read yet"}
	}
	if err := run.attachAll(ctx); err != nil {
		run.giveUp(ctx, err)
	}
	return errors.Join(run.failed...)
}

var (
	errTooLate      = errors.New("timeout")
	errUnreferenced = errors.New("the pod template does not reference it")
)

// run is the state of one Attach.
type run struct {
	*Attacher
	request Request
	// pending objects with the last verdict on each.
	pending map[input.ID]Verdict
	failed  []error
}

// attachAll attaches the objects when the newest revision names all of them, and not before it is
// the deploy's, as far as that can be known. A deploy usually changes some objects and keeps
// others, so a revision that names only some is probably the one before.
// After the grace period each object is attached by itself when the newest revision names it,
// and without RequireReference as soon as there is a newest revision.
func (r *run) attachAll(ctx context.Context) error {
	patience, cancel := context.WithTimeoutCause(ctx, r.request.Grace, errUnreferenced)
	defer cancel()
	err := r.follow(ctx, patience, Judge, together)
	if err == nil || ctx.Err() != nil || patience.Err() == nil {
		return err
	}
	if r.request.RequireReference {
		return r.follow(ctx, ctx, Judge, each)
	}
	return r.follow(ctx, ctx, judgeLeniently, each)
}

// manner is how several objects are attached.
type manner bool

const (
	// each object is attached as soon as it can be.
	each manner = false
	// together: all objects are attached as soon as all of them can be.
	together manner = true
)

// follow attaches objects as their verdicts allow, until none is pending or patience
// ends.
func (r *run) follow(ctx, patience context.Context, judge judge, how manner) error {
	for {
		err := r.followOnce(ctx, patience, judge, how)
		if _, missing := errors.AsType[lineage.MissingError](err); !missing || !r.request.WaitForWorkload {
			return err
		}
		for object := range r.pending {
			r.wait(object, Verdict{Message: objectname.Full(r.request.Kind.GroupKind(), r.request.Workload.Namespace, r.request.Workload.Name) + " does not exist yet"})
		}
		select {
		case <-patience.Done():
			return context.Cause(patience)
		case <-time.After(time.Second):
		}
	}
}

// wait remembers what an object waits for, and reports it when that changes.
func (r *run) wait(object input.ID, v Verdict) {
	if r.Waiting != nil && r.pending[object].Message != v.Message {
		r.Waiting(object, v.Message)
	}
	r.pending[object] = v
}

// judge decides whether an object can be attached.
type judge func(lineage.History, input.ID) Verdict

func (r *run) followOnce(ctx, patience context.Context, judge judge, how manner) error {
	return lineage.FollowHistory(patience, r.Client, r.request.Kind, r.request.Workload, func(h lineage.History) bool {
		early := ""
		if how == together {
			early = r.early(ctx, h, judge)
		}
		for _, object := range r.request.Objects {
			if _, waits := r.pending[object]; !waits {
				continue
			}
			v := judge(h, object)
			if len(v.Owners) > 0 && early != "" {
				v = Verdict{Reason: input.AwaitingRevision, Message: early}
			}
			if len(v.Owners) > 0 {
				delete(r.pending, object)
				r.attach(ctx, h, object, v)
				continue
			}
			r.wait(object, v)
		}
		return len(r.pending) == 0
	})
}

// early is why the newest revision may be the one before the deploy that this run belongs to;
// empty if it isn't. A deploy that changes none of the objects can't be told from none at all.
func (r *run) early(ctx context.Context, h lineage.History, judge judge) string {
	handled := r.request.WaitForWorkload
	for _, object := range r.request.Objects {
		v := judge(h, object)
		if len(v.Owners) == 0 {
			return "the newest revision does not reference all objects of the request yet"
		}
		if handled {
			owners, err := r.owners(ctx, r.key(object))
			handled = err == nil && isHandled(h, owners)
		}
	}
	if handled {
		return "the newest revision already owns everything; the deploy may not be applied yet"
	}
	return ""
}

// isHandled reports whether an earlier run attached an object to the newest revision: that is an
// owner, and no older revision is the controller. The original left older revisions that use the
// object without a reference, and another program may control the object.
func isHandled(h lineage.History, owners []metav1.OwnerReference) bool {
	owned := slices.ContainsFunc(owners, func(has metav1.OwnerReference) bool { return string(has.UID) == h.Current.UID })
	return owned && !slices.ContainsFunc(h.Holders, func(holder *lineage.Holder) bool { return holder != h.Current && controls(holder, owners) })
}

func controls(holder *lineage.Holder, owners []metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, func(has metav1.OwnerReference) bool {
		return string(has.UID) == holder.UID && ptr.Deref(has.Controller, false)
	})
}

// missing are the owners that an object should have, and whether it has them.
func (r *run) missing(ctx context.Context, h lineage.History, object input.ID, v Verdict) (refs []metav1.OwnerReference, attached bool, err error) {
	before, err := r.owners(ctx, r.key(object))
	refs = r.references(h, v, before)
	return refs, err == nil && containsAll(before, refs), err
}

func (r *run) key(object input.ID) ownership.ObjectKey {
	return ownership.ObjectKey{Namespace: r.request.Workload.Namespace, Source: object}
}

// attach writes the owners of one object.
func (r *run) attach(ctx context.Context, h lineage.History, object input.ID, v Verdict) {
	refs, unchanged, err := r.missing(ctx, h, object, v)
	warning := ""
	if !unchanged {
		warning, err = r.write(ctx, r.key(object), refs)
	}
	if err != nil {
		r.failed = append(r.failed, err)
		return
	}
	o := Outcome{Object: object, Unchanged: unchanged, Warning: strings.Trim(v.Message+"; "+warning, "; ")}
	for _, owner := range v.Owners {
		o.Owners = append(o.Owners, owner.String())
	}
	r.Report(o)
}

// references are the owners to write. An object can have only one controller, so the
// references to the workload's older revisions say that they aren't it, even one that doesn't
// use the object and controls it now.
func (r *run) references(h lineage.History, v Verdict, before []metav1.OwnerReference) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for _, holder := range h.Holders {
		ref, newest := holder.OwnerReference(), holder == h.Current
		switch {
		case r.request.AsController && (controls(holder, before) || slices.Contains(v.Owners, holder)):
			ref.Controller, ref.BlockOwnerDeletion = &newest, &newest
		case !slices.Contains(v.Owners, holder):
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}

// write adds the owners. If Lockstep isn't permitted to block an owner's deletion, it
// adds the owner without that. An object that something else than the workload's revisions
// controls keeps its controller and gets plain owners.
func (r *run) write(ctx context.Context, key ownership.ObjectKey, refs []metav1.OwnerReference) (warning string, err error) {
	err = r.patch(ctx, key, refs)
	if r.request.AsController && mayNotBlock(err) {
		warning = "owner added without blockOwnerDeletion, because the permission to set it is missing"
		refs = blockingNothing(refs)
		err = r.patch(ctx, key, refs)
	}
	if r.request.AsController && apierrors.IsInvalid(err) {
		warning = "owner added in addition to the object's controller"
		err = r.patch(ctx, key, plain(refs))
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("attach %s: it does not exist", key)
	case err != nil:
		return "", fmt.Errorf("attach %s: %w", key, err)
	}
	return warning, nil
}

func (r *run) patch(ctx context.Context, key ownership.ObjectKey, refs []metav1.OwnerReference) error {
	return access.Retry(ctx, func(ctx context.Context) error {
		return ownership.AddOwners(ctx, r.Client, key, "", refs)
	})
}

// owners are the object's current owners. Failing to read them isn't a reason not to add
// one: the write reports the problem.
func (r *run) owners(ctx context.Context, key ownership.ObjectKey) (owners []metav1.OwnerReference, err error) {
	err = access.Retry(ctx, func(ctx context.Context) error {
		owners, err = ownership.Owners(ctx, r.Client, key)
		return err
	})
	return owners, err
}

// containsAll reports whether adding the owners would change nothing.
func containsAll(owners, wanted []metav1.OwnerReference) bool {
	for _, ref := range wanted {
		if !slices.ContainsFunc(owners, func(has metav1.OwnerReference) bool {
			return has.UID == ref.UID && (ref.Controller == nil || ptr.Deref(has.Controller, false) == *ref.Controller)
		}) {
			return false
		}
	}
	return true
}

// mayNotBlock recognises the admission plugin that guards owner references.
func mayNotBlock(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "blockOwnerDeletion")
}

func blockingNothing(refs []metav1.OwnerReference) []metav1.OwnerReference {
	refs = slices.Clone(refs)
	for i := range refs {
		if refs[i].BlockOwnerDeletion != nil {
			refs[i].BlockOwnerDeletion = new(bool)
		}
	}
	return refs
}

func plain(refs []metav1.OwnerReference) []metav1.OwnerReference {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Controller, refs[i].BlockOwnerDeletion = nil, nil
	}
	return refs
}

// giveUp reports what was missing for each pending object, or once what kept all of them
// from being attached. After a timeout both may apply: the revision was missing, and the
// last attempt to read it failed.
func (r *run) giveUp(ctx context.Context, err error) {
	if !errors.Is(context.Cause(ctx), errTooLate) {
		r.failed = append(r.failed, err)
		return
	}
	for _, object := range r.request.Objects {
		if v, waits := r.pending[object]; waits {
			r.failed = append(r.failed, fmt.Errorf("attach %s: gave up after %s: %s", object, r.request.Timeout, v.Message))
		}
	}
	if !errors.Is(err, errTooLate) {
		r.failed = append(r.failed, err)
	}
}
