package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// ReadWorkload reads one workload from the API server, with the template that it borrows and the
// last writer of that template.
func ReadWorkload(ctx context.Context, c client.Reader, words settings.Vocabulary, kind kube.Kind, at client.ObjectKey) (*kube.Workload, kube.Authors, error) {
	v := NewView(kube.Hashers{})
	authors, err := v.readWorkload(ctx, c, words, kind, at)
	if err != nil {
		return nil, kube.Authors{}, err
	}
	w, _ := v.Workload(keyOf(kind, at))
	return w, authors, nil
}

// readWorkload adds a workload and the lender of its template. It returns the authors of
// that template.
func (v *View) readWorkload(ctx context.Context, c client.Reader, words settings.Vocabulary, kind kube.Kind, at client.ObjectKey) (kube.Authors, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind.GroupVersionKind)
	if err := c.Get(ctx, at, o); err != nil {
		return kube.Authors{}, fmt.Errorf("read %s/%s in namespace %s: %w", kind.Name(), at.Name, at.Namespace, err)
	}
	w, err := kube.SlimWorkload(kind, o, words)
	if err != nil {
		return kube.Authors{}, err
	}
	w.First(mirror.Arrival{})
	v.PutWorkload(w)
	if w.Borrows == (kube.Key{}) {
		return kube.AuthorsOf(kind, o), nil
	}
	lender, err := kindOf(w.Borrows)
	if err != nil {
		return kube.Authors{}, err
	}
	return v.readWorkload(ctx, c, words, lender, client.ObjectKey{Namespace: at.Namespace, Name: w.Borrows.Name})
}

func keyOf(kind kube.Kind, at client.ObjectKey) kube.Key {
	return kube.Key{GroupKind: kind.GroupKind(), Namespace: at.Namespace, Name: at.Name}
}

// ReadTemplate reads the pod template that a workload's pods are made from.
func ReadTemplate(ctx context.Context, c client.Reader, w *kube.Workload) (*corev1.PodTemplateSpec, error) {
	at, o := client.ObjectKey{Namespace: w.Key.Namespace, Name: w.Target.Name}, w.Target.Kind.NewObject()
	if err := c.Get(ctx, at, o); err != nil {
		return nil, fmt.Errorf("read %s/%s in namespace %s: %w", w.Target.Kind.Name(), at.Name, at.Namespace, err)
	}
	return w.Target.Kind.PodTemplate(o)
}

// ReadSource reads a ConfigMap or Secret. Its content must only be digested.
func ReadSource(ctx context.Context, c client.Reader, namespace string, id input.ID) (client.Object, error) {
	var o client.Object = &corev1.ConfigMap{}
	if id.Kind == input.KindSecret {
		o = &corev1.Secret{}
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: id.Name}, o); err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return o, nil
}

// kindOf is the kind of a workload that lends its template; only default kinds can lend.
func kindOf(key kube.Key) (kube.Kind, error) {
	for _, k := range kube.Kinds() {
		if k.GroupKind() == key.GroupKind {
			return k, nil
		}
	}
	return kube.Kind{}, fmt.Errorf("%s cannot lend a template", key)
}
