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
	stored := storageKey(key)
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shardName(name, stored)}, cm)
	switch {
	case apierrors.IsNotFound(err):
		return record.Entry{}, false, nil
	case err != nil:
		return record.Entry{}, false, fmt.Errorf("read the record of %s: %w", key, err)
	}
	e, err := record.Decode(cm.Data[stored])
	return e, err == nil && e.ID == key.ID(), nil
}
