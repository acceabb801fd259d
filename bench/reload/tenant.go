package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	groupTenant = "tenant"
	// greedy is the namespace of the tenant that causes too much load.
	greedy = "greedy"
	// greedyObjects is how many Deployments it has, and how many ConfigMaps.
	greedyObjects = 200
)

// tenants are scenarios in which one tenant causes as much load as the API server accepts,
// and another one waits for a rollout.
func tenants() []scenario {
	run := strings.Repeat("a", 120)
	list := make([]string, 64)
	for i := range list {
		list[i] = fmt.Sprintf("configmap/*%s%02d", run, i)
	}
	return []scenario{
		tenant("annotation", "256 KiB of patterns each", strings.Repeat("configmap/*a*,", 18000)),
		tenant("patterns", "64 patterns each that are slow to match", strings.Join(list, ",")),
	}
}

// tenant changes one ConfigMap of a modest tenant again and again, while the greedy one
// writes to its ConfigMaps and Deployments 20 times a second.
func tenant(name, about, annotation string) scenario {
	return scenario{
		name:  groupTenant + "/" + name,
		about: fmt.Sprintf("1 Deployment of one tenant; %d Deployments and ConfigMaps of another, with %s, 20 writes a second there", greedyObjects, about),
		build: func(w *world) { w.addWorkload(kindDeployment, "app", w.configMap("config")) },
		load: func(ctx context.Context, r *trial) error {
			if err := makeGreedy(ctx, r.world.client, annotation); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			var busy sync.WaitGroup
			var failed error
			busy.Go(func() { failed = keepBusy(ctx, r.world.client) })
			err := r.changeAndWait(ctx)
			cancel()
			busy.Wait()
			if err == nil && failed != nil && ctx.Err() == nil {
				err = failed
			}
			return err
		},
	}
}

// changeAndWait changes the one source and waits for its rollout until the time of the load
// is over, and reports the slowest rollout.
func (r *trial) changeAndWait(ctx context.Context) error {
	var slowest time.Duration
	for end := time.Now().Add(r.duration); time.Now().Before(end); {
		if err := r.world.change(ctx, r.world.sources[0]); err != nil {
			return err
		}
		_, changed := r.world.sources[0].lastWrite()
		inStep, err := r.converge(ctx)
		if err != nil {
			return err
		}
		if inStep.IsZero() {
			say("  the rollout after a change did not come")
			return nil
		}
		slowest = max(slowest, inStep.Sub(changed))
	}
	say("  the slowest rollout came %.2f s after its change", slowest.Seconds())
	return nil
}

func greedyConfig(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("a", 240), i) }

func makeGreedy(ctx context.Context, c kubernetes.Interface, annotation string) error {
	_, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: greedy}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", greedy, err)
	}
	return parallel(ctx, greedyObjects, func(ctx context.Context, i int) error {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greedyConfig(i)}, Data: map[string]string{"key": "0"}}
		if _, err := c.CoreV1().ConfigMaps(greedy).Create(ctx, config, metav1.CreateOptions{}); err != nil {
			return err
		}
		app := &workload{kind: kindDeployment, name: fmt.Sprint("app-", i)}
		_, err := c.AppsV1().Deployments(greedy).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: app.name, Annotations: map[string]string{"lockstep.dev/reload": annotation}},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: app.labels()}, Template: app.podTemplate()},
		}, metav1.CreateOptions{})
		return err
	})
}

// keepBusy writes to the greedy tenant's objects until the context ends.
func keepBusy(ctx context.Context, c kubernetes.Interface) error {
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
		var err error
		if i%2 == 0 {
			body := fmt.Appendf(nil, `{"data":{"key":"%d"}}`, i)
			_, err = c.CoreV1().ConfigMaps(greedy).Patch(ctx, greedyConfig(i/2%greedyObjects), types.MergePatchType, body, metav1.PatchOptions{})
		} else {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"lockstep.dev/quiet":"%dms"}}}`, i)
			_, err = c.AppsV1().Deployments(greedy).Patch(ctx, fmt.Sprint("app-", i/2%greedyObjects), types.MergePatchType, body, metav1.PatchOptions{})
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("write as the greedy tenant: %w", err)
		}
	}
}
