package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// tracked lists the files that git tracks or would add, so build results are not included.
func tracked(ctx context.Context, root string) ([]string, error) {
	command := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	list, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	var names []string
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// since leaves the breaks of files that differ from a commit, and those that differ themselves.
// Without a commit it leaves all.
func since(ctx context.Context, root, commit string, breaks []Break) ([]Break, error) {
	if commit == "" {
		return breaks, nil
	}
	command := exec.CommandContext(ctx, "git", "diff", "--name-only", "-z", commit, "--")
	command.Dir = root
	list, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the changes since %s: %w", commit, err)
	}
	changed := map[string]bool{}
	for name := range bytes.SplitSeq(list, []byte{0}) {
		changed[string(name)] = true
	}
	return slices.DeleteFunc(breaks, func(b Break) bool {
		return !changed[b.File] && !changed["test/breaks/"+b.ID+".break"]
	}), nil
}

// copyTree copies files into a directory and removes its former content. It returns a hash of
// everything that can affect the result of a test: the names and the content of the files,
// without those of the breaks, and the Go release.
func copyTree(from, to string, names []string) (string, error) {
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range names {
		content, err := copyFile(filepath.Join(from, name), filepath.Join(to, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // Git still lists it, but it was removed.
		}
		if err != nil {
			return "", fmt.Errorf("copy the working tree: %w", err)
		}
		if !strings.HasSuffix(name, ".break") {
			fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(content))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// copyFile returns the content; for a link, its target.
func copyFile(from, to string) ([]byte, error) {
	info, err := os.Lstat(from)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return nil, err
		}
		return []byte(target), os.Symlink(target, to)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	return content, os.WriteFile(to, content, info.Mode().Perm())
}
