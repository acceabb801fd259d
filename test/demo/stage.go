package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const (
	// namespace of the application.
	namespace = "shop"
	// ownNamespace is where Lockstep keeps what it remembers.
	ownNamespace = "lockstep-system"
	// deployment is the application.
	deployment = "web"
	// workload is how Lockstep's log names it.
	workload = "Deployment/" + namespace + "/" + deployment
	// moment is what the reader gets between two things that happen.
	moment = time.Second
	// patience bounds every wait for something that must happen.
	patience = time.Minute
)

// stage is the control plane, and Lockstep on it.
type stage struct {
	printer *printer
	keep    bool
	binary  string
	quiet   time.Duration
	cluster *labtest.Cluster
	client  client.Client

	lockstep *process.Process
	// flags are further ones of the next Lockstep.
	flags []string
	// registry is there from the chapter on that needs it.
	registry       *registrylab.Server
	registryFolder string
	log            *narrator
	// helmPath is the program, from the chapter on that needs it.
	helmPath string
}

// openStage builds Lockstep and starts a control plane.
func openStage(ctx context.Context, p *printer, o options) (*stage, error) {
	st := &stage{printer: p, keep: o.keep, binary: o.binary, quiet: o.quiet}
	var err error
	if st.binary == "" {
		st.binary, err = buildLockstep(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.line("Starting a Kubernetes control plane: etcd, kube-apiserver, kube-controller-manager.")
	began := time.Now()
	st.cluster, err = labtest.Start(ctx, labtest.Options{Detached: o.keep, Progress: p})
	if err != nil {
		return nil, err
	}
	if st.client, err = newClient(st.cluster.Kubeconfig()); err != nil {
		return nil, errors.Join(err, st.close(ctx))
	}
	p.line(fmt.Sprintf("Kubernetes %s is up after %.1f s. It has no node, so pods stay pending; a rollout shows as a new ReplicaSet.",
		st.cluster.Version(), time.Since(began).Seconds()))
	return st, nil
}

func newClient(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the control plane: %w", err)
	}
	return client.New(config, client.Options{})
}

// buildLockstep compiles the product, so that the story is about this checkout.
func buildLockstep(ctx context.Context) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(root, "bin", "lockstep")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X main.version="+version(ctx, root), "-o", file, "./cmd/lockstep")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lockstep: %w\n%s", err, out)
	}
	return file, nil
}

// version is what the Makefile would say.
func version(ctx context.Context, root string) string {
	if v := os.Getenv("VERSION"); v != "" {
		return v
	}
	describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	describe.Dir = root
	out, err := describe.Output()
	if err != nil {
		return "dev"
	}
	return string(out[:len(out)-1])
}

// close ends everything that was started. With keep it leaves the control plane,
// unless the reader interrupted the story, and says how to go on.
func (st *stage) close(ctx context.Context) error {
	err := errors.Join(st.stopLockstep(), st.closeRegistry())
	if st.keep && ctx.Err() == nil {
		st.farewell()
		return err
	}
	return errors.Join(err, st.cluster.Stop())
}

func (st *stage) farewell() {
	kubeconfig := st.cluster.Kubeconfig()
	for _, line := range []string{
		"", "The control plane stays up. Lockstep is stopped; run it in this terminal, and play in another one:", "",
		"    export KUBECONFIG=" + kubeconfig,
		"    bin/lockstep controller --leader-elect=false", "",
		"    export KUBECONFIG=" + kubeconfig,
		"    kubectl -n " + namespace + " edit configmap web-settings", "",
		"End the control plane with: bin/lab down " + kubeconfig,
	} {
		st.printer.line(line)
	}
}

// startLockstep runs the controller and waits until it follows the cluster.
func (st *stage) startLockstep(ctx context.Context) error {
	st.log = newNarrator(st.printer)
	p, err := process.Start(process.Spec{
		Path: st.binary,
		Args: append([]string{
			"controller", "--kubeconfig", st.cluster.Kubeconfig(), "--own-namespace", ownNamespace,
			"--leader-elect=false", "--metrics-addr", "0", "--probe-addr", "0",
			"--quiet", st.quiet.String(), "--log-format", "json", "--log-level", "debug",
		}, st.flags...),
		Env:    cleanEnvironment(),
		Stderr: st.log,
	})
	if err != nil {
		return err
	}
	st.lockstep = p
	return st.decided(ctx, 0, "")
}

// decided waits until Lockstep has decided something about the application, after
// a mark in its log: the verb, or anything when that is empty.
func (st *stage) decided(ctx context.Context, mark int, verb string) error {
	ended := false
	err := eventually(ctx, func(context.Context) (bool, string) {
		select {
		case <-st.lockstep.Done():
			ended = true
			return true, ""
		default:
			return st.log.hasDecision(mark, verb), "lockstep did not decide to " + verb + " " + deployment + "; the last line of its log: " + st.log.last()
		}
	})
	if ended {
		return fmt.Errorf("lockstep ended with exit code %d; the last line of its log: %s", st.lockstep.ExitCode(), st.log.last())
	}
	return err
}

// cleanEnvironment keeps the reader's own LOCKSTEP_ variables out of the story.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return len(variable) > 9 && variable[:9] == "LOCKSTEP_"
	})
}

// stopLockstep ends the controller as Kubernetes would.
func (st *stage) stopLockstep() error {
	p := st.lockstep
	if p == nil {
		return nil
	}
	st.lockstep = nil
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Done():
		if code := p.ExitCode(); code != 0 {
			return fmt.Errorf("lockstep was told to stop and ended with exit code %d; the last line of its log: %s", code, st.log.last())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("lockstep does not end within %s of SIGTERM", patience), p.Kill())
	}
}

// create makes the objects of a manifest: YAML documents.
func (st *stage) create(ctx context.Context, manifests ...string) error {
	for _, manifest := range manifests {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if err := st.client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// patch changes an object of the application by a JSON merge patch.
func (st *stage) patch(ctx context.Context, o client.Object, name, change string) error {
	o.SetNamespace(namespace)
	o.SetName(name)
	return st.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(change)))
}

// revision is one ReplicaSet of the Deployment.
type revision struct {
	number int
	name   string
	// inputs are the versions that its template shows.
	inputs string
}

// revisions lists the Deployment's ReplicaSets, oldest first.
func (st *stage) revisions(ctx context.Context) ([]revision, error) {
	list := &appsv1.ReplicaSetList{}
	if err := st.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	var found []revision
	for i := range list.Items {
		rs := &list.Items[i]
		if owner := metav1.GetControllerOf(rs); owner == nil || owner.Name != deployment {
			continue
		}
		number, err := strconv.Atoi(rs.Annotations["deployment.kubernetes.io/revision"])
		if err != nil {
			return nil, fmt.Errorf("read the revision of ReplicaSet %s: %w", rs.Name, err)
		}
		found = append(found, revision{number, rs.Name, rs.Spec.Template.Annotations[settings.Inputs]})
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// settled waits until the Deployment controller has acted on the Deployment as
// it is now; after that, its ReplicaSets are all there are.
func (st *stage) settled(ctx context.Context) error {
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		if err := st.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, d); err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation, "the Deployment controller has not seen the Deployment's latest generation"
	})
}
