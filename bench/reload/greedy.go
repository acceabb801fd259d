package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// greedyNamespace belongs to the tenant that causes too much load.
const greedyNamespace = "greedy"

// greedy is the tenant that attacks, or that writes the same without an effect.
type greedy struct {
	attack

	world   *world
	plane   *plane
	hostile bool
}

// configName is long where comparing it should take long.
func (g *greedy) configName(i int) string {
	return fmt.Sprintf("%s-%03d", strings.Repeat("a", max(1, g.letters)), i)
}

func greedyApp(i int) string { return fmt.Sprint("app-", i) }

// annotations are those of the attack. In a control run their keys mean nothing to the program.
func (g *greedy) annotations(of map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range of {
		all[g.key(key)] = g.plane.places().Replace(value)
	}
	return all
}

func (g *greedy) key(key string) string {
	if g.hostile {
		return key
	}
	return strings.Replace(key, "lockstep.dev/", "example.com/", 1)
}

func (g *greedy) populate(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: greedyNamespace}}
	if _, err := g.world.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := parallel(ctx, g.configs, func(ctx context.Context, i int) error {
		about := metav1.ObjectMeta{Name: g.configName(i), Annotations: g.annotations(g.onConfigs)}
		config := &corev1.ConfigMap{ObjectMeta: about, Data: map[string]string{"key": "0"}}
		if g.hostile && g.shape.config != nil {
			g.shape.config(i, config)
		}
		_, err := g.world.client.CoreV1().ConfigMaps(greedyNamespace).Create(ctx, config, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return parallel(ctx, g.apps, g.makeApp)
}

// makeApp makes a Deployment with its old revisions.
func (g *greedy) makeApp(ctx context.Context, i int) error {
	app := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: greedyApp(i), Annotations: g.annotations(g.onApps)},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), RevisionHistoryLimit: new(int32(100)),
			Selector: &metav1.LabelSelector{MatchLabels: g.labels(i)}, Template: g.template(i, "current"),
		},
	}
	if g.hostile && g.shape.app != nil {
		g.shape.app(i, app)
		app.Annotations = g.annotations(app.Annotations)
	}
	made, err := g.world.client.AppsV1().Deployments(greedyNamespace).Create(ctx, app, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for n := range g.revisions {
		if err := g.makeRevision(ctx, made, i, n); err != nil {
			return err
		}
	}
	return nil
}

func (g *greedy) makeRevision(ctx context.Context, app *appsv1.Deployment, i, n int) error {
	hash := fmt.Sprint("old", n)
	template := g.template(i, hash)
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	revision := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: app.Name + "-" + hash, Labels: template.Labels,
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(n + 1)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, appsv1.SchemeGroupVersion.WithKind(kindDeployment))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	if g.hostile && g.shape.revision != nil {
		g.shape.revision(n, revision)
	}
	_, err := g.world.client.AppsV1().ReplicaSets(greedyNamespace).Create(ctx, revision, metav1.CreateOptions{})
	return err
}

// labels are the same for all Deployments if they select each other's revisions.
func (g *greedy) labels(i int) map[string]string {
	if g.revisions > 0 {
		i = 0
	}
	return map[string]string{"app": greedyApp(i)}
}

func (g *greedy) template(i int, about string) corev1.PodTemplateSpec {
	template := (&workload{}).podTemplate()
	template.Labels = g.labels(i)
	env := []corev1.EnvVar{{Name: "ABOUT", Value: greedyApp(i) + " " + about}}
	if g.bytes > 0 {
		env = append(env, corev1.EnvVar{Name: "FAT", Value: g.world.text.cut(i, g.bytes)})
	}
	template.Spec.Containers[0].Env = env
	return template
}

// keepBusy writes to the tenant's objects until the context ends.
func (g *greedy) keepBusy(ctx context.Context) error {
	for i := 0; sleep(ctx, 50*time.Millisecond) == nil; i++ {
		if err := g.write(ctx, i); err != nil {
			return fmt.Errorf("write as the greedy tenant: %w", err)
		}
	}
	return nil
}

// write changes the content of a ConfigMap or the settings of a Deployment, in turn.
func (g *greedy) write(ctx context.Context, i int) error {
	var err error
	if g.configs > 0 && (g.apps == 0 || i%2 == 0) {
		body := fmt.Appendf(nil, `{"data":{"key":"changed %d"}}`, i)
		_, err = g.world.client.CoreV1().ConfigMaps(greedyNamespace).Patch(ctx, g.configName(i/2%g.configs), types.MergePatchType, body, metav1.PatchOptions{})
	} else {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%dms"}}}`, g.key("lockstep.dev/quiet"), i)
		_, err = g.world.client.AppsV1().Deployments(greedyNamespace).Patch(ctx, greedyApp(i/2%g.apps), types.MergePatchType, body, metav1.PatchOptions{})
	}
	return err
}
