package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// hidden are the host's directories that kubelet, containerd and the network plugins write
// to under fixed names. The node mounts empty ones over them.
func hidden() []string {
	return []string{"/run", "/var/lib", "/var/log"}
}

// kernelSettings are the settings that kubelet changes on its host. Plain files with the
// expected values are mounted over them, so kubelet finds nothing to change.
func kernelSettings() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":             "1",
		"vm/panic_on_oom":                  "0",
		"kernel/panic":                     "10",
		"kernel/panic_on_oops":             "1",
		"kernel/keys/root_maxkeys":         "1000000",
		"kernel/keys/root_maxbytes":        "25000000",
		"net/ipv4/conf/all/route_localnet": "1",
	}
}

// shield keeps the node's writes from the host. The mounts belong to this mount namespace
// and end with it.
func shield() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, path := range hidden() {
		if strings.HasPrefix(dir, path+"/") {
			return fmt.Errorf("the lab's cache lies under %s, which the node hides; set LOCKSTEP_LAB_CACHE to another directory", path)
		}
		if err := syscall.Mount("lab", path, "tmpfs", 0, "size=256m"); err != nil {
			return fmt.Errorf("mount over %s: %w", path, err)
		}
	}
	for _, path := range []string{"/run/netns", "/run/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return shieldKernel(filepath.Join(dir, "sysctl"))
}

func shieldKernel(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, value := range kernelSettings() {
		target := "/proc/sys/" + name
		if _, err := os.Stat(target); err != nil {
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := syscall.Mount(file, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", target, err)
		}
	}
	return nil
}
