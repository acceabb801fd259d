package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// resultsFile keeps noticed breaks from one run to the next. Git ignores it, and "make
// clean" removes it.
const resultsFile = "dist/breaks.json"

// noticed is a test that has failed as expected.
type noticed struct {
	ID      string  `json:"id"`
	Test    string  `json:"test"`
	Seconds float64 `json:"seconds"`
}

// results are the noticed breaks of one tree, by the hash of the break.
type results struct {
	file    string
	Tree    string             `json:"tree"`
	Noticed map[string]noticed `json:"noticed"`
}

// readResults reuses the results of an earlier run, if they are for the same tree.
func readResults(file, tree string, fresh bool) (*results, error) {
	none := &results{file: file, Tree: tree, Noticed: map[string]noticed{}}
	if fresh {
		return none, nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return nil, err
	}
	earlier := &results{file: file}
	if err := json.Unmarshal(raw, earlier); err != nil || earlier.Tree != tree || earlier.Noticed == nil {
		return none, nil //nolint:nilerr // An unreadable file, such as one of another release, is ignored.
	}
	return earlier, nil
}

// hash covers the whole break file.
func (b Break) hash() string {
	sum := sha256.Sum256([]byte(b.ID + "\n" + b.text))
	return hex.EncodeToString(sum[:])
}

// has reports whether the break was noticed in this tree.
func (r *results) has(b Break) bool {
	_, ok := r.Noticed[b.hash()]
	return ok
}

// add keeps a result. The file is always complete, because a run may end at any time.
func (r *results) add(b Break, seconds float64) error {
	r.Noticed[b.hash()] = noticed{ID: b.ID, Test: b.Test, Seconds: seconds}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.file+".new", raw, 0o644); err != nil {
		return err
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	return nil
}
