package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/figures"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const (
	namespace = "bench"
	pull      = "pull"
)

// cluster is a control plane with Deployments that follow images, and the built
// controller.
type cluster struct {
	client     client.WithWatch
	plane      *labtest.Cluster
	registry   *registrylab.Server
	controller *process.Process
	dir        string
}

// measureController makes Deployments follow twenty images: first a hundred of them, then
// five thousand.
func measureController(ctx context.Context, server *registrylab.Server, result *Result) (err error) {
	c, err := openCluster(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.deploy(ctx, 0, askers); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := c.awaitPinned(ctx, askers); err != nil {
		return err
	}
	began := time.Now()
	if result.ControllerPolls, err = steady(ctx, server); err != nil {
		return err
	}
	result.ControllerSeconds = time.Since(began).Seconds()
	if err := c.deploy(ctx, askers, manyQuestions); err != nil {
		return err
	}
	if err := c.awaitPinned(ctx, manyQuestions); err != nil {
		return err
	}
	if result.FirstPeakMiB, err = c.peak(); err != nil {
		return err
	}
	return c.restart(ctx, server, result)
}

// restart measures a controller that finds five thousand Deployments pinned.
func (c *cluster) restart(ctx context.Context, server *registrylab.Server, result *Result) error {
	if err := c.controller.Kill(); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	if _, err := steady(ctx, server); err != nil {
		return err
	}
	var err error
	result.PeakMiB, err = c.peak()
	return err
}

func openCluster(ctx context.Context, server *registrylab.Server) (*cluster, error) {
	c := &cluster{registry: server}
	var err error
	if c.dir, err = os.MkdirTemp("", "lockstep-bench-controller-"); err != nil {
		return nil, err
	}
	if c.plane, err = labtest.Start(ctx, labtest.Options{Progress: os.Stderr}); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.plane.Kubeconfig())
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	config.QPS = -1
	if c.client, err = client.NewWithWatch(config, client.Options{}); err != nil {
		return nil, errors.Join(err, c.close())
	}
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pull}, Type: corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, server.Address, auth)},
		},
	} {
		if err := c.client.Create(ctx, o); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *cluster) close() error {
	var err error
	if c.controller != nil {
		err = c.controller.Kill()
	}
	return errors.Join(err, c.plane.Stop(), os.RemoveAll(c.dir))
}

// deploy creates Deployments without pods.
func (c *cluster) deploy(ctx context.Context, from, to int) error {
	return figures.CreateAll(ctx, c.client, from, to, func(i int) client.Object { return c.deployment(i) })
}

func (c *cluster) deployment(i int) *appsv1.Deployment {
	image := fmt.Sprintf("%s/app-%d:1", c.registry.Address, i%images)
	labels := map[string]string{"app": fmt.Sprint("app-", i)}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("app-", i), Annotations: map[string]string{settings.ImagePrefix + "app": image}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ImagePullSecrets: []corev1.LocalObjectReference{{Name: pull}}, Containers: []corev1.Container{{Name: "app", Image: image}},
				},
			},
		},
	}
}

// start builds the controller and runs it, with further flags.
func (c *cluster) start(ctx context.Context, flags ...string) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	binary, authority := filepath.Join(c.dir, "lockstep"), filepath.Join(c.dir, "ca.pem")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/lockstep")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build lockstep: %w\n%s", err, out)
	}
	if err := os.WriteFile(authority, c.registry.CA, 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, "log"))
	if err != nil {
		return err
	}
	c.registry.Counts()
	c.controller, err = process.Start(process.Spec{
		Path: binary, Stderr: log, Stdout: log, Env: os.Environ(),
		Args: append([]string{
			"controller", "--kubeconfig", c.plane.Kubeconfig(), "--own-namespace", namespace, "--leader-elect=false",
			"--metrics-addr", "0", "--probe-addr", "0", "--quiet", quiet.String(), "--images", "--image-interval", interval.String(),
			"--cloud-identity=false", "--registry-ca", c.registry.Address + "=" + authority,
		}, flags...),
	})
	return err
}

// awaitPinned waits until so many Deployments name a digest.
func (c *cluster) awaitPinned(ctx context.Context, want int) error {
	deadline := time.Now().Add(10 * time.Minute)
	for {
		list := &appsv1.DeploymentList{}
		if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		pinned := 0
		for _, d := range list.Items {
			if strings.Contains(d.Spec.Template.Spec.Containers[0].Image, "@sha256:") {
				pinned++
			}
		}
		if pinned >= want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d Deployments are pinned", pinned, want)
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// peak is the controller's peak memory.
func (c *cluster) peak() (int, error) {
	if err := c.controller.Signal(syscall.Signal(0)); err != nil {
		return 0, fmt.Errorf("the controller has ended: %w", err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.controller.ID().PID))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("no VmHWM in its status")
	}
	kib, err := strconv.Atoi(fields[0])
	return kib >> 10, err
}
