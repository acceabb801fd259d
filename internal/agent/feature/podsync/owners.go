package podsync

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// The state files of a set from several namespaces: OwnersFile records which namespace had a file
// name first, AdmittedFile which objects have room within the size limit.
const (
	OwnersFile   = "owners.json"
	AdmittedFile = "admitted.json"
)

// remember records the namespaces that own the names of a set, so no other namespace can take a
// name over, even while the agent is down. A name that no source has any more is free again. In
// the same way it records the objects that were admitted.
func (a *Agent) remember(p plan) {
	if a.opts.Rules.Shared && p.err == nil {
		a.files.owners = p.tree.Owners()
		a.write(OwnersFile, a.files.owners)
		a.write(AdmittedFile, a.inventory.Admitted())
	}
}

// write writes a state file if its content changed.
func (a *Agent) write(name string, content any) {
	raw, err := json.Marshal(content)
	if sum := filemap.Digest(sha256.Sum256(raw)); err == nil && sum != a.files.recorded[name] {
		if err = a.parts.States.WriteState(name, raw); err == nil {
			a.files.recorded[name] = sum
		}
	}
	a.complain(name+" cannot be written", err)
}

// recall reads what an earlier process recorded.
func (a *Agent) recall() error {
	if !a.opts.Rules.Shared {
		return nil
	}
	a.files.recorded = map[string]filemap.Digest{}
	var admitted map[string][]Admitted
	for name, content := range map[string]any{OwnersFile: &a.files.owners, AdmittedFile: &admitted} {
		raw, err := a.parts.States.ReadState(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if len(raw) == 0 || json.Unmarshal(raw, content) != nil {
			continue // damaged or none: the agent decides as in a new pod
		}
		a.files.recorded[name] = sha256.Sum256(raw)
	}
	a.inventory.Reserve(admitted)
	return nil
}
