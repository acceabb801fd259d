package agentkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files are the contents of the files that are visible below a root, by path.
func Files(root string) map[string]string {
	got := map[string]string{}
	for _, name := range entries(root) {
		if !strings.HasPrefix(name, "..") {
			walk(root, name, got)
		}
	}
	return got
}

func walk(root, name string, got map[string]string) {
	full := filepath.Join(root, name)
	info, err := os.Stat(full)
	if err != nil {
		got[name] = "ERROR " + err.Error()
		return
	}
	if !info.IsDir() {
		got[name] = Read(full)
		return
	}
	for _, entry := range entries(full) {
		walk(root, filepath.Join(name, entry), got)
	}
}

// entries lists a directory; one that isn't there has none.
func entries(dir string) []string {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(found))
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

// Read is a file's content, or the error's text.
func Read(name string) string {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Write replaces a file in one step. An agent without a quiet period would take the empty
// file between the two steps of a plain write for a version of its own.
func Write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(whole, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, name); err != nil {
		t.Fatal(err)
	}
}

// OpenPath gives a directory, and those between it and the one for temporary files, a mode
// that lets the program of another user reach it.
func OpenPath(t testing.TB, dir string, mode os.FileMode) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
}
