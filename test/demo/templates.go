package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// templates are the Deployment's templates so far, for a control plane without a Deployment
// controller, where no ReplicaSet shows them. The API server's watch reports every change.
// (The Deployment's generation does not count them: a changed annotation raises it too.)
type templates struct {
	watch watch.Interface

	mu    sync.Mutex
	had   []revision
	last  *appsv1.Deployment
	ended bool
}

// watchTemplates starts before the Deployment exists.
func watchTemplates(ctx context.Context, c client.WithWatch, namespace string) (*templates, error) {
	w, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch the Deployment: %w", err)
	}
	t := &templates{watch: w}
	go func() {
		for event := range w.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && d.Name == deployment {
				t.see(d)
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ended = true
	}()
	return t, nil
}

// see records a template that differs from the previous one.
func (t *templates) see(d *appsv1.Deployment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !equality.Semantic.DeepEqual(t.last.Spec.Template, d.Spec.Template) {
		number := len(t.had) + 1
		t.had = append(t.had, revision{number, fmt.Sprint("template-", number), d.Spec.Template.Annotations[settings.Inputs]})
	}
	t.last = d
}

// revisions waits until the watch has reported the current Deployment.
func (t *templates) revisions(ctx context.Context, now *appsv1.Deployment) ([]revision, error) {
	var had []revision
	err := eventually(ctx, func(context.Context) (bool, string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		had = t.had
		return t.ended || t.last != nil && t.last.ResourceVersion == now.ResourceVersion, "the watch does not tell of the Deployment as it is"
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errors.New("the watch of the Deployment ended")
	}
	return had, err
}
