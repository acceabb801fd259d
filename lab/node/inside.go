package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
)

// Addresses of the node. They exist in its own network namespace only.
const (
	bridge         = "labcni0"
	bridgeAddress  = "10.99.0.1"
	bridgeMAC      = "02:00:0a:63:00:01"
	serviceAddress = "10.96.0.1" // the address of the service "kubernetes"
)

// inside is the first process of the namespaces. It only starts the work, as a child, and
// reaps the orphans that containers leave: one process can't both wait for any child and
// wait for a certain one. When it ends, the kernel ends every process of the namespace.
func inside(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	work := exec.Command(self, append([]string{"run"}, args...)...)
	work.Stdout, work.Stderr = os.Stdout, os.Stderr
	if err := work.Start(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("wait for processes: %w", err)
		case pid == work.Process.Pid:
			return fmt.Errorf("the node's programs have ended (%d)", status.ExitStatus())
		}
	}
}

// run sets up the node: a shield around the host, a network, containerd, kubelet. Its
// arguments are the control group, the kubelet's port and the kubelet's path.
func run(args []string) error {
	if len(args) != 3 {
		return errors.New("want: run CONTROL-GROUP KUBELET-PORT KUBELET")
	}
	group, port, kubelet := args[0], args[1], args[2]
	for _, step := range []func() error{shield, network, func() error { return controlgroup.Make(group) }} {
		if err := step(); err != nil {
			return err
		}
	}
	failed := make(chan error)
	go func() {
		failed <- serve(
			link{"tcp", serviceAddress + ":443", "unix", apiSocket},
			link{"unix", kubeletSocket, "tcp", "127.0.0.1:" + port},
			link{"tcp", bridgeAddress + ":5000", "unix", registrySocket},
			link{"tcp", bridgeAddress + ":5001", "unix", secureRegistrySocket},
		)
	}()
	go func() { failed <- program("containerd", "containerd", "--config", "containerd.toml") }()
	if err := awaitSocket("containerd.sock"); err != nil {
		return err
	}
	go func() {
		failed <- program("kubelet", kubelet, "--config=kubelet.yaml", "--kubeconfig=kubelet.kubeconfig",
			"--root-dir="+workingDir("kubelet"), "--cert-dir="+workingDir("kubelet/pki"),
			"--hostname-override=localhost", "--node-ip="+bridgeAddress)
	}()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	select {
	case err := <-failed:
		return err
	case <-ended:
		return nil
	}
}

// program runs a program with its log next to its data; its end is an error.
func program(name, path string, args ...string) error {
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	return fmt.Errorf("%s ended: %w", name, err)
}

// awaitSocket waits until a program listens on its socket.
func awaitSocket(path string) error {
	for range 400 {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return fmt.Errorf("%s did not appear within 10s", path)
}

// network creates the bridge that pods are connected to. The address of the service
// "kubernetes" is on it too, so pods reach the API server without kube-proxy. Without a MAC address
// of its own, a bridge takes that of a pod; when this pod ends, the others send to an address that
// doesn't exist until they ask again, which takes up to a minute.
func network() error {
	for _, line := range []string{
		"link set lo up",
		"link add " + bridge + " address " + bridgeMAC + " type bridge",
		"addr add " + bridgeAddress + "/24 dev " + bridge,
		"addr add " + serviceAddress + "/32 dev " + bridge,
		"link set " + bridge + " up",
	} {
		out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

func workingDir(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	return dir + "/" + name
}
