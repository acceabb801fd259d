// Package fleet is a control plane with 5,000 workloads and the built controller that follows
// them, for benchmarks of what users see.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/figures"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

const (
	// Workloads is how many there are.
	Workloads  = 5_000
	namespaces = 10
	// Held is how many of them wait.
	Held = 500
	// Own is the namespace of the controller.
	Own = "lockstep-system"
)

// Fleet is the control plane, its workloads and the built program.
type Fleet struct {
	Plane  *labtest.Cluster
	Config *rest.Config
	Client client.Client
	// Binary is the built program, and Dir a directory that goes with the fleet.
	Binary, Dir string

	controller *process.Process
}

// Open starts a control plane and builds the program. The name is that of the benchmark.
func Open(ctx context.Context, name string) (*Fleet, error) {
	f := &Fleet{}
	var err error
	if f.Dir, err = os.MkdirTemp("", "lockstep-bench-"+name+"-"); err != nil {
		return nil, err
	}
	if f.Plane, err = labtest.Start(ctx, labtest.Options{Progress: os.Stderr}); err != nil {
		return nil, err
	}
	if err := f.connect(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fleet) connect(ctx context.Context) error {
	var err error
	if f.Config, err = clientcmd.BuildConfigFromFlags("", f.Plane.Kubeconfig()); err != nil {
		return err
	}
	f.Config.QPS = -1
	if f.Client, err = client.New(f.Config, client.Options{}); err != nil {
		return err
	}
	root, err := program.Root()
	if err != nil {
		return err
	}
	f.Binary = filepath.Join(f.Dir, "lockstep")
	build := exec.CommandContext(ctx, "go", "build", "-o", f.Binary, "./cmd/lockstep")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build lockstep: %w\n%s", err, out)
	}
	return nil
}

// Close ends what was started.
func (f *Fleet) Close() error {
	var err error
	if f.controller != nil {
		err = f.controller.Kill()
	}
	return errors.Join(err, f.Plane.Stop(), os.RemoveAll(f.Dir))
}

// Fill creates the workloads, waits until they are followed, and makes some of them wait.
func (f *Fleet) Fill(ctx context.Context) error {
	if err := f.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Own}}); err != nil {
		return err
	}
	for n := range namespaces {
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace(n)}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(n), Name: "app"}, Data: map[string]string{"level": "1"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(n), Name: "held"}, Data: map[string]string{"level": "1"}},
		} {
			if err := f.Client.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	if err := figures.CreateAll(ctx, f.Client, 0, Workloads, func(i int) client.Object { return Deployment(i) }); err != nil {
		return err
	}
	var err error
	if f.controller, err = process.Start(process.Spec{
		Path: f.Binary, Env: os.Environ(),
		Args: []string{
			"controller", "--kubeconfig", f.Plane.Kubeconfig(), "--own-namespace", Own,
			"--metrics-addr", "0", "--probe-addr", "0", "--quiet", "1s", "--log-level", "error",
		},
	}); err != nil {
		return err
	}
	if err := f.await(ctx, func(on ledger.Stored) bool { return len(on.Entries) == Workloads }); err != nil {
		return err
	}
	for n := range namespaces {
		changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(n), Name: "held"}, Data: map[string]string{"level": "2"}}
		if err := f.Client.Update(ctx, changed); err != nil {
			return err
		}
	}
	if err := f.await(ctx, func(on ledger.Stored) bool {
		waiting := 0
		for _, e := range on.Entries {
			if e.Decision.Reason == input.Held {
				waiting++
			}
		}
		return waiting == Held
	}); err != nil {
		return err
	}
	return f.rest(ctx)
}

// rest waits until the controller manager has seen every Deployment: until then it keeps the
// machine busy.
func (f *Fleet) rest(ctx context.Context) error {
	for {
		all := &appsv1.DeploymentList{}
		if err := f.Client.List(ctx, all); err != nil {
			return err
		}
		if !slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool { return d.Status.ObservedGeneration < d.Generation }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(3 * time.Second):
		}
	}
}

// await waits until the record fulfils a condition.
func (f *Fleet) await(ctx context.Context, done func(ledger.Stored) bool) error {
	deadline := time.Now().Add(10 * time.Minute)
	for {
		on, err := ledger.ReadAll(ctx, f.Client, client.ObjectKey{Namespace: Own, Name: "lockstep-state"}, "")
		switch {
		case err != nil:
			return err
		case done(on):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the record has %d workloads, and not what was waited for", len(on.Entries))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// Namespace is the name of one of them.
func Namespace(n int) string { return fmt.Sprint("team-", n) }

// Deployment uses one ConfigMap; every tenth is held.
func Deployment(i int) *appsv1.Deployment {
	labels := map[string]string{"app": fmt.Sprint("app-", i)}
	annotations, source := map[string]string{settings.Reload: "auto"}, "app"
	if i%(Workloads/Held) == 0 {
		annotations[settings.Hold], source = "release freeze", "held"
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(i / (Workloads / namespaces)), Name: fmt.Sprint("app-", i), Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "registry.example/app:1",
					EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: source}}}},
				}}},
			},
		},
	}
}
