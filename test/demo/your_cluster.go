package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// demoLabel marks the namespaces of stories.
	demoLabel      = "app.kubernetes.io/part-of"
	demoLabelValue = "lockstep-demo"
	// deleting bounds the wait for a namespace to be deleted. Kubernetes lets pods end for half
	// a minute, and a slow node may take longer.
	deleting = 3 * time.Minute
)

// yourCluster is the story's own namespace in the cluster of the reader's current context.
type yourCluster struct {
	access
	config    *rest.Config
	client    client.WithWatch
	namespace string
	made      bool
	dir       string
	// helm is the program, and lacks what is missing for the chapter about canaries.
	helm, lacks string
}

// chooseCluster checks the cluster of the current context and asks the reader whether to
// play there. Until the reader agrees, it only reads.
func chooseCluster(ctx context.Context, p *printer, o options) (*yourCluster, error) {
	y, err := findCluster()
	if err != nil {
		return nil, notPlayedError{err}
	}
	found, err := y.look(ctx)
	if err != nil {
		return nil, notPlayedError{fmt.Errorf("context %s, %s: %w", y.context, y.config.Host, err)}
	}
	y.namespace = "lockstep-demo-" + utilrand.String(5)
	y.helm, y.lacks = y.canary(ctx)
	p.line(y.plan(found, o))
	if err := o.agree(ctx, p, "Play it there?"); err != nil {
		return nil, notPlayedError{err}
	}
	return y, nil
}

// plan describes what the story does to the cluster.
func (y *yourCluster) plan(found findings, o options) string {
	end := "At the end, on failure and on Ctrl-C the demo deletes the namespace."
	if o.keep {
		end = "The namespace stays at the end (KEEP). On Ctrl-C the demo deletes it."
	}
	var canary []string
	if o.playsAll() {
		canary = []string{"The last chapter, a canary, runs three pods of docker.io/nginxinc/nginx-unprivileged."}
		if y.lacks != "" {
			canary = []string{"The last chapter, a canary, is left out: " + y.lacks + "."}
		}
	}
	lines := slices.Concat([]string{
		"The story plays on the cluster of your current context:", "",
		"    context     " + y.context,
		"    server      " + y.config.Host + ", Kubernetes " + found.version,
		"    namespace   " + y.namespace + ", which it creates", "",
		"In that namespace it makes a Deployment of two pods, a ConfigMap and a Secret, and for one chapter",
		"twelve Deployments of one pod. The pods have a scheduling gate, so no node runs them.",
	}, canary, []string{
		"Lockstep runs as a process on this machine, with your permissions. It follows that namespace only, and",
		"keeps its key and its record there. The story changes nothing else in the cluster.", end,
	})
	for _, where := range found.installed {
		lines = append(lines, "", "Lockstep is installed here: "+where+". If it watches all namespaces, it rolls out the",
			"demo's workloads too, and a chapter may fail. Let it watch named namespaces meanwhile, or play elsewhere.")
	}
	for _, name := range found.others {
		lines = append(lines, "", "Another demo has the namespace "+name+": it runs, was kept or was killed. To remove what was left:",
			"    "+y.kubectl("delete namespace "+name))
	}
	return strings.Join(append(lines, ""), "\n")
}

func (y *yourCluster) kubectl(command string) string {
	return "kubectl --context " + y.context + " " + command
}

func (y *yourCluster) open(ctx context.Context, st *stage) error {
	var err error
	if y.dir, err = os.MkdirTemp("", "lockstep-demo-"); err != nil {
		return err
	}
	pinned := filepath.Join(y.dir, "context.yaml")
	if err := os.WriteFile(pinned, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: %q}\n", y.context), 0o600); err != nil {
		return err
	}
	st.kubeconfig = strings.Join(append([]string{pinned}, y.files...), string(filepath.ListSeparator))
	st.client, st.dir = y.client, y.dir
	st.namespace, st.ownNamespace, st.scope = y.namespace, y.namespace, []string{"--namespaces", y.namespace}
	st.gated = true
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = y.namespace, map[string]string{demoLabel: demoLabelValue}
	// Ctrl-C must not leave it open whether the namespace was created.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = y.client.Create(ctx, namespace)
	y.made = !apierrors.IsAlreadyExists(err)
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", y.namespace, err)
	}
	st.printer.line("Created namespace " + y.namespace + ". A rollout shows as a new ReplicaSet.")
	return nil
}

func (y *yourCluster) canaries(context.Context, *stage) (helm string, err error) {
	if y.lacks != "" {
		return "", missingError{errors.New(y.lacks)}
	}
	return y.helm, nil
}

func (y *yourCluster) farewell(*stage) []string {
	return []string{
		"", "The namespace stays. Lockstep is stopped: until you start it, its states are estimates. Run it in this terminal, and change something in another one:", "",
		"    bin/lockstep controller --context " + y.context + " --namespaces " + y.namespace + " --own-namespace " + y.namespace, "",
		"    " + y.kubectl("-n "+y.namespace+" edit configmap web-settings"), "",
		"Remove it with: " + y.kubectl("delete namespace "+y.namespace),
		"See it in your browser with: bin/lockstep ui --context " + y.context + " -n " + y.namespace + " --controller-namespace " + y.namespace,
	}
}

// close deletes the namespace and waits until it is gone.
func (y *yourCluster) close(st *stage, keep bool) error {
	err := os.RemoveAll(y.dir)
	if keep || !y.made {
		return err
	}
	st.printer.line("")
	st.printer.line("Deleting namespace " + y.namespace + ". If this is cut short: " + y.kubectl("delete namespace "+y.namespace))
	return errors.Join(err, y.removeNamespace())
}

func (y *yourCluster) removeNamespace() error {
	ctx, cancel := context.WithTimeout(context.Background(), deleting)
	defer cancel()
	for {
		namespace := &corev1.Namespace{}
		err := y.client.Get(ctx, client.ObjectKey{Name: y.namespace}, namespace)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil && namespace.DeletionTimestamp == nil:
			err = y.client.Delete(ctx, namespace)
		}
		if pause(ctx, 200*time.Millisecond) != nil {
			return errors.Join(fmt.Errorf("namespace %s is not gone after %s; its conditions say why: %s",
				y.namespace, deleting, y.kubectl("get namespace "+y.namespace+" -o yaml")), err)
		}
	}
}
