package keychain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/answers"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// readTimeout limits the read of a Secret or service account.
	readTimeout = time.Minute
	// readsAtOnce limits concurrent reads, and maxKept the bytes of kept Secrets: a Secret may have
	// 1 MiB, and a namespace many of them.
	readsAtOnce = 8
	maxKept     = 16 << 20
)

// Pods provides the credentials with which pods pull their images. It reads Secrets and service
// accounts on demand and keeps them for a while, so many images of one namespace cost one
// request.
type Pods struct {
	// Only names the Secrets that may be read, in any namespace; empty allows all.
	Only []string

	reader  client.Reader
	keep    time.Duration
	reads   *semaphore.Weighted
	large   *semaphore.Weighted
	objects answers.Cache[client.Object]
}

// NewPods makes a Pods that keeps read objects for at most that long.
func NewPods(r client.Reader, keep time.Duration) *Pods {
	return &Pods{
		reader: r, keep: keep, reads: semaphore.NewWeighted(readsAtOnce), large: semaphore.NewWeighted(1),
		objects: answers.Cache[client.Object]{Timeout: readTimeout, Room: maxKept, Weigh: size},
	}
}

// Account identifies a pod's pull secrets.
type Account struct {
	Namespace, ServiceAccount string
	// Secrets are those that the pod names.
	Secrets []string
}

// String distinguishes accounts: equal ones have the same credentials. It is a digest, because it is
// kept for every image and the names can be long.
func (a Account) String() string {
	if len(a.Secrets) > 0 {
		a.ServiceAccount = ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", a.parts())))
}

func (a Account) parts() []string {
	return append([]string{a.Namespace, a.ServiceAccount}, a.Secrets...)
}

// For returns the source of credentials for such pods.
func (p *Pods) For(a Account) Source { return podSource{p, a} }

type podSource struct {
	pods    *Pods
	account Account
}

// Credentials returns those of the pod's pull secrets or, without any, those of its service
// account.
func (s podSource) Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error) {
	names, err := s.pods.names(ctx, s.account)
	found, unread := PullSecrets{Reader: s.pods, Namespace: s.account.Namespace, Names: names, large: s.pods.large}.Credentials(ctx, repository)
	return found, errors.Join(err, unread)
}

func (p *Pods) names(ctx context.Context, a Account) ([]string, error) {
	if len(a.Secrets) > 0 {
		return a.Secrets, nil
	}
	at := types.NamespacedName{Namespace: a.Namespace, Name: a.ServiceAccount}
	got, err := p.get(ctx, at, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return nil, nil // Its pods do not start without it; its absence doesn't matter for credentials.
	}
	if err != nil {
		return nil, fmt.Errorf("service account %s: %w", at, err)
	}
	return podrefs.PullSecrets(got.(*corev1.ServiceAccount).ImagePullSecrets), nil
}

// Secret implements SecretReader.
func (p *Pods) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	if len(p.Only) > 0 && !slices.Contains(p.Only, name) {
		return nil, fmt.Errorf("it is not read: the controller reads only the pull secrets %s", strings.Join(p.Only, ", "))
	}
	got, err := p.get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &corev1.Secret{})
	if err != nil {
		return nil, err
	}
	return got.(*corev1.Secret), nil
}

// get reads an object once for all concurrent callers, and drops it after a while even if it
// isn't read again.
func (p *Pods) get(ctx context.Context, at types.NamespacedName, into client.Object) (client.Object, error) {
	got, _, err := p.objects.Get(ctx, fmt.Sprintf("%T %s", into, at), func(ctx context.Context) (client.Object, time.Duration, error) {
		if err := p.reads.Acquire(ctx, 1); err != nil {
			return nil, 0, err
		}
		defer p.reads.Release(1)
		if err := p.reader.Get(ctx, at, into); err != nil {
			return nil, min(p.keep, time.Second), err
		}
		return slim(into), p.keep, nil
	})
	return got, err
}

// slim drops everything from an object that isn't about credentials.
func slim(o client.Object) client.Object {
	switch o := o.(type) {
	case *corev1.Secret:
		o.ObjectMeta = metav1.ObjectMeta{}
		maps.DeleteFunc(o.Data, func(key string, _ []byte) bool {
			return key != corev1.DockerConfigJsonKey && key != corev1.DockerConfigKey
		})
	case *corev1.ServiceAccount:
		names := podrefs.PullSecrets(o.ImagePullSecrets)
		*o = corev1.ServiceAccount{ImagePullSecrets: make([]corev1.LocalObjectReference, len(names))}
		for i, name := range names {
			o.ImagePullSecrets[i].Name = name
		}
	}
	return o
}

// size is about how many bytes an object takes.
func size(o client.Object) int {
	sum := 1 << 10
	switch o := o.(type) {
	case *corev1.Secret:
		for _, value := range o.Data {
			sum += len(value)
		}
	case *corev1.ServiceAccount:
		sum += len(o.ImagePullSecrets) * podrefs.MaxName
	}
	return sum
}
