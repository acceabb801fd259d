package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// NodeName is the name of the real node. The API server finds the kubelet by it:
// the kubelet's port is joined to this machine's loopback.
const NodeName = "localhost"

// pluginFolder is where Debian keeps the network plugins.
const pluginFolder = "/usr/lib/cni"

// names of the node's processes, beside those of programs.
const (
	nodeProcess    = "node"
	gatewayProcess = "gateway"
	janitorProcess = "janitor"
)

// launchNode starts the scheduler and a real node, and waits until it is ready.
func (c *Cluster) launchNode(ctx context.Context) error {
	if c.Has(KWOK) {
		return errors.New("KWOK runs here and would take real pods for fake ones; start a control plane without it")
	}
	if err := nodeMissing(ctx); err != nil {
		return err
	}
	helper, err := c.buildHelper(ctx)
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	port := strconv.Itoa(ports[0])
	c.run.Group = controlgroup.Prefix + filepath.Base(c.run.Dir)
	if err := c.writeNodeFiles(port); err != nil {
		return err
	}
	if err := c.startNodeProcesses(helper, port); err != nil {
		return err
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	if err := c.await(ctx, nodeProcess, func(ctx context.Context) error { return c.loadPause(ctx, helper) }); err != nil {
		return err
	}
	return c.await(ctx, nodeProcess, c.nodeReady(NodeName))
}

// startNodeProcesses starts, on the host, the gateway and the janitor, and the
// node itself in namespaces of its own. A detached node has no janitor: whoever
// ends it removes its control groups.
func (c *Cluster) startNodeProcesses(helper, port string) error {
	if err := c.spawnHelper(gatewayProcess, process.Spec{
		Path: helper, Args: []string{"gateway", strings.TrimPrefix(c.run.Server, "https://"), "127.0.0.1:" + port},
	}); err != nil {
		return err
	}
	if !c.options.Detached {
		if err := c.startJanitor(helper); err != nil {
			return err
		}
	}
	return c.spawnHelper(nodeProcess, process.Spec{
		Path: helper, Args: []string{"inside", c.run.Group, port, c.programs[program.Kubelet].Path},
		Apart: true,
	})
}

// startJanitor starts a process that outlives this one and hears of its end by
// the end of a pipe that only this process holds open.
func (c *Cluster) startJanitor(helper string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close() //nolint:errcheck // The janitor has its own handle.
	c.held = append(c.held, write)
	_, err = process.Start(process.Spec{Path: helper, Args: []string{"janitor", c.run.Group}, Stdin: read, Detached: true})
	return err
}

// spawnHelper starts a process of the node with its log in the folder.
func (c *Cluster) spawnHelper(name string, spec process.Spec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	log, err := os.OpenFile(c.Log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // The process has its own handle.
	spec.Dir, spec.Stdout, spec.Stderr, spec.Detached = c.run.Dir, log, log, c.options.Detached
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	c.processes[name] = p
	return c.run.started(name, c.run.Kubernetes, p.ID())
}

// buildHelper builds the program around the node. It has only the standard
// library in it, so that takes a second.
func (c *Cluster) buildHelper(ctx context.Context) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	file := c.file("lab-node")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", file, "./lab/node") //nolint:gosec // A package of ours.
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ./lab/node: %w: %s", err, out)
	}
	return file, nil
}

// loadPause gives containerd the image that holds a pod's namespaces.
func (c *Cluster) loadPause(ctx context.Context, helper string) error {
	return c.LoadImage(ctx, image.Image{
		Name: PauseImage, Files: map[string]string{"/lab-node": helper}, Entrypoint: []string{"/lab-node", "pause"},
	})
}

// PauseImage holds a pod's namespaces.
const PauseImage = "lab.local/pause:1"

// LoadImage builds an image from files and gives it to the node, without a
// registry. Pods use it with imagePullPolicy Never.
func (c *Cluster) LoadImage(ctx context.Context, spec image.Image) error {
	file, err := os.CreateTemp(c.run.Dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // The folder goes with the control plane.
	defer file.Close()           //nolint:errcheck // It was written by name.
	if err := spec.Write(file.Name()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	load := exec.CommandContext(ctx, "ctr", "--address", c.file("containerd.sock"), "--namespace", "k8s.io", "images", "import", file.Name()) //nolint:gosec // Paths of ours.
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("give image %s to the node: %w: %s", spec.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Helper is the path of the program around the node, for images of tests.
func (c *Cluster) Helper() string { return c.file("lab-node") }

// nodeMissing says what a real node would need and this machine does not have.
// What Debian's packages bring is installed where that is possible.
func nodeMissing(ctx context.Context) error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("a real node needs root on Linux: run as root, or ask for the tests without it (go test -short)")
	}
	if len(missingTools()) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err == nil {
		_ = exec.CommandContext(ctx, "apt-get", "update", "-q").Run()
		install := exec.CommandContext(ctx, "apt-get", "install", "-q", "-y", "--no-install-recommends", "containerd", "runc", "containernetworking-plugins", "iproute2")
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("install containerd, runc, containernetworking-plugins and iproute2: %w: %s", err, out)
		}
	}
	if missing := missingTools(); len(missing) > 0 {
		return fmt.Errorf("a real node needs %s: install containerd, runc, containernetworking-plugins and iproute2", strings.Join(missing, ", "))
	}
	return nil
}

func missingTools() []string {
	var missing []string
	for _, tool := range []string{"containerd", "runc", "ctr", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(pluginFolder, plugin)); err != nil {
			missing = append(missing, filepath.Join(pluginFolder, plugin))
		}
	}
	return missing
}
