package ask

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Source finds the workloads that follow a ConfigMap or Secret. A source that is gone, or that
// the user may not read, may still be on record. If neither is the case, the error says NotFound.
func (r *Reader) Source(ctx context.Context, namespace string, id input.ID) (SourceExplanation, error) {
	s := Source{ID: id, Namespace: namespace}
	heard, stored, err := r.Heard(ctx, namespace)
	if err != nil {
		return SourceExplanation{}, err
	}
	s.Kinds = kube.AllKinds(r.Kinds, heard.Serves.Kinds)
	s.Controller, s.Stops = ControllerOf(&heard, r.Now()), heard.StopsIn(namespace)
	s.Fleet = Fleet{Entries: stored.Entries, Failures: stored.Failures, Serves: heard.Serves}
	s.RecordHidden = heard.RecordProblem != nil
	s.Unread = heard.unread("the record, which lists the workloads that follow it,", "")
	o, err := cluster.ReadSource(ctx, r.Client, namespace, id)
	switch {
	case apierrors.IsForbidden(err):
		s.Hidden = err.Error()
		s.Unread = append(s.Unread, "it is "+NotVisible+": "+s.Hidden)
	case apierrors.IsNotFound(err) && s.isFollowed():
		s.Gone, s.Unread = true, append(s.Unread, "the object does not exist")
	case err != nil:
		return SourceExplanation{}, err
	default:
		s.Object = metadataOf(o)
		if err := r.measure(ctx, &s, heard.Own, o); err != nil {
			return SourceExplanation{}, err
		}
		if s.Events, err = announce.ReportedOf(ctx, r.Client, namespace, string(s.Object.UID)); err != nil {
			s.Unread = append(s.Unread, "events are "+NotVisible+": "+err.Error())
		}
	}
	return ExplainSource(s), ctx.Err()
}

// isFollowed reports whether a workload has the source on record.
func (s *Source) isFollowed() bool {
	for key, entry := range s.Fleet.Entries {
		if _, follows := entry.Inputs[s.ID]; follows && key.Namespace == s.Namespace {
			return true
		}
	}
	return false
}

// metadataOf is a source without its content. The library has a function for any object: it would
// keep 140 kB of methods in the program.
func metadataOf(o client.Object) *metav1.ObjectMeta {
	if secret, is := o.(*corev1.Secret); is {
		return &secret.ObjectMeta
	}
	return &o.(*corev1.ConfigMap).ObjectMeta
}

// measure digests the content of the source; a Secret's digests need the installation key.
func (r *Reader) measure(ctx context.Context, s *Source, own Own, o client.Object) error {
	hashers := kube.NewHashers(nil)
	var err error
	if s.ID.Kind == input.KindSecret {
		if hashers, err = r.hashers(ctx, own); err != nil {
			return err
		}
	}
	if _, measured := hashers.Kinds[s.ID.Kind]; !measured {
		s.Hidden = cluster.NoKey
		return nil
	}
	s.Now, err = hashers.Slim(o, settings.Native{})
	if err == nil {
		r.findKeys(ctx, s)
	}
	return err
}

// mostKeySets bounds the workloads that are read because of the keys that they use.
const mostKeySets = 8

// findKeys finds the sets of keys that workloads use. A version on record has only a digest of their
// names, so one workload is read for each set. Most versions cover all keys, and need no request.
func (r *Reader) findKeys(ctx context.Context, s *Source) {
	s.Keys = []fingerprint.Keys{fingerprint.AllKeys()}
	users := map[string]kube.Key{}
	for key, entry := range s.Fleet.Entries {
		version := entry.Inputs[s.ID].Version
		if now, _ := s.now(version); now.IsZero() && s.isUser(key, &entry) {
			users[version.Basis] = key
		}
	}
	if len(users) > mostKeySets {
		return
	}
	for _, key := range users {
		kind, found := kindAmong(s.Kinds, key)
		if !found {
			continue
		}
		w, _, err := cluster.ReadWorkload(ctx, r.Client, settings.Native{}, kind, client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
		if err != nil {
			continue // the version isn't known
		}
		for _, ref := range w.Refs {
			if ref.Source == s.ID {
				s.Keys = append(s.Keys, ref.Keys)
			}
		}
	}
}
