package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// keepAssets copies a program's assets out of its Go module, so the program still works when
// the module cache has been emptied.
func keepAssets(ctx context.Context, r recipe, to string) error {
	if len(r.program.Assets) == 0 {
		return nil
	}
	source, err := moduleDir(ctx, r)
	if err != nil {
		return err
	}
	for _, pattern := range r.program.Assets {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil {
			return fmt.Errorf("find %s: %w", pattern, err)
		}
		for _, file := range files {
			if err := copyBelow(source, to, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func moduleDir(ctx context.Context, r recipe) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Dir}}", r.program.Module) //nolint:gosec // The names come from the table.
	list.Dir = r.dir
	list.Env = goEnv()
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the directory of module %s: %w", r.program.Module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func copyBelow(from, to, file string) error {
	relative, err := filepath.Rel(from, file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	target := filepath.Join(to, relative)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o644)
}
