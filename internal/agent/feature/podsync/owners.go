package podsync

import (
	"encoding/json"
	"fmt"
	"maps"
)

// OwnersFile is the name of the state file that records which namespace had a file name first.
const OwnersFile = "owners.json"

// remember records the namespaces that own the names of a set, so no other namespace can take a
// name over, even while the agent is down. A name that no source has any more is free again.
func (a *Agent) remember(p plan) {
	if owners := p.tree.Owners(); a.opts.Rules.Shared && p.err == nil && !maps.Equal(owners, a.files.owners) {
		a.files.owners = owners
		raw, err := json.Marshal(owners)
		if err == nil {
			err = a.parts.States.WriteState(OwnersFile, raw)
		}
		a.complain("the owners of file names cannot be written", err)
	}
}

// recall reads the owners that an earlier process recorded.
func (a *Agent) recall() error {
	if !a.opts.Rules.Shared {
		return nil
	}
	raw, err := a.parts.States.ReadState(OwnersFile)
	if err != nil {
		return fmt.Errorf("read the owners of file names: %w", err)
	}
	if len(raw) > 0 && json.Unmarshal(raw, &a.files.owners) != nil {
		a.files.owners = nil // damaged: the age of the objects decides
	}
	return nil
}
