package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkoutManifest is an application whose ConfigMap carries its content in its
// name: "settings-red", "settings-blue".
func checkoutManifest(color string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec:
      containers:
      - name: checkout
        image: registry.example/checkout:1
        envFrom:
        - configMapRef: {name: settings-` + color + `}
`
}

func settingsOf(color string) string {
	return `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-` + color + `
  namespace: shop
  labels: {lockstep.dev/revisioned: "true"}   # its name carries its content
immutable: true
data: {COLOR: ` + color + `}
`
}

// ownConfiguration: each ReplicaSet keeps the ConfigMap it was started with, and
// Kubernetes removes both together.
func ownConfiguration(ctx context.Context, s *story) error {
	if err := s.say(ctx, "Another application puts a hash of the content into its ConfigMap's name, so that old pods keep\nthe old one in the middle of a canary. Who removes old ones, and not too early? Label them:"); err != nil {
		return err
	}
	s.show(settingsOf("red"))
	s.line("")
	if err := s.step(ctx, "create configmap/settings-red and deployment/checkout, which uses it", func(ctx context.Context) error {
		return s.create(ctx, settingsOf("red"), checkoutManifest("red"))
	}); err != nil {
		return err
	}
	red, err := s.keeper(ctx, "settings-red")
	if err != nil {
		return err
	}
	if err := s.step(ctx, "deploy another version: configmap/settings-blue, and the Deployment uses that", s.deployBlue); err != nil {
		return err
	}
	if _, err := s.keeper(ctx, "settings-blue"); err != nil {
		return err
	}
	if err := s.say(ctx, "Both are there: a pod of the old ReplicaSet that is replaced now gets its own settings.\nMuch later the old ReplicaSet goes. Nobody deletes a ConfigMap:"); err != nil {
		return err
	}
	if err := s.step(ctx, "delete replicaset/"+red, func(ctx context.Context) error { return s.deleteReplicaSet(ctx, red) }); err != nil {
		return err
	}
	return s.onlyBlueIsLeft(ctx)
}

// keeper waits until a ReplicaSet owns the ConfigMap, and returns its name.
func (s *story) keeper(ctx context.Context, configMap string) (string, error) {
	var owner string
	err := eventually(ctx, func(ctx context.Context) (bool, string) {
		cm := &corev1.ConfigMap{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: configMap}, cm); err != nil {
			return false, err.Error()
		}
		for _, o := range cm.OwnerReferences {
			owner = o.Name
		}
		return owner != "", configMap + " has no owner"
	})
	if err == nil {
		s.good(fmt.Sprintf("configmap/%s belongs to replicaset/%s", configMap, owner))
	}
	return owner, err
}

func (s *story) deployBlue(ctx context.Context) error {
	if err := s.create(ctx, settingsOf("blue")); err != nil {
		return err
	}
	return s.patch(ctx, &appsv1.Deployment{}, "checkout",
		`{"spec":{"template":{"spec":{"containers":[{"name":"checkout","image":"registry.example/checkout:1","envFrom":[{"configMapRef":{"name":"settings-blue"}}]}]}}}}`)
}

func (s *story) deleteReplicaSet(ctx context.Context, name string) error {
	rs := &appsv1.ReplicaSet{}
	rs.SetNamespace(namespace)
	rs.SetName(name)
	return s.client.Delete(ctx, rs)
}

// onlyBlueIsLeft waits until the garbage collector has done its work.
func (s *story) onlyBlueIsLeft(ctx context.Context) error {
	err := eventually(ctx, func(ctx context.Context) (bool, string) {
		list := &corev1.ConfigMapList{}
		if err := s.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"lockstep.dev/revisioned": "true"}); err != nil {
			return false, err.Error()
		}
		var names []string
		for _, cm := range list.Items {
			names = append(names, cm.Name)
		}
		left := strings.Join(names, " ")
		return left == "settings-blue", "the ConfigMaps are: " + left
	})
	if err == nil {
		s.good("Kubernetes removed configmap/settings-red with its ReplicaSet; settings-blue stays")
	}
	return err
}
