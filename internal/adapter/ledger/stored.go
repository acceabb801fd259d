package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// ReadEntry reads the entry of one workload, for a one-shot command. It is false when there is
// no readable entry.
func ReadEntry(ctx context.Context, c client.Reader, namespace, name string, key kube.Key) (record.Entry, bool, error) {
	e, found, err := NewReading(c, namespace, name).Entry(ctx, key)
	return e, found && !e.TooNew, err
}

// Reading reads the entries of several workloads, and each part of the record once.
type Reading struct {
	client          client.Reader
	namespace, name string
	parts           map[string]map[string]string
}

// NewReading reads the record in the namespace, in ConfigMaps with this name prefix.
func NewReading(c client.Reader, namespace, name string) *Reading {
	return &Reading{client: c, namespace: namespace, name: name, parts: map[string]map[string]string{}}
}

// Entry is the entry of one workload. For an entry that a newer program wrote it only sets
// TooNew.
func (r *Reading) Entry(ctx context.Context, key kube.Key) (record.Entry, bool, error) {
	text, err := r.text(ctx, storageKey(key))
	if err != nil {
		return record.Entry{}, false, fmt.Errorf("read the record of %s: %w", key, err)
	}
	if record.IsTooNew(text) {
		return record.Entry{Unstored: record.Unstored{TooNew: true}}, true, nil
	}
	e, err := record.Decode(text)
	return e, err == nil && e.ID == key.ID(), nil
}

// Failure returns the workloads that failed with a version.
func (r *Reading) Failure(ctx context.Context, c input.Change) (record.Failure, error) {
	key := failureKey(record.Published(c))
	text, err := r.text(ctx, key)
	if err != nil {
		return record.Failure{}, fmt.Errorf("read the record of %s: %w", c.ID, err)
	}
	_, f, _ := parseFailure(key, text)
	return f, nil
}

// text is the text of a key, empty without one.
func (r *Reading) text(ctx context.Context, stored string) (string, error) {
	part := shardName(r.name, stored)
	data, known := r.parts[part]
	if !known {
		cm := &corev1.ConfigMap{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: part}, cm)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		data = cm.Data
		r.parts[part] = data
	}
	return data[stored], nil
}

// Stored is a whole record, as a command reads it.
type Stored struct {
	// Entries are the readable ones, and those that are too new, without their inputs.
	Entries map[kube.Key]record.Entry
	// Failures are the versions with which workloads failed, as record.Published names them. Those
	// that all namespaces share are there whichever namespace was asked for.
	Failures map[input.Change]record.Failure
	// Version is that of the controller that wrote last, empty when unknown.
	Version string
	// Found is true when there is a record at all.
	Found bool
	// Written is when the controller last wrote each of the record's ConfigMaps.
	Written map[string]time.Time
	// Used is how much space of each ConfigMap is taken, in all namespaces.
	Used []Used
}

// ShardOf is the name of the ConfigMap for a workload's entry, in a record of that name.
func ShardOf(name string, key kube.Key) string { return shardName(name, storageKey(key)) }

// ReadAll reads the record of the workloads in a namespace, or in all when it is empty.
func ReadAll(ctx context.Context, c client.Reader, at client.ObjectKey, namespace string) (Stored, error) {
	all := Stored{Entries: map[kube.Key]record.Entry{}, Failures: map[input.Change]record.Failure{}, Written: map[string]time.Time{}}
	var newest time.Time
	for o, err := range pages.Items(ctx, c, &corev1.ConfigMapList{}, client.InNamespace(at.Namespace), client.MatchingLabels{settings.StateLabel: "true"}) {
		if err != nil {
			return Stored{}, fmt.Errorf("read the record in namespace %s: %w", at.Namespace, err)
		}
		cm := o.(*corev1.ConfigMap)
		if !strings.HasPrefix(cm.Name, at.Name+"-") {
			continue
		}
		all.Found = true
		written := kube.WrittenBy(cm, kube.FieldManager)
		all.Written[cm.Name] = written
		if !written.Before(newest) {
			newest, all.Version = written, cm.Annotations[settings.Version]
		}
		all.Used = append(all.Used, used(cm.Name, cm.Data))
		all.add(cm.Data, namespace)
	}
	return all, nil
}

// add reads one shard. It skips texts that are neither an entry nor a newer program's: they
// don't belong to a workload, or the controller reports them.
func (s Stored) add(data map[string]string, namespace string) {
	for stored, text := range data {
		o, ok := ownerOf(stored, text)
		if of, f, isFailure := parseFailure(stored, text); isFailure && (namespace == "" || of.IsShared() || o.namespace == namespace) {
			s.Failures[of] = f
			continue
		}
		if !ok || namespace != "" && o.namespace != namespace {
			continue
		}
		if record.IsTooNew(text) {
			parts := strings.Split(stored, "_")
			s.Entries[kube.Key{GroupKind: o.GroupKind, Namespace: o.namespace, Name: parts[len(parts)-1]}] = record.Entry{Unstored: record.Unstored{TooNew: true}}
			continue
		}
		e, err := record.Decode(text)
		if err != nil {
			continue
		}
		if key, err := kube.ParseID(e.ID); err == nil {
			s.Entries[key] = e
		}
	}
}
