package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkout is the application of this chapter.
const checkout = "checkout"

// checkoutValues are values of charts/app: three pods, a canary of one that waits for a
// promotion, and one ConfigMap.
func checkoutValues(color string) string {
	return `
appName: checkout
replicas: 3
rollout: {preDefinedStrategy: manual-canary-1-pod}   # change one pod and wait
configmaps:
  settings:
    kv_data: {color: ` + color + `}
revisions: {attach: controller}                      # Lockstep, not a Job, attaches
`
}

// ownConfiguration: in the middle of a canary an old pod is replaced and still loads the
// configuration it was started with; much later Kubernetes removes that configuration
// together with its ReplicaSet.
func ownConfiguration(ctx context.Context, s *story) error {
	if err := s.say(ctx, "A canary: one pod gets the new version, and waits for you. Meanwhile a node goes away and an old\npod is replaced. Does it start with the new, perhaps faulty configuration? Not when the ConfigMap's\nname carries its content. charts/app does that:"); err != nil {
		return err
	}
	s.show(checkoutValues("red"))
	s.line("")
	if err := s.addCanaries(ctx); err != nil {
		return err
	}
	c := &canary{story: s}
	for _, play := range []func(context.Context) error{c.install, c.pauses, c.replacement, c.promotion, c.collection} {
		if err := play(ctx); err != nil {
			return err
		}
	}
	return nil
}

// canary is the state of this chapter.
type canary struct {
	*story
	// red and blue are the ConfigMaps; keeper is the first one's ReplicaSet.
	red, blue, keeper string
}

func (c *canary) install(ctx context.Context) error {
	if err := c.deploy(ctx, "helm install checkout charts/app -f values.yaml", "red"); err != nil {
		return err
	}
	var err error
	if c.red, err = c.configMapOf(ctx, "red"); err != nil {
		return err
	}
	if err := c.pods(ctx, map[string]int{c.red: 3}); err != nil {
		if c.gated && ctx.Err() == nil {
			// The Argo Rollouts controller is missing, or no node can pull the image.
			return missingError{fmt.Errorf("the pods of its Rollout do not run: %w", err)}
		}
		return err
	}
	c.keeper, err = c.keeperOf(ctx, c.red)
	return err
}

func (c *canary) pauses(ctx context.Context) error {
	if err := c.deploy(ctx, "change the color to blue in values.yaml, and helm upgrade checkout charts/app -f values.yaml", "blue"); err != nil {
		return err
	}
	var err error
	if c.blue, err = c.configMapOf(ctx, "blue"); err != nil {
		return err
	}
	if _, err := c.keeperOf(ctx, c.blue); err != nil {
		return err
	}
	if err := c.pods(ctx, map[string]int{c.red: 2, c.blue: 1}); err != nil {
		return err
	}
	if err := c.paused(ctx); err != nil {
		return err
	}
	c.good("the canary has one pod and waits for you; Helm has left configmap/" + c.red + " alone")
	return nil
}

// replacement deletes an old pod and checks the pod that replaces it.
func (c *canary) replacement(ctx context.Context) error {
	old, err := c.running(ctx, c.red)
	if err != nil {
		return err
	}
	before := old[0].Name
	if err := c.step(ctx, "delete pod/"+before+", as when its node goes away", func(ctx context.Context) error {
		return c.client.Delete(ctx, &old[0])
	}); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		now, err := c.running(ctx, c.red)
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range now {
			if !slices.ContainsFunc(old, func(o corev1.Pod) bool { return o.UID == pod.UID }) && len(now) == 2 {
				c.good(fmt.Sprintf("pod/%s replaces it and mounts configmap/%s, as before", pod.Name, c.red))
				return true, ""
			}
		}
		return false, before + " was not replaced"
	})
}

func (c *canary) promotion(ctx context.Context) error {
	if err := c.step(ctx, "the canary is fine: kubectl argo rollouts promote checkout", func(ctx context.Context) error {
		return c.client.Status().Patch(ctx, c.rollout(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"pauseConditions":null}}`)))
	}); err != nil {
		return err
	}
	return c.pods(ctx, map[string]int{c.red: 0, c.blue: 3})
}

// collection removes the old ReplicaSet, as its history limit would.
func (c *canary) collection(ctx context.Context) error {
	if err := c.say(ctx, "Much later the old ReplicaSet goes. Lockstep deletes no ConfigMap:"); err != nil {
		return err
	}
	if err := c.step(ctx, "delete replicaset/"+c.keeper, func(ctx context.Context) error {
		rs := &appsv1.ReplicaSet{}
		rs.SetNamespace(c.namespace)
		rs.SetName(c.keeper)
		return c.client.Delete(ctx, rs)
	}); err != nil {
		return err
	}
	err := eventually(ctx, func(ctx context.Context) (bool, string) {
		all, err := c.configMaps(ctx)
		if err != nil {
			return false, err.Error()
		}
		return len(all) == 1 && all[0].Name == c.blue, fmt.Sprintf("there are %d ConfigMaps", len(all))
	})
	if err == nil {
		c.good("Kubernetes removed configmap/" + c.red + " with its ReplicaSet; configmap/" + c.blue + " stays")
	}
	return err
}

// deploy runs Helm, as a user would.
func (c *canary) deploy(ctx context.Context, command, color string) error {
	return c.step(ctx, command, func(ctx context.Context) error {
		return c.helm(ctx, checkoutValues(color), "upgrade", "--install", checkout)
	})
}

func (c *canary) configMaps(ctx context.Context) ([]corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	err := c.client.List(ctx, list, client.InNamespace(c.namespace), client.MatchingLabels{"app": checkout})
	return list.Items, err
}

func (c *canary) configMapOf(ctx context.Context, color string) (string, error) {
	all, err := c.configMaps(ctx)
	for _, cm := range all {
		if cm.Data["color"] == color {
			return cm.Name, nil
		}
	}
	return "", fmt.Errorf("no ConfigMap has the color %s: %w", color, err)
}

// keeperOf waits until a ReplicaSet owns the ConfigMap, and returns its name.
func (c *canary) keeperOf(ctx context.Context, configMap string) (string, error) {
	var owner string
	err := eventually(ctx, func(ctx context.Context) (bool, string) {
		cm := &corev1.ConfigMap{}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: configMap}, cm); err != nil {
			return false, err.Error()
		}
		for _, o := range cm.OwnerReferences {
			owner = o.Name
		}
		return owner != "", configMap + " has no owner"
	})
	if err == nil {
		c.good(fmt.Sprintf("configmap/%s belongs to replicaset/%s", configMap, owner))
	}
	return owner, err
}

// running are the running pods that mount a ConfigMap.
func (c *canary) running(ctx context.Context, configMap string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace), client.MatchingLabels{"app": checkout}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || !mounts(p, configMap)
	}), nil
}

func mounts(p corev1.Pod, configMap string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && s.ConfigMap.Name == configMap
		})
	})
}

// pods waits until so many pods run with each ConfigMap, and reports it.
func (c *canary) pods(ctx context.Context, want map[string]int) error {
	var words []string
	err := eventually(ctx, func(ctx context.Context) (bool, string) {
		words = nil
		all := true
		for _, configMap := range slices.DeleteFunc([]string{c.red, c.blue}, func(name string) bool { return name == "" }) {
			found, err := c.running(ctx, configMap)
			if err != nil {
				return false, err.Error()
			}
			all = all && len(found) == want[configMap]
			words = append(words, fmt.Sprintf("%d with configmap/%s", len(found), configMap))
		}
		return all, "pods: " + strings.Join(words, ", ")
	})
	if err == nil {
		c.good("pods: " + strings.Join(words, ", "))
	}
	return err
}

// paused waits until the canary waits for a promotion.
func (c *canary) paused(ctx context.Context) error {
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		r := c.rollout()
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return false, err.Error()
		}
		reasons, _, _ := unstructured.NestedSlice(r.Object, "status", "pauseConditions")
		return len(reasons) > 0, "the canary does not wait"
	})
}

func (st *stage) rollout() *unstructured.Unstructured {
	r := &unstructured.Unstructured{}
	r.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
	r.SetNamespace(st.namespace)
	r.SetName(checkout)
	return r
}
