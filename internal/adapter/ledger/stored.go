package ledger

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// ReadEntry reads what is on record of one workload, for a command that follows nothing.
// It is false when there is nothing, or nothing that can be read.
func ReadEntry(ctx context.Context, c client.Reader, namespace, name string, key kube.Key) (record.Entry, bool, error) {
	e, found, err := NewReading(c, namespace, name).Entry(ctx, key)
	return e, found && !e.TooNew, err
}

// Reading reads what is on record of several workloads, each part of the record once.
type Reading struct {
	client          client.Reader
	namespace, name string
	parts           map[string]map[string]string
}

// NewReading reads the record that is in the namespace, in ConfigMaps whose names begin so.
func NewReading(c client.Reader, namespace, name string) *Reading {
	return &Reading{client: c, namespace: namespace, name: name, parts: map[string]map[string]string{}}
}

// Entry is what is on record of one workload. Of an entry that a newer program wrote only
// that is known.
func (r *Reading) Entry(ctx context.Context, key kube.Key) (record.Entry, bool, error) {
	stored := storageKey(key)
	part := shardName(r.name, stored)
	data, known := r.parts[part]
	if !known {
		cm := &corev1.ConfigMap{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: part}, cm)
		if err != nil && !apierrors.IsNotFound(err) {
			return record.Entry{}, false, fmt.Errorf("read the record of %s: %w", key, err)
		}
		data = cm.Data
		r.parts[part] = data
	}
	if record.IsTooNew(data[stored]) {
		return record.Entry{TooNew: true}, true, nil
	}
	e, err := record.Decode(data[stored])
	return e, err == nil && e.ID == key.ID(), nil
}
