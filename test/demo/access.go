package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// without is the alternative for readers without a suitable cluster.
const without = "or play without a cluster: make demo"

// access is how the reader reaches the cluster.
type access struct {
	context string   // its name
	files   []string // the kubeconfig: the reader's own, which may be more than one file
}

// findings are what the reader must know about the cluster before the story plays there.
type findings struct {
	version string
	// others are namespaces of other stories.
	others []string
	// installed are the Deployments of Lockstep, as "deployment/lockstep in tools".
	installed []string
}

// findCluster finds the cluster of the current context, as kubectl would.
func findCluster() (*yourCluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if raw.CurrentContext == "" {
		return nil, fmt.Errorf("there is no current context in %s: choose one with \"kubectl config use-context NAME\", %s", strings.Join(rules.Precedence, ", "), without)
	}
	y := &yourCluster{access: access{context: raw.CurrentContext}}
	for _, file := range rules.Precedence {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		y.files = append(y.files, absolute)
	}
	if y.config, err = loader.ClientConfig(); err != nil {
		return nil, fmt.Errorf("read context %s: %w", y.context, err)
	}
	// A cluster that answers a small request more slowly is the wrong one.
	y.config.Timeout = 20 * time.Second
	return y, nil
}

// look checks whether the story can be played on the cluster.
func (y *yourCluster) look(ctx context.Context) (findings, error) {
	found := findings{}
	var err error
	if found.version, err = serverVersion(y.config); err != nil {
		return found, err
	}
	if y.client, err = client.NewWithWatch(y.config, client.Options{}); err != nil {
		return found, fmt.Errorf("ask what it serves: %w; choose another context, %s", err, without)
	}
	if err := y.permissions(ctx); err != nil {
		return found, err
	}
	namespaces := &corev1.NamespaceList{}
	// A reader without permission to list namespaces doesn't see others.
	if y.client.List(ctx, namespaces, client.MatchingLabels{demoLabel: demoLabelValue}) == nil {
		for i := range namespaces.Items {
			found.others = append(found.others, namespaces.Items[i].Name)
		}
	}
	controller := installation.Understand(func(arguments []string, _ func(string) (string, bool)) (installation.Configured, bool) {
		return installation.Configured{}, len(arguments) > 0 && arguments[0] == "controller"
	})
	// The same holds for Deployments.
	deployments, _ := controller.Find(ctx, y.client, corev1.NamespaceAll)
	for _, d := range deployments {
		if d.IsActive() {
			found.installed = append(found.installed, "deployment/"+d.Name+" in "+d.Namespace)
		}
	}
	return found, nil
}

func serverVersion(config *rest.Config) (string, error) {
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	info, err := asker.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("the API server gives no answer: %w; start the cluster, choose another context, %s", err, without)
	}
	return checkVersion(info.GitVersion)
}

// checkVersion refuses a Kubernetes that Lockstep does not support.
func checkVersion(text string) (string, error) {
	v, err := utilversion.ParseGeneric(text)
	if err != nil {
		return "", fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	if v.LessThan(utilversion.MustParseGeneric(program.Oldest)) {
		return "", fmt.Errorf("it is Kubernetes %s, and Lockstep supports %s and newer: choose another context, %s", v, program.Oldest, without)
	}
	return v.String(), nil
}

// permissions checks the permissions that the story requires: to create the namespace, and
// there those of its owner.
func (y *yourCluster) permissions(ctx context.Context) error {
	var denied []string
	for _, permission := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "namespaces"},
		{Verb: "delete", Resource: "namespaces"},
		{Verb: "list", Resource: "configmaps", Namespace: "lockstep-demo"},
		{Verb: "create", Resource: "secrets", Namespace: "lockstep-demo"},
		{Verb: "watch", Resource: "secrets", Namespace: "lockstep-demo"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "lockstep-demo"},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: "lockstep-demo"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission}}
		if err := y.client.Create(ctx, review); err != nil {
			return fmt.Errorf("ask what you may do: %w", err)
		}
		if !review.Status.Allowed {
			denied = append(denied, permission.Verb+" "+permission.Resource)
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("you may not %s: choose a context with these permissions, %s", strings.Join(denied, ", "), without)
	}
	return nil
}

// canary finds Helm, and reports what else the chapter about canaries lacks.
func (y *yourCluster) canary(ctx context.Context) (helm, lacks string) {
	var list []string
	kind := (&stage{}).rollout().GroupVersionKind()
	if _, err := y.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		list = append(list, "the cluster has no Argo Rollouts (it serves no "+kind.GroupKind().String()+")")
	}
	nodes := &corev1.NodeList{}
	// Without permission to list nodes, that chapter shows whether pods run.
	if err := y.client.List(ctx, nodes); err == nil && !slices.ContainsFunc(nodes.Items, ready) {
		list = append(list, "the cluster has no node that is ready")
	}
	helm, err := findHelm()
	if err != nil {
		list = append(list, err.Error())
	}
	return helm, strings.Join(list, ", ")
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// findHelm is the reader's own Helm, or the one that the lab has built already: compiling it
// takes minutes.
func findHelm() (string, error) {
	if path, err := exec.LookPath("helm"); err == nil {
		return path, nil
	}
	builder, err := program.NewBuilder(nil)
	if err != nil {
		return "", err
	}
	built, missing, err := builder.Find(program.Helm)
	if err != nil || len(missing) > 0 {
		return "", errors.Join(err, errors.New("there is no helm in PATH"))
	}
	return built[program.Helm].Path, nil
}
