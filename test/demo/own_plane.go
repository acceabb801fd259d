package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// ownPlane is a control plane that the story starts on this machine.
type ownPlane struct {
	options labtest.Options
	cluster *labtest.Cluster
}

// chooseOwnPlane checks the programs that the reader provides, before anything is built.
func chooseOwnPlane(ctx context.Context, o options) (*ownPlane, error) {
	plane := &ownPlane{}
	if o.downloaded != "" {
		found, err := program.ReadDownloaded(ctx, o.downloaded)
		if err != nil {
			return nil, notPlayedError{err}
		}
		plane.options.Downloaded = found
	}
	return plane, nil
}

func (o *ownPlane) open(ctx context.Context, st *stage) error {
	o.options.Detached, o.options.Progress = st.keep, st.printer
	programs := "etcd, kube-apiserver, kube-controller-manager"
	if o.options.Downloaded != nil {
		programs = "what is in " + program.DownloadedEnv
	}
	st.printer.line("Starting a Kubernetes control plane: " + programs + ".")
	began := time.Now()
	var err error
	if o.cluster, err = labtest.Start(ctx, o.options); err != nil {
		return err
	}
	st.kubeconfig, st.dir = o.cluster.Kubeconfig(), o.cluster.Dir()
	st.namespace, st.ownNamespace = "shop", "lockstep-system"
	shows := "It has no node, so pods stay pending; a rollout shows as a new ReplicaSet"
	if !o.cluster.HasControllers() {
		shows = "It has no kube-controller-manager, so there are no ReplicaSets and no pods; a rollout shows as a new pod template"
	}
	st.printer.line(fmt.Sprintf("Kubernetes %s is up after %.1f s. %s.", o.cluster.Version(), time.Since(began).Seconds(), shows))
	config, err := clientcmd.BuildConfigFromFlags("", st.kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the control plane: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return err
	}
	st.client = c
	if !o.cluster.HasControllers() {
		if st.templates, err = watchTemplates(ctx, c, st.namespace); err != nil {
			return err
		}
	}
	for _, name := range []string{st.namespace, st.ownNamespace} {
		namespace := &corev1.Namespace{}
		namespace.Name = name
		if err := st.client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// canaries adds a node on which pods seem to run, Argo Rollouts and Helm. The reader
// does not wait for them before the first chapter.
func (o *ownPlane) canaries(ctx context.Context, st *stage) (helm string, err error) {
	st.printer.line("Adding " + o.lacking() + ", which are built when they are missing.")
	began := time.Now()
	builder, err := program.NewBuilder(st.printer)
	if err != nil {
		return "", err
	}
	built, err := builder.Build(ctx, program.Helm)
	if err != nil {
		return "", err
	}
	if err := o.cluster.Add(ctx, labtest.ArgoRollouts); err != nil {
		return "", err
	}
	// After Argo's kinds, which a running garbage collector would discover late.
	if err := o.cluster.AddControllers(ctx); err != nil {
		return "", err
	}
	if err := o.cluster.Add(ctx, labtest.KWOK); err != nil {
		return "", err
	}
	st.printer.line(fmt.Sprintf("They are there after %.1f s. Pods now seem to run.", time.Since(began).Seconds()))
	return built[program.Helm].Path, nil
}

func (o *ownPlane) lacking() string {
	if o.cluster.HasControllers() {
		return "a fake node (KWOK), Argo Rollouts and Helm"
	}
	return "kube-controller-manager, a fake node (KWOK), Argo Rollouts and Helm"
}

// pods describes what a reader sees of pods after the story.
func (o *ownPlane) pods() string {
	switch {
	case !o.cluster.HasControllers():
		return "It has no kube-controller-manager, so a rollout only changes the pod template and never finishes."
	case !o.cluster.Has(labtest.KWOK):
		return "It has no node, so pods stay pending and rollouts don't finish."
	}
	return "Its node is a fake one (KWOK): pods seem to run."
}

func (o *ownPlane) farewell(st *stage) []string {
	return []string{
		"", "The control plane stays up. " + o.pods(), "Lockstep is stopped: until you start it, its states are estimates. Run it in this terminal, and change something in another one:", "",
		"    export KUBECONFIG=" + st.kubeconfig,
		"    bin/lockstep controller", "",
		"    export KUBECONFIG=" + st.kubeconfig,
		"    kubectl -n " + st.namespace + " edit configmap web-settings", "",
		"End the control plane with: bin/lab down " + st.kubeconfig,
		"See it in your browser with: bin/lockstep ui --kubeconfig " + st.kubeconfig + " -n " + st.namespace,
	}
}

func (o *ownPlane) close(st *stage, keep bool) error {
	if st.templates != nil {
		st.templates.watch.Stop()
	}
	if keep || o.cluster == nil {
		return nil
	}
	return o.cluster.Stop()
}
