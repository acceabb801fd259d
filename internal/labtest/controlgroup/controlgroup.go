// Package controlgroup makes and removes the control groups of a lab node.
//
// They are the only part of a node that a namespace doesn't hide from the host, so each node
// keeps all of its groups under one name, and that name is removed.
package controlgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefix starts the name of every group of the lab.
const Prefix = "lockstep-lab-"

// controlGroups is where the kernel shows them.
const controlGroups = "/sys/fs/cgroup"

// hierarchies lists the roots under which a group exists: one for each controller
// (version 1), or the only one (version 2).
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(controlGroups, "cgroup.controllers")); err == nil {
		return []string{controlGroups}, nil
	}
	entries, err := os.ReadDir(controlGroups)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // This machine has no control groups.
	}
	if err != nil {
		return nil, fmt.Errorf("list control groups: %w", err)
	}
	var roots []string
	for _, e := range entries {
		if e.IsDir() {
			roots = append(roots, filepath.Join(controlGroups, e.Name()))
		}
	}
	return roots, nil
}

// Try creates and removes a group, to test whether that works.
func Try() error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		return errors.New("there are none")
	}
	name := Prefix + "try-" + strconv.Itoa(os.Getpid())
	return errors.Join(Make(name), Remove(name))
}

// Make creates the group in every hierarchy, because the kubelet requires it.
func Make(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a control group: %w", err)
		}
		// A new cpuset group has no processors until they are copied from its parent.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if value, err := os.ReadFile(filepath.Join(root, file)); err == nil {
				_ = os.WriteFile(filepath.Join(group, file), value, 0o600)
			}
		}
	}
	return nil
}

// Remove removes the group and all below it. It retries for a while, because the kernel
// refuses while a process of the group is still ending.
func Remove(name string) error {
	if !strings.HasPrefix(name, Prefix) {
		return fmt.Errorf("%q is no control group of the lab", name)
	}
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for range 100 {
		var failed []error
		for _, root := range roots {
			failed = append(failed, removeTree(filepath.Join(root, name)))
		}
		if err = errors.Join(failed...); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// removeTree removes directories, deepest first; the files in them belong to the kernel.
func removeTree(root string) error {
	var groups []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, group := range slices.Backward(groups) {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
