package labtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// NodeName is the name of the real node. The API server uses it as the kubelet's address:
// the kubelet's port is reachable on this machine's loopback.
const NodeName = "localhost"

// Names of the node's processes, in addition to those of programs.
const (
	nodeProcess    = "node"
	gatewayProcess = "gateway"
)

// loadTimeout bounds how long containerd may take to load an image. It takes a second or two
// on two idle cores; tests run on busy ones.
const loadTimeout = 3 * time.Minute

// launchNode starts the scheduler and a real node, and waits until it is ready.
func (c *Cluster) launchNode(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	port := strconv.Itoa(ports[0])
	if err := c.copyHelper(ctx); err != nil {
		return fmt.Errorf("make the program around the node: %w", err)
	}
	if err := c.writeNodeFiles(port); err != nil {
		return err
	}
	if err := c.startNodeProcesses(port); err != nil {
		return err
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	if err := c.await(ctx, nodeProcess, c.loadPause); err != nil {
		return err
	}
	return c.await(ctx, nodeProcess, c.nodeReady(NodeName))
}

// startNodeProcesses starts the gateway on the host, and the node itself in its own
// namespaces.
func (c *Cluster) startNodeProcesses(port string) error {
	if err := c.begin(gatewayProcess, c.run.Kubernetes, process.Spec{
		Path: c.Helper(), Args: []string{"gateway", strings.TrimPrefix(c.run.Server, "https://"), "127.0.0.1:" + port, c.run.Registry, c.run.SecureRegistry},
	}); err != nil {
		return err
	}
	return c.begin(nodeProcess, c.run.Kubernetes, process.Spec{
		Path: c.Helper(), Args: []string{"inside", remains.Group(c.run.Dir), port, c.programs[program.Kubelet].Path},
		Apart: true,
	})
}

// copyHelper copies the program around the node into the directory, where a later build does
// not change it.
func (c *Cluster) copyHelper(ctx context.Context) error {
	built, err := buildHelper(ctx)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	return os.WriteFile(c.Helper(), content, 0o700)
}

// loadPause loads the image that holds a pod's namespaces into containerd.
func (c *Cluster) loadPause(ctx context.Context) error {
	// Without the socket, ctr would wait longer than containerd needs to create it.
	if _, err := os.Stat(c.file("containerd.sock")); err != nil {
		return err
	}
	return c.LoadImage(ctx, image.Image{
		Name: PauseImage, Files: map[string]string{"/lab-node": c.Helper()}, Entrypoint: []string{"/lab-node", "pause"},
	})
}

// PauseImage holds a pod's namespaces.
const PauseImage = "lab.local/pause:1"

// LoadImage builds an image from files and loads it into the node, without a registry. Pods
// use it with imagePullPolicy Never.
func (c *Cluster) LoadImage(ctx context.Context, spec image.Image) error {
	file, err := os.CreateTemp(c.run.Dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := spec.Write(file.Name()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	load := exec.CommandContext(ctx, "ctr", "--address", c.file("containerd.sock"), "--namespace", "k8s.io", "images", "import", file.Name()) //nolint:gosec // Paths of ours.
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("give image %s to the node: %w: %s", spec.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Helper is the path of the program around the node, for test images.
func (c *Cluster) Helper() string { return c.file("lab-node") }
