package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// DownloadedEnv names the environment variable that setup-envtest's users set to its
// directory.
const DownloadedEnv = "KUBEBUILDER_ASSETS"

// Oldest is the oldest Kubernetes release that Lockstep supports.
const Oldest = "1.34"

// Downloaded are programs of a control plane that the lab did not build. A setup-envtest
// directory contains etcd, kube-apiserver and kubectl. A kube-controller-manager in it is
// used too.
type Downloaded struct {
	// Release is the lab release whose programs are compatible with these.
	Release string
	// Programs are keyed by the lab's names for that release.
	Programs map[string]Built
}

// ReadDownloaded reads a directory and reports what is wrong with it.
func ReadDownloaded(ctx context.Context, dir string) (*Downloaded, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]Built{}
	for _, name := range []string{Etcd, APIServer, ControllerManager} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		version, err := askVersion(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: ask %s for its version: %w", DownloadedEnv, dir, name, err)
		}
		found[name] = Built{Program: Program{Name: name}, Version: version, Path: path}
	}
	release, err := releaseFor(found)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", DownloadedEnv, dir, err)
	}
	d := &Downloaded{Release: release, Programs: map[string]Built{}}
	for name, built := range found {
		d.Programs[ForKubernetes(name, release)] = built
	}
	return d, nil
}

// askVersion parses "Kubernetes v1.36.3" and "etcd Version: 3.6.8".
func askVersion(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version, err := semver.NewVersion(line[strings.LastIndex(line, " ")+1:])
	if err != nil {
		return "", fmt.Errorf("%q: %w", line, err)
	}
	return version.String(), nil
}

// releaseFor chooses the lab release that is compatible with the programs. A controller
// manager may be older than its API server, but not newer.
func releaseFor(found map[string]Built) (string, error) {
	for _, name := range []string{Etcd, APIServer} {
		if _, ok := found[name]; !ok {
			return "", fmt.Errorf("there is no %s: name a directory with etcd and kube-apiserver, such as \"setup-envtest use -p path\" prints, or unset the variable to compile them", name)
		}
	}
	server := semver.MustParse(found[APIServer].Version)
	if server.LessThan(semver.MustParse(Oldest)) {
		return "", fmt.Errorf("its kube-apiserver is %s, and Lockstep supports Kubernetes %s and newer: name a directory with such a one, or unset the variable to compile it", server, Oldest)
	}
	if server.LessThan(semver.MustParse(DefaultKubernetes)) {
		return Oldest, nil
	}
	return DefaultKubernetes, nil
}
