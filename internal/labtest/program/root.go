package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CacheEnv names the environment variable that sets the directory for built programs and
// running control planes.
const CacheEnv = "LOCKSTEP_LAB_CACHE"

// Root returns the repository's root: the nearest directory, upwards from the working
// directory, that contains a go.mod and the lab's modules. A test runs in its package's
// directory, a user anywhere below the root.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository's root: %w", err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) && exists(filepath.Join(dir, "lab", "kubernetes", "go.mod")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository's root: no directory with go.mod and lab/kubernetes above %s", start)
		}
	}
}

// Cache returns the directory for the lab's files, outside of any clone.
func Cache() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory (set %s to choose one): %w", CacheEnv, err)
	}
	return filepath.Join(dir, "lockstep", "lab"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
