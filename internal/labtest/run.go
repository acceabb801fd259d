package labtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

const (
	recordFile = "run.json"
	// unwritten is how long a directory may exist without a record before it counts as left
	// behind by a process that died between the two steps.
	unwritten = time.Hour
)

// Run is the record of a control plane: what another process must know to use it, to show it
// and to end it. It is stored in the control plane's directory.
type Run struct {
	Dir        string           `json:"-"`
	Owner      process.Identity `json:"owner"` // the process that started it
	Detached   bool             `json:"detached,omitempty"`
	Began      time.Time        `json:"began"`
	Kubernetes string           `json:"kubernetes"`
	Server     string           `json:"server"`
	Registry   string           `json:"registry"` // its address, if it runs
	With       []Component      `json:"with,omitempty"`
	Processes  []Member         `json:"processes"`

	// SecureRegistry is its address, if it runs.
	SecureRegistry string `json:"secureRegistry"`
}

// Member is one process of a control plane.
type Member struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	process.Identity
}

func newRun(options Options, port int) (*Run, error) {
	parent, err := runsDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for control planes: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, fmt.Errorf("make a directory for a control plane: %w", err)
	}
	return &Run{
		Dir: dir, Owner: process.Self(), Detached: options.Detached, Began: time.Now(),
		Server: "https://127.0.0.1:" + strconv.Itoa(port),
	}, nil
}

func runsDir() (string, error) {
	cache, err := program.Cache()
	return filepath.Join(cache, "runs"), err
}

// Kubeconfig is the path of a kubeconfig with every permission.
func (r *Run) Kubeconfig() string { return filepath.Join(r.Dir, "kubeconfig") }

// Alive reports whether the control plane is still needed: while its owner runs or, when it
// is detached, until it is ended explicitly.
func (r *Run) Alive() bool {
	if !r.Detached {
		return r.Owner.Alive()
	}
	for _, p := range r.Processes {
		if p.Alive() {
			return true
		}
	}
	return r.Owner.Alive()
}

// End kills the recorded processes of the control plane and removes its directory.
func (r *Run) End() error {
	var errs []error
	for _, p := range r.Processes {
		errs = append(errs, p.Kill())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return remains.Remove(r.Dir)
}

// started replaces the record of a program.
func (r *Run) started(name, version string, id process.Identity) error {
	member := Member{Name: name, Version: version, Identity: id}
	for i, p := range r.Processes {
		if p.Name == name {
			r.Processes[i] = member
			return r.save()
		}
	}
	r.Processes = append(r.Processes, member)
	return r.save()
}

// save writes the record in one step: readers see the old one or the new one.
func (r *Run) save() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record control plane %s: %w", r.Dir, err)
	}
	path := filepath.Join(r.Dir, recordFile)
	if err := writeDurably(path+".new", append(text, '\n')); err != nil {
		return fmt.Errorf("record control plane: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("record control plane: %w", err)
	}
	return nil
}

// writeDurably returns when the content is on the disk: after a crash a renamed file
// may otherwise be empty.
func writeDurably(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func readRun(dir string) (*Run, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, fmt.Errorf("read record of control plane: %w", err)
	}
	run := &Run{Dir: dir}
	if err := json.Unmarshal(text, run); err != nil {
		return nil, fmt.Errorf("read record of control plane %s: %w", dir, err)
	}
	return run, nil
}

// Runs lists the control planes of this user that are alive.
func Runs() ([]*Run, error) {
	var alive []*Run
	err := eachRun(func(run *Run) error {
		if run.Alive() {
			alive = append(alive, run)
		}
		return nil
	})
	return alive, err
}

// sweep ends and removes the leftovers of dead processes.
func sweep() error {
	return eachRun(func(run *Run) error {
		if run.Alive() {
			return nil
		}
		if err := run.End(); err != nil {
			return fmt.Errorf("remove a dead control plane: %w", err)
		}
		return nil
	})
}

func eachRun(visit func(*Run) error) error {
	parent, err := runsDir()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list control planes: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue // such as a file manager's hidden files
		}
		dir := filepath.Join(parent, entry.Name())
		run, err := readRun(dir)
		if err == nil {
			err = visit(run)
		} else {
			err = removeUnwritten(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeUnwritten removes a directory without a readable record, unless it is so new that
// its owner may be about to write one.
func removeUnwritten(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && time.Since(info.ModTime()) < unwritten {
		return nil
	}
	return remains.Remove(dir)
}

// String describes the run: "Kubernetes 1.36.3 with kwok at https://127.0.0.1:20001".
func (r *Run) String() string {
	with := ""
	if len(r.With) > 0 {
		with = " with " + joinComponents(r.With)
	}
	return "Kubernetes " + r.Kubernetes + with + " at " + r.Server
}

// release is the version without its patch: 1.36.
func (r *Run) release() string {
	major, rest, _ := strings.Cut(r.Kubernetes, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// Satisfies reports whether the control plane has the requested release and every requested
// component.
func (r *Run) Satisfies(options Options) bool {
	for _, component := range options.With {
		if !slices.Contains(r.With, component) {
			return false
		}
	}
	return r.release() == options.kubernetes()
}
